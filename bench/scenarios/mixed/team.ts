/** Worker processes on one queue, and what became of each job that this process, which runs none, gives to them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueLike } from '../../adapters/library.js';
import type { Stage } from '../../stage.js';
import { clockOfMachine } from '../../worker-process.js';
import type { Account, Task, WorkerProcess } from '../../worker-process.js';

const WARM_UP_JOBS = 1_000;
/** Nobody tells when a worker has begun to wait for jobs: long enough for each of both libraries. */
const FALLS_ASLEEP_MS = 200;

export type Work = Omit<Task, 'i'>;

export interface Members {
  readonly workers: number;
  /** Of each. */
  readonly concurrency: number;
}

/** Milliseconds on the clock of the machine. */
export interface JobStart {
  /** Just before the call that added it. */
  readonly addedAt: number;
  /** First line of the handler. */
  readonly startedAt: number;
  /** Which of the workers ran it. */
  readonly worker: number;
}

export class Team {
  /** By the number of the job. */
  private readonly addedAt: number[] = [];
  private completed = 0;
  private lastCompletedAt = 0;
  private allAreCompleted: () => void = () => undefined;

  private constructor(
    private readonly stage: Stage,
    private readonly queue: QueueLike,
    private readonly workers: readonly WorkerProcess[],
  ) {
    for (const worker of workers) {
      worker.onCompleted = (at) => {
        this.completed += 1;
        this.lastCompletedAt = Math.max(this.lastCompletedAt, at);
        if (this.completed === this.addedAt.length) this.allAreCompleted();
      };
    }
  }

  /** Running workers, none of which has had a job. */
  static async open(stage: Stage, { workers, concurrency }: Members): Promise<Team> {
    const queue = await stage.openQueue({ removeOnComplete: true });
    const opened = await stage.openWorkerProcesses(workers, concurrency, { tells: true, obeys: true });
    for (const worker of opened) worker.run();
    return new Team(stage, queue, opened);
  }

  /** A thousand jobs with nothing to do. */
  async warmUp(): Promise<void> {
    await this.add(Array.from({ length: WARM_UP_JOBS }, () => ({})));
    await this.done();
  }

  /** All workers wait for jobs afterwards. */
  async fallAsleep(): Promise<void> {
    await sleep(FALLS_ASLEEP_MS);
  }

  /** Adds jobs in one call. @returns their numbers */
  async add(works: readonly Work[]): Promise<number[]> {
    const from = this.addedAt.length;
    const numbers = works.map((_, k) => from + k);
    const entries = works.map((work, k) => ({ name: 'job', data: { ...work, i: from + k } }));
    const at = clockOfMachine();
    for (const i of numbers) this.addedAt[i] = at;
    const [first] = entries;
    await (entries.length === 1 ? this.queue.add(first.name, first.data) : this.queue.addBulk(entries));
    return numbers;
  }

  /** When the last of all that were added so far has completed; @returns the time of it. */
  async done(): Promise<number> {
    const all = new Promise<void>((resolve) => (this.allAreCompleted = resolve));
    if (this.completed < this.addedAt.length) await all;
    return this.lastCompletedAt;
  }

  /** Of all jobs, by their numbers. Throws unless each ran once and the queue is empty. */
  async account(): Promise<JobStart[]> {
    await this.stage.expectCounts(this.queue, {});
    const accounts = await Promise.all(this.workers.map((worker) => worker.account()));
    return startsOf(this.addedAt, accounts);
  }
}

/** @param addedAt by the number of the job; accounts are by worker. Throws unless each job started once. */
export function startsOf(addedAt: readonly number[], accounts: readonly Pick<Account, 'starts'>[]): JobStart[] {
  const found: JobStart[] = [];
  for (const [worker, { starts }] of accounts.entries()) {
    for (const { i, at } of starts) {
      if (addedAt[i] === undefined) throw new Error(`job ${i} of ${addedAt.length} is none of this run`);
      if (found[i]) throw new Error(`job ${i} of ${addedAt.length} ran twice`);
      found[i] = { addedAt: addedAt[i], startedAt: at, worker };
    }
  }
  const missing = addedAt.findIndex((_, i) => !found[i]);
  if (missing >= 0) throw new Error(`job ${missing} of ${addedAt.length} did not run`);
  return found;
}
