import { COMMANDS } from '../connection/members.js';
import { Queue as BaseQueue } from '../queue/queue.js';
import { bulkOptions, Job } from './job.js';
import { asksForLine, countsUnder, listsOf, typesFor } from './paused.js';
import { engineOptions } from './job-options.js';
import { rejectWith } from '../errors/reject-with.js';
import { inUtc, Repeat } from './repeat.js';
import { checkEndDate } from '../scheduler/next-run.js';
import { ServerKind } from './server-kind.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { UserClient } from './user-client.js';
import { traceInternal } from '../telemetry/trace.js';
import type { DatabaseType } from '../types/database-type.js';
import type {
  ExtractDataType,
  ExtractNameType,
  ExtractResultType,
  JobBase as BaseJobBase,
} from '../queue/type-arguments.js';
import type { QueueListener } from './listeners.js';
import type { JobSchedulerTemplateOptions } from '../options/job.js';
import type { QueueOptions as BaseQueueOptions } from '../options/queue.js';
import type { Given } from './connection.js';
import type { QueueOptions } from './options.js';
import type { JobState } from '../types/job-state.js';
import type { BulkJobOptions, JobsOptions, JobType, RedisClient, RepeatableJob, RepeatOptions } from './types.js';

// Symbols, not `#` names: a Proxy around a queue has none of those, and a subclass may call its members what it likes.
const USER_CLIENT: unique symbol = Symbol('user client');
const SERVER: unique symbol = Symbol('server');
const ADD_REPEATING: unique symbol = Symbol('add repeating');
const LISTS: unique symbol = Symbol('lists');

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
/* eslint-disable @typescript-eslint/no-unsafe-declaration-merging -- the interface below tells types alone: the methods are inherited */

/** The Job class a queue hands out: the one it was declared with, or a `Job` of its three types. */
type JobBase<T, DataType, ResultType, NameType extends string> = BaseJobBase<T, ResultType, NameType> &
  Job<DataType, ResultType, NameType>;

/**
 * Adds jobs to a queue, and administers it, with what BullMQ 6 has dropped.
 * Source: BullMQ 5.81 `Queue`.
 */
export class Queue<
  DataTypeOrJob = any,
  DefaultResultType = any,
  DefaultNameType extends string = string,
  DataType = ExtractDataType<DataTypeOrJob, DataTypeOrJob>,
  ResultType = ExtractResultType<DataTypeOrJob, DefaultResultType>,
  NameType extends string = ExtractNameType<DataTypeOrJob, DefaultNameType>,
> extends BaseQueue<DataTypeOrJob, DefaultResultType, DefaultNameType, DataType, ResultType, NameType> {
  /* eslint-enable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-declaration-merging */
  /** @internal */
  readonly [USER_CLIENT] = new UserClient(this);
  /** @internal */
  readonly [SERVER] = new ServerKind(this[COMMANDS]);
  /** What {@link repeat} resolves with, once it was needed. */
  declare protected _repeat?: Repeat;

  /** @param _Connection a class of connections, which BullMQ 5 takes here; not used */
  constructor(name: string, opts?: QueueOptions<Given>, _Connection?: unknown) {
    super(name, opts as BaseQueueOptions<Given>);
    this.jobsOpts = engineOptions(this.jobsOpts);
    void this[SERVER].ask();
  }

  protected override get Job(): typeof Job {
    return Job;
  }

  /** An ioredis client for commands of the user's own; closes with the queue. */
  get client(): Promise<RedisClient> {
    return this[USER_CLIENT].connected();
  }

  /** Version of the server; undefined until there is a connection. */
  get redisVersion(): string {
    return this[SERVER].version as string;
  }

  /** Which server it is; `redis` until there is a connection. */
  get databaseType(): DatabaseType {
    return this[SERVER].type;
  }

  /** Resolves with {@link client} when the connection is usable. Without ioredis: with nothing. */
  override async waitUntilReady(): Promise<void & RedisClient> {
    await super.waitUntilReady();
    await this[SERVER].ask();
    return this[USER_CLIENT].offered();
  }

  override close(): Promise<void> {
    if (this.closing) return this.closing;
    const closed = super.close();
    return (this.closing = Promise.all([closed, this[USER_CLIENT].close()]).then(() => {}));
  }

  override disconnect(): Promise<void> {
    this[USER_CLIENT].disconnect();
    return super.disconnect();
  }

  // ---- Adding jobs

  protected override addJob(
    name: NameType,
    data: DataType,
    opts?: JobsOptions,
  ): Promise<Job<DataType, ResultType, NameType>> {
    try {
      if (opts?.repeat) return this[ADD_REPEATING](name, data, opts);
      const added = super.addJob(name, data, engineOptions(opts)) as Promise<Job<DataType, ResultType, NameType>>;
      // whoever has added a job knows the server
      return this.redisVersion ? added : Promise.all([added, this[SERVER].ask()]).then(([job]) => job);
    } catch (error) {
      return rejectWith(error);
    }
  }

  /**
   * Makes or changes a job scheduler, as `chasquimq` does, and reads `utc`.
   * @throws (rejects) as there; NotSupportedError for `nthDayOfWeek`
   */
  override async upsertJobScheduler(
    jobSchedulerId: NameType,
    repeatOpts: Omit<RepeatOptions, 'key'>,
    jobTemplate?: { name?: NameType; data?: DataType; opts?: JobSchedulerTemplateOptions },
  ): Promise<Job<DataType, ResultType, NameType>> {
    const made = await super.upsertJobScheduler(jobSchedulerId, inUtc(repeatOpts), jobTemplate);
    return made as Job<DataType, ResultType, NameType>;
  }

  /** @internal */
  async [ADD_REPEATING](
    name: NameType,
    data: DataType,
    opts: JobsOptions,
  ): Promise<Job<DataType, ResultType, NameType>> {
    checkEndDate(opts.repeat?.endDate);
    const merged = { ...this.jobsOpts, ...opts };
    const repeat = await this.repeat;
    const made = await repeat.updateRepeatableJob<DataType, ResultType, NameType>(name, data, merged, {
      override: true,
    });
    // As in BullMQ, whose type does not say that there may be none.
    return made as Job<DataType, ResultType, NameType>;
  }

  override addBulk(
    jobs: { name: NameType; data: DataType; opts?: BulkJobOptions }[],
  ): Promise<Job<DataType, ResultType, NameType>[]> {
    try {
      return super.addBulk(bulkOptions(jobs)) as Promise<Job<DataType, ResultType, NameType>[]>;
    } catch (error) {
      return rejectWith(error);
    }
  }

  // ---- What repeats

  /** What repeats. It uses the queue's connection, and closes with it. */
  get repeat(): Promise<Repeat> {
    return Promise.resolve((this._repeat ??= new Repeat(this.name, this.opts, undefined, this)));
  }

  /**
   * What repeats, by the next run, the last one first unless `asc`; job schedulers are among it.
   * @param start rank of the first, and `end` of the last; negative ones count from the end
   * @deprecated Use getJobSchedulers.
   */
  async getRepeatableJobs(start?: number, end?: number, asc?: boolean): Promise<RepeatableJob[]> {
    return (await this.repeat).getRepeatableJobs(start, end, asc);
  }

  /**
   * Removes what the same words have made.
   * @returns whether there was one
   * @deprecated Use removeJobScheduler.
   */
  async removeRepeatable(name: NameType, repeatOpts: RepeatOptions, jobId?: string): Promise<boolean> {
    const told = { [TelemetryAttributes.JobName]: name, [TelemetryAttributes.JobId]: jobId };
    return traceInternal(this, 'removeRepeatable', told, async () => {
      return (await (await this.repeat).removeRepeatable(name, repeatOpts, jobId)) === 0;
    });
  }

  /**
   * Removes what repeats, and its next job if that is delayed.
   * @param key as `getRepeatableJobs` tells it
   * @returns whether there was one
   * @deprecated Use removeJobScheduler.
   */
  async removeRepeatableByKey(key: string): Promise<boolean> {
    return traceInternal(this, 'removeRepeatableByKey', { [TelemetryAttributes.JobKey]: key }, async () => {
      return (await (await this.repeat).removeRepeatableByKey(key)) === 0;
    });
  }

  // ---- The line of a paused queue

  override async getJobCounts(...types: JobType[]): Promise<{ [index: string]: number }> {
    const named = typesFor(types);
    if (!asksForLine(named)) return super.getJobCounts(...listsOf(named, false));
    const others = named.filter((type) => !asksForLine([type]));
    const asked = super.getJobCounts('wait', ...listsOf(others, false));
    const [counts, isPaused] = await Promise.all([asked, this.isPaused()]);
    return countsUnder(named, counts, counts.wait, isPaused);
  }

  override getJobCountByTypes(...types: JobType[]): Promise<number> {
    return super.getJobCountByTypes(...(types as JobState[]));
  }

  override async getJobs(
    types?: JobType[] | JobType,
    start = 0,
    end = -1,
    asc = false,
  ): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]> {
    const lists = await this[LISTS](typesFor(types));
    const jobs = lists.length === 0 ? [] : await super.getJobs(lists, start, end, asc);
    return jobs as unknown as JobBase<DataTypeOrJob, DataType, ResultType, NameType>[];
  }

  override async getRanges(types: JobType[], start = 0, end = 1, asc = false): Promise<string[]> {
    const lists = await this[LISTS](types);
    return lists.length === 0 ? [] : super.getRanges(lists, start, end, asc);
  }

  /** @internal */
  async [LISTS](types: JobType[]): Promise<ReturnType<typeof listsOf>> {
    return listsOf(types, asksForLine(types) && (await this.isPaused()));
  }

  override async clean(
    grace: number,
    limit = 0,
    type: 'completed' | 'wait' | 'waiting' | 'active' | 'paused' | 'prioritized' | 'delayed' | 'failed' = 'completed',
  ): Promise<string[]> {
    if (!asksForLine([type])) return super.clean(grace, limit, type);
    const [list] = await this[LISTS]([type]);
    // of the one that is empty nothing is removed
    return super.clean(grace, limit, list === undefined ? 'paused' : 'wait');
  }
}

// BullMQ 5 has none: tools tell the majors apart by it, and then ask for `client` and for jobs that are paused.
Object.defineProperty(Queue.prototype, 'getBackend', { value: undefined, configurable: true, writable: true });

/** Methods that hand out jobs: these are of the class above. */

/* eslint-disable @typescript-eslint/no-unused-vars -- an interface that is merged has the parameters of its class */
export interface Queue<
  DataTypeOrJob,
  DefaultResultType,
  DefaultNameType extends string,
  DataType,
  ResultType,
  NameType extends string,
> {
  /* eslint-enable @typescript-eslint/no-unused-vars */
  getVersion(): Promise<string>;
  add(name: NameType, data: DataType, opts?: JobsOptions): Promise<Job<DataType, ResultType, NameType>>;
  getJob(jobId: string): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType> | undefined>;
  getWaiting(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  getWaitingChildren(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  getActive(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  getDelayed(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  getPrioritized(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  getCompleted(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  getFailed(start?: number, end?: number): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  runJobSchedulerNow(jobSchedulerId: string): Promise<Job<DataType, ResultType, NameType> | undefined>;
  getGroupJobs(
    groupId: string,
    start?: number,
    end?: number,
  ): Promise<JobBase<DataTypeOrJob, DataType, ResultType, NameType>[]>;
  on<U extends keyof QueueListener<JobBase<DataType, DataType, ResultType, NameType>>>(
    event: U,
    listener: QueueListener<JobBase<DataType, DataType, ResultType, NameType>>[U],
  ): this;
  once<U extends keyof QueueListener<JobBase<DataType, DataType, ResultType, NameType>>>(
    event: U,
    listener: QueueListener<JobBase<DataType, DataType, ResultType, NameType>>[U],
  ): this;
  off<U extends keyof QueueListener<JobBase<DataType, DataType, ResultType, NameType>>>(
    event: U,
    listener: QueueListener<JobBase<DataType, DataType, ResultType, NameType>>[U],
  ): this;
}
