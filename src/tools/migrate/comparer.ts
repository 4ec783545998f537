/** Reads jobs before a step of a move and after it, and compares all that is known of each. */
import type { NativeQueue } from '../../native/types.js';
import type { QueueAccount } from './account.js';
import { contentOfOurs, contentOfTheirs, differences, hasGoneOn, type Content } from './content.js';

/** What each of BullMQ's lists and sets is called here. */
const STATES: Readonly<Record<string, string>> = { wait: 'waiting', paused: 'waiting' };
const PLACES: Readonly<Record<string, string>> = { waiting: 'wait' };
/** Jobs that a step looks at, at most. */
const MOST_A_STEP = 250;

/** A job as it was found. */
interface Found {
  readonly content: Content;
  /** It is where it was to come. */
  readonly isInPlace: boolean;
}

export class Comparer {
  constructor(
    private readonly native: NativeQueue,
    private readonly account: QueueAccount,
  ) {}

  /** Carries out a step that moves jobs here, and compares those that it moved. */
  async toHere<T>(place: string, skip: number, step: () => Promise<T>): Promise<T> {
    const before = await this.theirs(await this.native.sourceIds(place, skip));
    const done = await step();
    const ids = [...before.keys()];
    const [left, here] = [await this.theirs(ids), await this.ours(ids, STATES[place] ?? place, before)];
    this.compare(before, left, here);
    return done;
  }

  /** Carries out a step that moves jobs to BullMQ, and compares those that it moved. */
  async toThere<T>(state: string, skip: number, step: () => Promise<T>): Promise<T> {
    const ids = await this.native.getIds([state], skip, skip + MOST_A_STEP - 1, true);
    const before = await this.ours(ids, state);
    const done = await step();
    const [left, there] = [await this.ours(ids, state), await this.theirs(ids, PLACES[state] ?? state)];
    this.compare(before, left, there);
    return done;
  }

  private compare(
    before: ReadonlyMap<string, Found>,
    left: ReadonlyMap<string, Found>,
    after: ReadonlyMap<string, Found>,
  ): void {
    for (const [id, { content }] of before) {
      const now = after.get(id);
      // it has not moved, or a worker had it and did not keep it
      if (left.has(id) || !now) continue;
      const differ = differences(content, now.content, now.isInPlace);
      if (differ.length > 0) this.account.differ.set(id, differ);
      this.account.compared++;
      if (hasGoneOn(content, now.content)) this.account.wentOn++;
    }
  }

  private async theirs(ids: string[], place = ''): Promise<Map<string, Found>> {
    const jobs = await this.native.sourceJobs(ids, place);
    return new Map(jobs.map((job) => [job.id, { content: contentOfTheirs(job), isInPlace: job.isInPlace }]));
  }

  /** @param before logs are read of the jobs that had some; without it, of all */
  private async ours(ids: string[], state: string, before?: ReadonlyMap<string, Found>): Promise<Map<string, Found>> {
    const jobs = await this.native.jobsById(ids);
    const found = jobs.map(async (job): Promise<[string, Found]> => {
      const hasLogs = (before?.get(job.id)?.content.logs.length ?? 1) > 0;
      const logs = hasLogs ? (await this.native.getLogs(job.id, 0, -1, true)).logs : [];
      const isInPlace = (await this.native.getState(job.id)) === state;
      return [job.id, { content: contentOfOurs(job, logs), isInPlace }];
    });
    return new Map(await Promise.all(found));
  }
}
