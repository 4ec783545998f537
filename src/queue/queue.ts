import { CLOSE, COMMANDS } from '../connection/members.js';
import type { Backend, BackendFactory } from '../connection/backend.js';
import { randomUUID } from 'node:crypto';
import { rejectWith } from '../errors/reject-with.js';
import type { Job } from '../job/job.js';
import { JobScheduler } from '../scheduler/job-scheduler.js';
import { checkEndDate } from '../scheduler/next-run.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { BaseJobOptions, BulkJobOptions, JobSchedulerTemplateOptions, JobsOptions } from '../options/job.js';
import type { QueueOptions } from '../options/queue.js';
import type { RepeatOptions } from '../options/repeat.js';
import { QueueAdministration } from './queue-administration.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { telemetryOf, traceInternal } from '../telemetry/trace.js';
import type { GivenConnection } from '../types/given-connection.js';
import type { JobSchedulerJson } from '../types/job-scheduler-json.js';
import type { QueueListener } from './queue-listener.js';
import type { ExtractDataType, ExtractNameType, ExtractResultType, JobBase } from './type-arguments.js';
import { SpanKind } from '../types/telemetry.js';
import { QUEUE_VERSION } from './queue-version.js';
import { warnOfRepeat } from './warn-of-repeat.js';

// Symbols, not `#` names: a Proxy around a queue has none of those, and a subclass may call its members what it likes.
const MAX_LEN_EVENTS: unique symbol = Symbol('max len events');
const ADD_TRACED: unique symbol = Symbol('add traced');
const WITH_DEFAULTS: unique symbol = Symbol('with defaults');
const ADD_BULK_TRACED: unique symbol = Symbol('add bulk traced');
const ALL_WITH_DEFAULTS: unique symbol = Symbol('all with defaults');
const SCHEDULING: unique symbol = Symbol('scheduling');

/** Cap of the event stream unless `streams.events.maxLen` says otherwise. */
const MAX_EVENTS = 10_000;

/**
 * Adds jobs to a queue, and administers it.
 *
 * @typeParam DataTypeOrJob - type of the jobs' data, or the `Job` type itself
 * @typeParam DefaultResultType - type of what processors return
 * @typeParam DefaultNameType - type of the jobs' names
 * Source: BullMQ 6.7.0 `Queue`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
export class Queue<
  DataTypeOrJob = any,
  DefaultResultType = any,
  DefaultNameType extends string = string,
  DataType = ExtractDataType<DataTypeOrJob, DataTypeOrJob>,
  ResultType = ExtractResultType<DataTypeOrJob, DefaultResultType>,
  NameType extends string = ExtractNameType<DataTypeOrJob, DefaultNameType>,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueAdministration<JobBase<DataTypeOrJob, ResultType, NameType>, B, ConnectionOptionsType> {
  /* eslint-enable @typescript-eslint/no-explicit-any */

  /** Identifies this object. */
  token: string = randomUUID();
  /** The `defaultJobOptions` given. */
  jobsOpts: BaseJobOptions;
  /** The options given. */
  declare opts: QueueOptions<ConnectionOptionsType>;
  /** What `libName` is in BullMQ, for subclasses that read it. */
  protected libName = 'bullmq';
  /** What {@link jobScheduler} resolves with, once it was needed. */
  declare protected _jobScheduler?: JobScheduler<B, ConnectionOptionsType>;

  /**
   * Connects in the background: an unreachable server is reported by the `error` event.
   * @throws Error for a name BullMQ refuses; NotSupportedError for an option or a connection not supported yet
   */
  constructor(
    name: string,
    opts?: QueueOptions<GivenConnection<ConnectionOptionsType>>,
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
  ) {
    super(name, { connection: {} as GivenConnection<ConnectionOptionsType>, ...opts }, backendFactory);
    this.jobsOpts = opts?.defaultJobOptions ?? {};
    if (opts?.maxPendingAdds !== undefined) this[COMMANDS].producer.mostPending = checkMostPending(opts.maxPendingAdds);
    const engine = this[COMMANDS].open();
    if (!opts?.skipMetasUpdate) {
      // Not reported: a connection that fails emits `error` itself, and the next Queue writes the meta again.
      engine.setMeta(QUEUE_VERSION, this[MAX_LEN_EVENTS]).catch(() => {});
    }
  }

  /** @internal */
  get [MAX_LEN_EVENTS](): number {
    return Number(this.opts.streams?.events?.maxLen ?? MAX_EVENTS);
  }

  /** The options every job of this queue starts from. A copy. */
  get defaultJobOptions(): JobsOptions {
    return { ...this.jobsOpts };
  }

  /** What a Queue writes about itself. */
  get metaValues(): Record<string, string | number> {
    return { 'opts.maxLenEvents': this[MAX_LEN_EVENTS], version: QUEUE_VERSION };
  }

  /** The version stored with the queue, or null when no Queue has written it. */
  async getVersion(): Promise<string | null> {
    return (await this.getMeta()).version ?? null;
  }

  // ---- Adding jobs

  /**
   * Adds a job. Its options are the queue's defaults, overridden by `opts` (also where those are undefined). Emits
   * `waiting` with the job, whatever state it entered.
   * @param data any JSON value; it is encoded before `add` returns
   * @returns the job; when a job of its id exists already, nothing is added and the id is that job's
   * @throws (rejects) Error with BullMQ's text for options it refuses, TypeError for data that has no JSON form
   */
  add(name: NameType, data: DataType, opts?: JobsOptions): Promise<Job<DataType, ResultType, NameType>> {
    if (this.opts.telemetry) return this[ADD_TRACED](name, data, opts);
    return this.addJob(name, data, opts);
  }

  /** @internal */
  [ADD_TRACED](name: NameType, data: DataType, opts?: JobsOptions): Promise<Job<DataType, ResultType, NameType>> {
    return this.trace(SpanKind.PRODUCER, 'add', `${this.name}.${name}`, async (span, metadata) => {
      const told = metadata && !opts?.telemetry?.omitContext ? { ...opts, telemetry: { metadata } } : opts;
      const job = await this.addJob(name, data, told);
      span?.setAttributes({ [TelemetryAttributes.JobName]: name, [TelemetryAttributes.JobId]: job.id });
      return job;
    });
  }

  /** What `add` does, without telemetry; for subclasses that wrap it. */
  protected addJob(name: NameType, data: DataType, opts?: JobsOptions): Promise<Job<DataType, ResultType, NameType>> {
    let added: Promise<Job<DataType, ResultType, NameType>>;
    try {
      if (opts) {
        rejectReservedId(opts.jobId);
        if ((opts as { repeat?: unknown }).repeat) warnOfRepeat();
      }
      added = this.Job.create<DataType, ResultType, NameType>(this, name, data, this[WITH_DEFAULTS](opts));
    } catch (error) {
      return rejectWith(error);
    }
    return added.then((job) => {
      // who puts an `emit` of its own in the place of ours hears all events
      if (this.listenerCount('waiting') > 0 || this.emit !== ownEmit) this.emit('waiting', job as never);
      return job;
    });
  }

  /**
   * Adds many jobs at once; much faster than one at a time. All are checked before anything is sent, and ids are handed
   * out in the order of the array. Emits nothing.
   * @throws (rejects) as {@link add}
   */
  addBulk(
    jobs: { name: NameType; data: DataType; opts?: BulkJobOptions }[],
  ): Promise<Job<DataType, ResultType, NameType>[]> {
    try {
      if (this.opts.telemetry) return this[ADD_BULK_TRACED](jobs);
      return this.Job.createBulk<DataType, ResultType, NameType>(this, this[ALL_WITH_DEFAULTS](jobs));
    } catch (error) {
      return rejectWith(error);
    }
  }

  /** @internal */
  [ADD_BULK_TRACED](
    jobs: { name: NameType; data: DataType; opts?: BulkJobOptions }[],
  ): Promise<Job<DataType, ResultType, NameType>[]> {
    return this.trace(SpanKind.PRODUCER, 'addBulk', this.name, (span, metadata) => {
      span?.setAttributes({
        [TelemetryAttributes.BulkNames]: jobs.map(({ name }) => name),
        [TelemetryAttributes.BulkCount]: jobs.length,
      });
      const told = jobs.map((job) => ({ ...job, opts: { ...job.opts, telemetry: telemetryOf(job.opts, metadata) } }));
      return this.Job.createBulk<DataType, ResultType, NameType>(this, this[ALL_WITH_DEFAULTS](told));
    });
  }

  /** @internal The options of one job: a default `jobId` is ignored. */
  [WITH_DEFAULTS](opts: JobsOptions | null | undefined): JobsOptions | undefined {
    const defaults = this.jobsOpts;
    if (isEmpty(defaults)) return opts ?? undefined;
    const merged = { ...defaults, ...opts };
    if (defaults.jobId !== undefined) merged.jobId = opts?.jobId;
    return merged;
  }

  /** @internal Jobs that bring the same options object share the result as well, which is checked and encoded only once. */
  [ALL_WITH_DEFAULTS]<J extends { name: NameType; data: DataType; opts?: BulkJobOptions }>(jobs: J[]): J[] {
    if (isEmpty(this.jobsOpts)) return jobs;
    let given: BulkJobOptions | undefined;
    let opts = this[WITH_DEFAULTS](undefined);
    return jobs.map((job) => {
      if (job.opts !== given) {
        given = job.opts;
        opts = this[WITH_DEFAULTS](given);
      }
      return { ...job, opts };
    });
  }

  /** Closes the connection when the commands under way are done. A second call returns the promise of the first. */
  override close(): Promise<void> {
    return (this.closing ??= traceInternal(this, 'close', {}, () => this[CLOSE]()));
  }

  // ---- Events

  override emit<U extends keyof QueueListener<JobBase<DataType, ResultType, NameType>>>(
    event: U,
    ...args: Parameters<QueueListener<JobBase<DataType, ResultType, NameType>>[U]>
  ): boolean;
  override emit(event: string, ...args: unknown[]): boolean {
    return super.emit(event, ...args);
  }

  /** Calls `listener` at each event of this name. */
  override on<U extends keyof QueueListener<JobBase<DataType, ResultType, NameType>>>(
    event: U,
    listener: QueueListener<JobBase<DataType, ResultType, NameType>>[U],
  ): this {
    return super.on(event, listener);
  }

  /** Calls `listener` at the next event of this name. */
  override once<U extends keyof QueueListener<JobBase<DataType, ResultType, NameType>>>(
    event: U,
    listener: QueueListener<JobBase<DataType, ResultType, NameType>>[U],
  ): this {
    return super.once(event, listener);
  }

  /** Removes a listener. */
  override off<U extends keyof QueueListener<JobBase<DataType, ResultType, NameType>>>(
    event: U,
    listener: QueueListener<JobBase<DataType, ResultType, NameType>>[U],
  ): this {
    return super.off(event, listener);
  }

  // ---- Job schedulers

  /** @internal */
  get [SCHEDULING](): JobScheduler<B, ConnectionOptionsType> {
    return (this._jobScheduler ??= new JobScheduler<B, ConnectionOptionsType>(this.name, this.opts, undefined, this));
  }

  /** The queue's schedulers. It uses the queue's connection, and closes with it. */
  get jobScheduler(): Promise<JobScheduler<B, ConnectionOptionsType>> {
    return Promise.resolve(this[SCHEDULING]);
  }

  /**
   * Makes a scheduler, which adds a job at each time that `repeatOpts` names, or changes the scheduler of this id. Its
   * next job is there at once, delayed until then; each is followed by another when a worker takes it. Runs that were
   * missed while no worker was there are skipped.
   * @param repeatOpts `every` (milliseconds) or `pattern` (cron, in the time zone `tz`)
   * @param jobTemplate name (default: the id), data and options of the jobs
   * @returns the next job; undefined when there is none, because of `limit` or `endDate`, and nothing was stored, or because the scheduler is paused
   * @throws (rejects) Error with BullMQ's text for options it refuses, cron-parser's for a pattern it cannot read
   */
  async upsertJobScheduler(
    jobSchedulerId: NameType,
    repeatOpts: Omit<RepeatOptions, 'key'>,
    jobTemplate?: { name?: NameType; data?: DataType; opts?: JobSchedulerTemplateOptions },
  ): Promise<Job<DataType, ResultType, NameType>> {
    checkEndDate(repeatOpts.endDate);
    const { name, data, opts } = jobTemplate ?? {};
    const made = await this[SCHEDULING].upsertJobScheduler<DataType, ResultType, NameType>(
      String(jobSchedulerId),
      repeatOpts,
      name ?? jobSchedulerId,
      data ?? ({} as DataType),
      { ...this.jobsOpts, ...opts },
      { override: true },
    );
    // As in BullMQ, whose type does not say that there may be none.
    return made as Job<DataType, ResultType, NameType>;
  }

  /** The scheduler of this id as plain data, or undefined. */
  getJobScheduler(id: string): Promise<JobSchedulerJson<DataType> | undefined> {
    return this[SCHEDULING].getScheduler<DataType>(id);
  }

  /**
   * Schedulers by their next run, the last one first unless `asc`.
   * @param start rank of the first, and `end` of the last; negative ones count from the end
   */
  getJobSchedulers(start?: number, end?: number, asc?: boolean): Promise<JobSchedulerJson<DataType>[]> {
    return this[SCHEDULING].getJobSchedulers<DataType>(start, end, asc);
  }

  /** Number of schedulers. */
  getJobSchedulersCount(): Promise<number> {
    return this[SCHEDULING].getSchedulersCount();
  }

  /**
   * Pauses a scheduler: until it is resumed it adds no jobs, whoever upserts it. Its next job is taken back; one that has started goes on. Not in BullMQ.
   * @returns whether there is such a scheduler
   */
  pauseJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return this[SCHEDULING].pauseJobScheduler(jobSchedulerId);
  }

  /**
   * Lets a scheduler go on that is paused. Runs that lie in the pause are not made up for. Not in BullMQ.
   * @returns whether there is such a scheduler
   */
  resumeJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return this[SCHEDULING].resumeJobScheduler(jobSchedulerId);
  }

  /**
   * Adds a job of a scheduler now, also of one that is paused. When the scheduler runs next does not change, and `limit` does not count the job.
   * Not in BullMQ.
   * @returns the job; undefined when there is no such scheduler
   */
  runJobSchedulerNow(jobSchedulerId: string): Promise<Job<DataType, ResultType, NameType> | undefined> {
    return this[SCHEDULING].runJobSchedulerNow<DataType, ResultType, NameType>(jobSchedulerId);
  }

  /**
   * Removes a scheduler, and its next job if that is delayed. One that waits or runs already is followed by none.
   * @returns whether there was one
   */
  async removeJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return (await this[SCHEDULING].removeJobScheduler(jobSchedulerId)) === 0;
  }
}

function isEmpty(options: object): boolean {
  for (const _ in options) return false;
  return true;
}

/** Token `0` skips locks, so an id that could be taken for one is refused. Not a string: fails as in BullMQ. */
function rejectReservedId(jobId: string | undefined): void {
  // `==` as in BullMQ: the values 0 and false are refused with the same text.
  if (jobId == '0' || (jobId != null && jobId.startsWith('0:')))
    throw new Error("JobId cannot be '0' or start with '0:'");
}

function checkMostPending(most: number): number {
  if (!(most >= 1)) throw new RangeError(`maxPendingAdds must be a number of at least 1, not ${most}`);
  return most;
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- compared, not called
const { emit: ownEmit } = Queue.prototype;
