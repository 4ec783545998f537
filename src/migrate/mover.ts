/**
 * Moves queues of BullMQ's, on the same server, into ours of the same names. The engine moves the jobs, a bounded number a step, each in one
 * step: who stops or is killed has moved some, and the next move goes on.
 */
import { COMMANDS } from '../connection/members.js';
import type { NativeMoved, NativeQueue, NativeSurvey } from '../native/types.js';
import { PLACES, QueueAccount, type Place } from './account.js';
import { Comparer } from './comparer.js';

/** What BullMQ has of a queue. */
export type Survey = NativeSurvey;

/** Our queue of the name, open. */
export interface TargetQueue {
  readonly name: string;
  readonly qualifiedName: string;
  readonly [COMMANDS]: { readonly native: NativeQueue };
}

/** The names of BullMQ's queues with the prefix of this one. */
export function namesThere({ [COMMANDS]: commands }: TargetQueue): Promise<string[]> {
  return commands.native.sourceNames();
}

export interface MoveOptions {
  /** Moves nothing, and tells what would be moved. */
  readonly tries?: boolean;
  /** Reads each job before it moves and after, and compares all that is known of it. */
  readonly compares?: boolean;
  /** Numbers that stay free for jobs that the producers of the side that is left still add. */
  readonly gap?: number;
  /** Stops the move between two steps. */
  readonly signal?: AbortSignal;
  /** Told after each step. */
  readonly onStep?: () => void;
}

/** Rounds in which parents of parents are looked for; each moves one generation at least. */
const MOST_ROUNDS = 100;

export class Mover {
  readonly accounts: readonly QueueAccount[];
  private readonly sources: string[];
  private readonly comparers: readonly Comparer[];

  constructor(
    private readonly queues: readonly TargetQueue[],
    private readonly options: MoveOptions = {},
  ) {
    this.accounts = queues.map(({ name }) => new QueueAccount(name));
    this.sources = queues.map(({ qualifiedName }) => `${qualifiedName}:`);
    this.comparers = queues.map(({ [COMMANDS]: commands }, i) => new Comparer(commands.native, this.account(i)));
  }

  /** What BullMQ has of each queue. */
  survey(): Promise<Survey[]> {
    return Promise.all(this.queues.map(({ [COMMANDS]: commands }) => commands.native.surveySource()));
  }

  get moved(): number {
    return this.accounts.reduce((sum, { total }) => sum + total, 0);
  }

  private get isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  /** Moves what there is, until a look at all of it moves no more. */
  async move(): Promise<void> {
    await this.takeSettings();
    for (let round = 0; round < MOST_ROUNDS && !this.isStopped; round++) {
      const before = this.moved;
      await this.moveOnce();
      // a parent may have come meanwhile for which children waited
      if (this.options.tries || this.moved === before || !this.hasChildrenLeft()) break;
    }
    if (!this.options.tries) await this.takeDeduplication();
  }

  /** Deduplication ids that are owned longer than their job was there. */
  private async takeDeduplication(): Promise<void> {
    for (const [i, { [COMMANDS]: commands }] of this.queues.entries()) {
      let cursor: string | null = '0';
      do {
        cursor = await commands.native.adoptDedup(cursor);
      } while (cursor !== '0' && cursor !== null && !this.isStopped);
      this.account(i).mayScan = cursor !== null;
    }
  }

  /** New jobs of ours get numbers above all of BullMQ's before one is moved; a paused queue is paused before it has jobs. */
  private async takeSettings(): Promise<void> {
    if (this.options.tries) return;
    for (const [i, { [COMMANDS]: commands }] of this.queues.entries()) {
      const { isFirst, settings } = await commands.native.adoptQueue(this.options.gap ?? 0);
      if (isFirst) this.account(i).settings = inPairs(settings);
    }
  }

  /** One look at each of BullMQ's lists and sets. */
  async moveOnce(): Promise<void> {
    for (const account of this.accounts) account.stays.clear();
    await this.moveParents();
    for (const place of PLACES.slice(1)) {
      for (const i of this.queues.keys()) await this.movePlace(i, place);
    }
    if (!this.options.tries) await this.settle();
  }

  /** Parents before their children, which may be parents themselves, in any of the queues. */
  private async moveParents(): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS && !this.isStopped; round++) {
      const before = this.moved;
      for (const account of this.accounts) account.stays.clear();
      for (const i of this.queues.keys()) await this.movePlace(i, 'waiting-children');
      if (this.options.tries || this.moved === before) return;
    }
  }

  private async movePlace(i: number, place: Place): Promise<void> {
    const { tries = false, compares = false } = this.options;
    const account = this.account(i);
    const { native } = this.queues[i][COMMANDS];
    for (let skip = 0; !this.isStopped;) {
      const take = (): Promise<NativeMoved> => native.adoptJobs(place, skip, this.sources, tries, Date.now());
      const step = await (compares ? this.comparers[i].toHere(place, skip, take) : take());
      if (step.looked === 0) return;
      account.note(place, step.moved, step.schedulers);
      account.noteStays(step.stays);
      skip += tries ? step.looked : step.kept;
      this.options.onStep?.();
    }
  }

  /** Tells parents that were moved of children that BullMQ's workers ended. */
  async settle(): Promise<void> {
    for (const [i, { [COMMANDS]: commands }] of this.queues.entries()) {
      let [cursor, open] = ['0', 0];
      do {
        const step = await commands.native.settleAdopted(cursor, this.sources, Date.now());
        [cursor, open] = [step.cursor, open + step.open];
      } while (cursor !== '0' && !this.isStopped);
      this.account(i).openChildren = open;
    }
  }

  private hasChildrenLeft(): boolean {
    return this.accounts.some(({ stays }) => stays.has('parent'));
  }

  private account(i: number): QueueAccount {
    return this.accounts[i];
  }
}

function inPairs(values: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (let i = 0; i < values.length; i += 2) pairs[values[i]] = values[i + 1];
  return pairs;
}
