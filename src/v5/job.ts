import { COMMANDS } from '../connection/members.js';
import { markOwn } from '../job/custom-class.js';
import { Job as BaseJob } from '../job/job.js';
import { engineOptions, enginePriority } from './job-options.js';
import type { NotInJobJson } from '../job/not-in-job-json.js';
import type { JobQueue } from '../job/minimal-queue.js';
import type { JobJson } from '../types/job-json.js';
import type { JobProgress } from '../types/job-progress.js';
import type { BulkJobOptions, JobsOptions } from './types.js';

/**
 * A job in a queue, with what BullMQ 6 has dropped.
 * Source: BullMQ 5.81 `Job`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- the interface below tells types alone: the members are inherited
export class Job<
  DataType = any,
  ReturnType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> extends BaseJob<DataType, ReturnType, NameType, ProgressType> {
  /** The processor has called `discard`. */
  declare protected discarded?: boolean;

  static override create<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    name: N,
    data: T,
    opts?: JobsOptions,
  ): Promise<Job<T, R, N>> {
    return super.create<T, R, N>(queue, name, data, engineOptions(opts)) as Promise<Job<T, R, N>>;
  }

  static override createBulk<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    jobs: { name: N; data: T; opts?: BulkJobOptions }[],
  ): Promise<Job<T, R, N>[]> {
    return super.createBulk<T, R, N>(queue, bulkOptions(jobs)) as Promise<Job<T, R, N>[]>;
  }

  static override fromId<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    jobId: string,
  ): Promise<Job<T, R, N> | undefined> {
    return super.fromId<T, R, N>(queue, jobId) as Promise<Job<T, R, N> | undefined>;
  }

  static override fromJSON<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    json: JobJson,
    jobId?: string,
  ): Job<T, R, N> {
    return super.fromJSON<T, R, N>(queue, json, jobId) as Job<T, R, N>;
  }
  /* eslint-enable @typescript-eslint/no-explicit-any */

  /**
   * The id by which it deduplicates.
   * @deprecated Use deduplicationId.
   */
  get debounceId(): string | undefined {
    return this.deduplicationId;
  }

  override asJSON(): JobJson {
    const json = super.asJSON();
    return json.deduplicationId === undefined ? json : { ...json, debounceId: json.deduplicationId };
  }

  override toJSON(): Omit<this, NotInJobJson> {
    const fields = super.toJSON();
    return this.deduplicationId === undefined ? fields : { ...fields, debounceId: this.deduplicationId };
  }

  /**
   * The job is not tried again when this try fails, whatever `attempts` says.
   * @deprecated Throw an UnrecoverableError.
   */
  discard(): void {
    this.discarded = true;
  }

  /** @internal */
  get isDiscarded(): boolean {
    return this.discarded === true;
  }

  /**
   * Whether the job is in a list of the queue: `wait`, `paused` or `active`.
   * @deprecated Use getState.
   */
  async isInList(list: string): Promise<boolean> {
    const [state, isPaused] = await Promise.all([this.getState(), this.queue[COMMANDS].native.isPaused()]);
    return list === (state === 'waiting' ? (isPaused ? 'paused' : 'wait') : state);
  }

  /**
   * Whether the job is in a sorted set of the queue: `completed`, `failed`, `delayed`, `prioritized` or `waiting-children`.
   * @deprecated Use getState.
   */
  async isInZSet(set: string): Promise<boolean> {
    return set === (await this.getState());
  }

  override changePriority(opts: { priority?: number; lifo?: boolean }): Promise<void> {
    if (!opts.priority) return super.changePriority(opts);
    return super.changePriority({ ...opts, priority: enginePriority(opts.priority) });
  }
}

/** Jobs that share one options object go on sharing it. */
export function bulkOptions<J extends { opts?: BulkJobOptions }>(jobs: J[]): J[] {
  let given: BulkJobOptions | undefined;
  let opts = engineOptions(given);
  return jobs.map((job) => {
    if (job.opts !== given) {
      given = job.opts;
      opts = engineOptions(given);
    }
    return opts === job.opts ? job : { ...job, opts };
  });
}

markOwn(Job);

/** What a job was added with, and what it says of repetitions; and the jobs beside it, which are of this class, too. */
/* eslint-disable @typescript-eslint/no-explicit-any -- an interface that is merged has the parameters of its class */
export interface Job<
  DataType = any,
  ReturnType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> {
  get opts(): JobsOptions;
  set opts(opts: JobsOptions);
  getBatch(): Job<DataType, ReturnType, NameType, ProgressType>[];
}
/* eslint-enable @typescript-eslint/no-explicit-any */
