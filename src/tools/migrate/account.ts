/** What a move did, and what it left: each job is counted once, and what stays has its reason. */

/** BullMQ's lists and sets of jobs, in the order in which they are moved: parents come before their children. */
export const PLACES = ['waiting-children', 'prioritized', 'wait', 'paused', 'delayed', 'failed', 'completed'] as const;

/** One of BullMQ's lists or sets of jobs. */
export type Place = (typeof PLACES)[number];

/** Why a job stays, as people read it; `{side}` is the one to which it would move. */
const REASONS: Readonly<Record<string, string>> = {
  parent: 'wait for a parent that stays with BullMQ: it is active, or of a queue that is not moved',
  children: 'have children that have not moved',
  unsettled: 'have children of which they were not told yet',
  exists: 'have ids that jobs {side} have already',
  scheduler: 'belong to a job scheduler that is {side}, too, and runs on both: remove one of the two',
  next: 'own a deduplication id, and the job that is added when they have ended has a parent',
  nth: 'repeat with `nthDayOfWeek`, which is not there: write 1#2 for the second Monday',
  missing: 'are ids in a list without a job',
  unreadable: 'cannot be read',
};

/** @param side where jobs would move */
export function reasonOf(reason: string, side: 'here' | 'in BullMQ'): string {
  return (REASONS[reason] ?? reason).replace('{side}', side);
}

/** Where a queue stands. */
export class QueueAccount {
  /** Jobs that were moved, by place. */
  readonly moved = new Map<string, number>();
  /** Job schedulers that were moved. */
  schedulers = 0;
  /** Settings that were taken over, by name. */
  settings: Record<string, string> = {};
  /** Ids that stay, by reason; those of the last look alone. */
  readonly stays = new Map<string, string[]>();
  /** Children that have not moved, nor ended, of parents that have. */
  openChildren = 0;
  /** Jobs that were compared, as they were with what they are. */
  compared = 0;
  /** Of them, those that a worker had meanwhile: what lasts was compared. */
  wentOn = 0;
  /** Fields in which jobs differ, by id. */
  readonly differ = new Map<string, string[]>();
  /** False: the user may not `SCAN`, so that deduplication ids whose jobs are gone stay. */
  mayScan = true;

  constructor(readonly name: string) {}

  get total(): number {
    return [...this.moved.values()].reduce((sum, jobs) => sum + jobs, 0);
  }

  note(place: string, jobs: number, schedulers: number): void {
    if (jobs > 0) this.moved.set(place, (this.moved.get(place) ?? 0) + jobs);
    this.schedulers += schedulers;
  }

  /** @param pairs ids, and the reason of each behind it */
  noteStays(pairs: readonly string[]): void {
    for (let i = 0; i < pairs.length; i += 2) {
      const [id, reason] = [pairs[i], pairs[i + 1]];
      // older versions of BullMQ put these into the list of waiting jobs
      if (reason === 'marker') continue;
      const ids = this.stays.get(reason) ?? [];
      ids.push(id);
      this.stays.set(reason, ids);
    }
  }

  toJSON(): object {
    return {
      queue: this.name,
      moved: Object.fromEntries(this.moved),
      schedulers: this.schedulers,
      settings: this.settings,
      stays: Object.fromEntries(this.stays),
      openChildren: this.openChildren,
      compared: this.compared,
      wentOn: this.wentOn,
      differ: Object.fromEntries(this.differ),
      mayScan: this.mayScan,
    };
  }
}
