/* eslint-disable max-lines -- BullMQ's `Job` is one class of some 80 members, whose docs stand here; a base class would be one more constructor a job */
/**
 * One job: its fields, and the commands that act on it. What needs no instance lies in the files beside it, and in `add/`.
 *
 * A job that comes from the engine carries JSON texts; `data`, `opts`, `returnvalue` and `stacktrace` are decoded when
 * they are first read. They are accessors: own ones of jobs that were asked for, and of the prototype for those of the hot
 * path (added, or taken by a worker), so that `toJSON()` and inspection show them, a spread (`{ ...job }`) does not.
 */
import * as inner from './members.js';
import { COMMANDS } from '../connection/members.js';
import { rowsOf } from '../connection/log-rows.js';
import { inspect } from 'node:util';
import { Backoffs, LONGEST_DELAY_MS } from '../options/backoffs.js';
import { onceInSideTable, sideTable } from './side-table.js';
import { countDependencies, readDependencies, readIgnored, readReturned, type Dependencies } from './dependencies.js';
import type { FailureReply } from './attempt-policy.js';
import { completeManually, extendLocks, failManually, unlockedOr } from './manual-step.js';
import { bearMembers } from './own-members.js';
import { callAbout } from './open-calls.js';
import { parse } from '../native/json.js';
import { asUnrecoverable } from '../native/native-error.js';
import { checkPriority, copyOptions, normaliseOptions, optionsFromText } from '../add/job-options.js';
import { BLANK, createJob, createJobs, encodeData } from './create-jobs.js';
import { isCustom, markOwn } from './custom-class.js';
import { adoptPlainJob, fieldsOf, toPlainJob, tracesFrom } from './plain-job.js';
import { waitUntilFinished, type JobEvents } from './wait-until-finished.js';
import type { NativeJob, NativeJobExtra, NativeQueue, NativeSiblings } from '../native/types.js';
import {
  parentKeyOf,
  parentKeysOf,
  type BulkJobOptions,
  type DependenciesOpts,
  type JobsOptions,
  type MoveToWaitingChildrenOpts,
  type RetryOptions,
} from '../options/job.js';
import { storedJob } from './stored-job.js';
import { storedOptions } from './stored-options.js';
import { parseStored } from './stored-json.js';
import { recordJob } from '../telemetry/job-metrics.js';
import type { JobJson, JobJsonSandbox } from '../types/job-json.js';
import type { JobProgress } from '../types/job-progress.js';
import type { FinishedStatus, JobState } from '../types/job-state.js';
import type { MinimalJob } from '../types/minimal-job.js';
import type { JobQueue } from './minimal-queue.js';
import { batchMember, requireBatch } from './batch-member.js';
import { manualHold } from './manual-hold.js';
import type { NotInJobJson } from './not-in-job-json.js';
import type { ParentKeys } from '../types/parent.js';

// Where the lazily decoded members live. Symbols keep them out of keys and JSON.
const DATA = Symbol('data');
const OPTS = Symbol('opts');
const RETURNVALUE = Symbol('returnvalue');
const STACKTRACE = Symbol('stacktrace');
/** The text of options that were read. */
const OPTS_GIVEN = Symbol('opts given');
/** Bits that say which of them still hold text. */
const ENCODED = Symbol('encoded');
// Methods of its own: a program may call members of its jobs what it likes.
const DECODED = Symbol('decoded');
const NOTE_GIVEN = Symbol('note given');
const HOLD_TEXTS = Symbol('hold texts');
const ADOPT_EXTRA = Symbol('adopt extra');
const CALL = Symbol('call');
const KNOWN_ID = Symbol('known id');
const IS_IN = Symbol('is in');
const DATA_TEXT = 1;
const OPTS_TEXT = 2;
/** `opts` is an object shared with other jobs, to be copied before anyone sees it. */
const OPTS_SHARED = 4;
const RETURNVALUE_TEXT = 8;
const STACKTRACE_TEXT = 16;

/**
 * A job in a queue. `queue.add` returns one, a processor receives one.
 *
 * @typeParam DataType - type of `data`, which travels as JSON
 * @typeParam ReturnType - type of what the processor returns, which travels as JSON
 * Source: BullMQ 6.7.0 `Job`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
export class Job<
  DataType = any,
  ReturnType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> implements MinimalJob<DataType, ReturnType, NameType, ProgressType> {
  /* eslint-enable @typescript-eslint/no-explicit-any */

  // Declared, not initialised: the constructor assigns all of them in one order, which gives all jobs one shape.
  /** The queue or worker this job belongs to: it emits the job's events and carries its commands. */
  declare protected queue: JobQueue;
  /** What kind of job it is: processors tell jobs apart by it. */
  declare name: NameType;
  /** Id, unique in the queue; undefined until the job was added. */
  declare id?: string;
  /**
   * What `updateProgress` stored last.
   * @defaultValue 0
   */
  declare progress: ProgressType;
  /** Milliseconds the job waits, or waited last, before it may start. */
  declare delay: number;
  /** @defaultValue 0 */
  declare priority: number;
  /** Number of times the job was started. */
  declare attemptsStarted: number;
  /** Number of tries that have ended. */
  declare attemptsMade: number;
  /** Number of times the job was recovered from a lost worker. */
  declare stalledCounter: number;
  /** Creation time, epoch milliseconds. */
  declare timestamp: number;
  /** Time of the last start, epoch milliseconds. */
  declare processedOn?: number;
  /** Time at which the job completed or failed for good, epoch milliseconds. */
  declare finishedOn?: number;
  /** Message of the last error. */
  declare failedReason: string;
  /** Reason with which the job will fail as soon as a worker takes it. */
  declare deferredFailure: string;
  /** Key of the parent: `<qualified name of its queue>:<its id>`. */
  declare parentKey?: string;
  /** The job that waits for this one, and what becomes of it when this one fails. */
  declare parent?: ParentKeys;
  /** The deduplication id with which the job was added. */
  declare deduplicationId?: string;
  /** Id of the job scheduler that made this job. */
  declare repeatJobKey?: string;
  /** Proof that this worker holds the job; only on jobs taken by a worker. */
  declare token?: string;
  /** The `name` option of the worker that took the job last. */
  declare processedBy?: string;

  declare private [DATA]: unknown;
  declare private [OPTS]: JobsOptions | string;
  declare private [OPTS_GIVEN]?: string;
  declare private [RETURNVALUE]: unknown;
  declare private [STACKTRACE]: string[] | string | null | undefined;
  declare private [ENCODED]: number;

  /** Makes the object only; `Job.create` adds it to the queue. */
  constructor(queue: JobQueue, name: NameType, data: DataType, opts: JobsOptions = {}, id?: string) {
    this.queue = queue;
    this.name = name;
    this[DATA] = data;
    this[OPTS] = BLANK;
    this.id = id;
    this.progress = 0 as ProgressType;
    this[RETURNVALUE] = null;
    this[STACKTRACE] = null;
    this[ENCODED] = OPTS_SHARED;
    this.delay = undefined as unknown as number; // as in BullMQ: no delay was asked for
    this.priority = 0;
    this.attemptsStarted = 0;
    this.attemptsMade = 0;
    this.stalledCounter = 0;
    this.timestamp = 0;
    this.processedOn = undefined;
    this.finishedOn = undefined;
    this.failedReason = undefined as unknown as string;
    this.deferredFailure = undefined as unknown as string;
    this.parentKey = undefined;
    this.parent = undefined;
    this.deduplicationId = undefined;
    this.repeatJobKey = undefined;
    this.token = undefined;
    this.processedBy = undefined;
    if (opts !== BLANK) {
      this[inner.ADOPT_OPTIONS](normaliseOptions(opts), Date.now());
    }
  }

  /** @internal Takes over normalised options, which other jobs may share, and the fields that follow from them. */
  [inner.ADOPT_OPTIONS](opts: JobsOptions, now: number): void {
    this[OPTS] = opts;
    this.delay = opts.delay as number;
    this.priority = opts.priority || 0;
    this.timestamp = opts.timestamp ? opts.timestamp : now;
    this.parentKey = parentKeyOf(opts.parent);
    this.parent = parentKeysOf(opts);
    this.deduplicationId = opts.deduplication?.id;
    this.repeatJobKey = opts.repeatJobKey;
  }

  /** @internal Takes over the options of a sibling that was made at the same time, and the fields that follow from them. */
  [inner.SHARE_OPTIONS](sibling: Job): void {
    this[OPTS] = sibling[OPTS];
    this.delay = sibling.delay;
    this.priority = sibling.priority;
    this.timestamp = sibling.timestamp;
    this.parentKey = sibling.parentKey;
    this.parent = sibling.parent;
    this.deduplicationId = sibling.deduplicationId;
    this.repeatJobKey = sibling.repeatJobKey;
  }

  // ---- Lazily decoded members

  /** A member that held text until now; a frozen job gets it beside itself. */
  private [DECODED](
    member: typeof DATA | typeof RETURNVALUE | typeof STACKTRACE,
    bit: number,
    decode: (text: string) => unknown,
  ): unknown {
    const text = this[member] as string;
    if (Object.isFrozen(this)) return onceInSideTable(this, member, () => decode(text));
    this[ENCODED] &= ~bit;
    return ((this as Record<symbol, unknown>)[member] = decode(text));
  }

  /** What the job is about: the value given to `add`, as it comes back from JSON. */
  get data(): DataType {
    if (this[ENCODED] & DATA_TEXT) return this[DECODED](DATA, DATA_TEXT, parse) as DataType;
    return this[DATA] as DataType;
  }

  set data(data: DataType) {
    this[ENCODED] &= ~DATA_TEXT;
    this[DATA] = data;
  }

  /** The options the job was added with, `attempts` and `backoff` normalised. */
  get opts(): JobsOptions {
    const encoded = this[ENCODED];
    if (encoded & (OPTS_TEXT | OPTS_SHARED)) {
      const opts = this[OPTS];
      const read = (): JobsOptions => (typeof opts === 'string' ? storedOptions(opts, this.parent) : copyOptions(opts));
      if (Object.isFrozen(this)) return onceInSideTable(this, OPTS, read) as JobsOptions;
      this[NOTE_GIVEN]();
      this[OPTS] = read();
      this[ENCODED] = encoded & ~(OPTS_TEXT | OPTS_SHARED);
    }
    return this[OPTS] as JobsOptions;
  }

  /** Keeps the text of options that are read or replaced. */
  private [NOTE_GIVEN](): void {
    if (!(this[ENCODED] & OPTS_TEXT)) return;
    if (Object.isExtensible(this)) this[OPTS_GIVEN] = this[OPTS] as string;
    else sideTable(this)[OPTS_GIVEN] = this[OPTS];
  }

  /** @internal The options that count when the job ends, JSON text; undefined unless the processor has changed them. */
  get [inner.CHANGED_OPTS](): string | undefined {
    // most processors read no options: then there is no text to compare with, nor a field for it
    if (this[ENCODED] & OPTS_TEXT) return undefined;
    const given = this[OPTS_GIVEN] ?? (Object.isExtensible(this) ? undefined : (sideTable(this)[OPTS_GIVEN] as string));
    if (given === undefined) return undefined;
    const now = endingOptions(this.opts);
    return now === endingOptions(storedOptions(given, undefined)) ? undefined : now;
  }

  /** @internal The text of its options, unless somebody has read or replaced them. */
  get [inner.OPTIONS_TEXT](): string | undefined {
    return this[ENCODED] & OPTS_TEXT ? (this[OPTS] as string) : undefined;
  }

  set opts(opts: JobsOptions) {
    this[NOTE_GIVEN]();
    this[ENCODED] &= ~(OPTS_TEXT | OPTS_SHARED);
    this[OPTS] = opts;
  }

  /**
   * What the processor returned, as it comes back from JSON.
   * @defaultValue null
   */
  get returnvalue(): ReturnType {
    if (this[ENCODED] & RETURNVALUE_TEXT) return this[DECODED](RETURNVALUE, RETURNVALUE_TEXT, parse) as ReturnType;
    return this[RETURNVALUE] as ReturnType;
  }

  set returnvalue(value: ReturnType) {
    this[ENCODED] &= ~RETURNVALUE_TEXT;
    this[RETURNVALUE] = value;
  }

  /**
   * Stack traces of the failed tries, oldest first.
   * @defaultValue null on a job just added
   */
  get stacktrace(): string[] | null {
    if (this[ENCODED] & STACKTRACE_TEXT) return this[DECODED](STACKTRACE, STACKTRACE_TEXT, tracesFrom) as string[];
    return this[STACKTRACE] as string[] | null;
  }

  set stacktrace(traces: string[] | null) {
    this[ENCODED] &= ~STACKTRACE_TEXT;
    this[STACKTRACE] = traces;
  }

  /** The id of the group that the job has, if it has one. Not in BullMQ; the paid edition has it. */
  get gid(): string | undefined {
    return this.opts.group?.id;
  }

  /** Name of the queue. */
  get queueName(): string {
    return this.queue.name;
  }

  /** Prefix of the queue's qualified name; empty when it has none. */
  get prefix(): string {
    const { name, qualifiedName } = this.queue;
    return qualifiedName.length > name.length ? qualifiedName.slice(0, -name.length - 1) : '';
  }

  /** `<prefix>:<queue name>` */
  get queueQualifiedName(): string {
    return this.queue.qualifiedName;
  }

  /** Key of something that belongs to the queue: `<prefix>:<queue name>:<type>`. */
  protected toKey(type: string): string {
    return this.queue.toKey(type);
  }

  // ---- Making jobs

  /* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */

  /**
   * Adds a job to the queue.
   * @returns the job, with its id: that of the job that exists already when the id is taken
   * @throws (rejects) Error with BullMQ's text for options it refuses, TypeError for data that has no JSON form
   */
  static create<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    name: N,
    data: T,
    opts?: JobsOptions,
  ): Promise<Job<T, R, N>> {
    return createJob<Job<T, R, N>>(this, queue, name, data, opts);
  }

  /**
   * Adds many jobs. All are checked before the first is sent; ids are handed out in the order of the array.
   * @throws (rejects) as {@link Job.create}
   */
  static createBulk<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    jobs: { name: N; data: T; opts?: BulkJobOptions }[],
  ): Promise<Job<T, R, N>[]> {
    return createJobs<Job<T, R, N>>(this, queue, jobs);
  }

  /** The job of this id, or undefined when there is none. */
  static async fromId<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    jobId: string,
  ): Promise<Job<T, R, N> | undefined> {
    if (!jobId) return undefined;
    const id = String(jobId);
    const found = await callAbout(queue, id, queue[COMMANDS].native.getJob(id));
    if (!found) return undefined;
    const job = this.fromNative<T, R, N>(queue, found);
    job.id = jobId; // as in BullMQ, also where it is a number
    return job;
  }

  /** A job from its plain form, as `asJSON()` returns it. Does no I/O. */
  static fromJSON<T = any, R = any, N extends string = string>(
    queue: JobQueue,
    json: JobJson,
    jobId?: string,
  ): Job<T, R, N> {
    const data = JSON.parse(json.data || '{}') as T;
    const job = new this<T, R, N>(queue, json.name as N, data, json.opts, json.id || jobId);
    adoptPlainJob(job, json);
    bearMembers(job, Job.prototype);
    return job;
  }

  /**
   * Job options from the text they are stored as.
   * @param optsDecode names of options by the short names of the text; unless given, BullMQ's
   */
  static optsFromJSON(rawOpts?: string, optsDecode?: Record<string, string>): JobsOptions {
    return optionsFromText(rawOpts, optsDecode);
  }

  /** @internal A job as a getter found it. */
  static fromNative<T = any, R = any, N extends string = string>(queue: JobQueue, found: NativeJob): Job<T, R, N> {
    if (!isCustom(this)) return this.plainFromNative(queue, found);
    return Job.remade(Job.plainFromNative<T, R, N>(queue, found), (json, id) =>
      this.fromJSON<T, R, N>(queue, json, id),
    );
  }

  /** @internal The same, whatever the user's class says. */
  static plainFromNative<T = any, R = any, N extends string = string>(queue: JobQueue, found: NativeJob): Job<T, R, N> {
    const job = new this<T, R, N>(queue, found.name as N, undefined as T, BLANK, found.id);
    job[HOLD_TEXTS](found.data, found.opts, found.extra.stacktrace);
    job.delay = 0;
    job.timestamp = found.timestamp;
    job.processedOn = found.processedOn || undefined;
    job[ADOPT_EXTRA](found.extra);
    bearMembers(job, Job.prototype);
    return job;
  }

  /** @internal A job that was read stands in an object that code of the user's makes of it. */
  static remade<J extends Job>(read: Job, make: (json: JobJson, id: string) => J): J {
    const job = make(read[inner.AS_STORED](), read.id as string);
    if (read.token !== undefined) job.token = read.token;
    const opts = read[OPTS];
    if (typeof opts === 'string' && Object.isExtensible(job)) job[OPTS_GIVEN] = opts;
    return job;
  }

  /** @internal A job as a worker receives it: one that was never touched before has no `extra`. */
  static fromDelivery(
    queue: JobQueue,
    id: string,
    name: string,
    data: string,
    opts: string,
    timestamp: number,
    processedOn: number,
    token: string,
    processedBy: string | undefined,
    extra: NativeJobExtra | undefined,
    siblings: NativeSiblings | undefined,
  ): Job {
    const job = new this(queue, name, undefined, BLANK, id);
    job[HOLD_TEXTS](data, opts, undefined);
    job.delay = 0;
    job.attemptsStarted = 1;
    job.timestamp = timestamp;
    // a clock that stands at 0 tells no time, as in BullMQ
    job.processedOn = processedOn || undefined;
    job.token = token;
    job.processedBy = processedBy;
    if (extra) {
      job[STACKTRACE] = extra.stacktrace;
      job[ADOPT_EXTRA](extra);
    } else if (siblings) {
      job.parentKey = siblings.parentKey;
      job.parent = parentFromText(siblings.parent);
    }
    return job;
  }
  /* eslint-enable @typescript-eslint/no-explicit-any */

  private [HOLD_TEXTS](data: string, opts: string, stacktrace: string | undefined): void {
    this[DATA] = data;
    this[OPTS] = opts;
    this[STACKTRACE] = stacktrace;
    this[ENCODED] = DATA_TEXT | OPTS_TEXT | STACKTRACE_TEXT;
  }

  private [ADOPT_EXTRA](extra: NativeJobExtra): void {
    if (extra.id !== undefined) this.id = extra.id;
    if (extra.progress !== undefined)
      this.progress = parseStored<ProgressType | null>(extra.progress, null) ?? (0 as ProgressType);
    if (extra.returnvalue !== undefined) {
      this[RETURNVALUE] = extra.returnvalue;
      this[ENCODED] |= RETURNVALUE_TEXT;
    }
    if (extra.failedReason !== undefined) this.failedReason = extra.failedReason;
    if (extra.deferredFailure !== undefined) this.deferredFailure = extra.deferredFailure;
    if (extra.delay !== undefined) this.delay = extra.delay;
    if (extra.priority !== undefined) this.priority = extra.priority;
    if (extra.attemptsStarted !== undefined) this.attemptsStarted = extra.attemptsStarted;
    if (extra.attemptsMade !== undefined) this.attemptsMade = extra.attemptsMade;
    if (extra.stalledCounter !== undefined) this.stalledCounter = extra.stalledCounter;
    if (extra.finishedOn) this.finishedOn = extra.finishedOn;
    // the name of the worker that takes it comes first
    this.processedBy ??= extra.processedBy;
    if (extra.parentKey !== undefined) this.parentKey = extra.parentKey;
    if (extra.parent !== undefined) this.parent = parentFromText(extra.parent);
    if (extra.deduplicationId !== undefined) this.deduplicationId = extra.deduplicationId;
    if (extra.repeatJobKey !== undefined) {
      this.repeatJobKey = extra.repeatJobKey;
      // an iteration owns no deduplication id, so that none is stored beside its options
      const opts = this[OPTS];
      if (typeof opts === 'string' && opts.includes('"deduplication"')) {
        this.deduplicationId ??= this.opts.deduplication?.id;
      }
    }
  }

  // ---- How the job ended

  /** @internal The processor returned. As in BullMQ an empty value shows as undefined; what is stored is exact. */
  [inner.RECORD_RESULT](value: ReturnType): void {
    this[ENCODED] &= ~RETURNVALUE_TEXT;
    this[RETURNVALUE] = value || undefined;
  }

  /** @internal The completion is in the queue. */
  [inner.RECORD_COMPLETION](finishedOn: number | undefined): void {
    this.finishedOn = finishedOn;
    this.attemptsMade += 1;
  }

  /**
   * @internal The processor threw: adds the stack trace.
   * @returns the JSON text of the stack traces to store
   */
  [inner.RECORD_TRACE](error: unknown): string {
    this.updateStacktrace(error as Error);
    return textOfTraces(this.stacktrace ?? []);
  }

  /** Adds the stack of an error that ended a try to `stacktrace`, of which `opts.stackTraceLimit` are kept; subclasses may wrap it. */
  protected updateStacktrace(err: Error): void {
    let traces = this.stacktrace ?? [];
    const { stack } = Object(err) as Partial<Error>;
    if (stack) {
      traces.push(stack);
      const limit = this.opts.stackTraceLimit;
      if (limit === 0) traces = [];
      else if (limit) traces = traces.slice(-limit);
    }
    this.stacktrace = traces;
  }

  /** @internal The failed attempt is in the queue. */
  [inner.RECORD_FAILURE](failure: FailureReply, finishedOn: number | undefined): void {
    this.attemptsMade = failure.attemptsMade;
    if (failure.isFinal) this.finishedOn = finishedOn || undefined;
    this.delay = failure.delay ?? this.delay;
  }

  // ---- Batches

  /** The jobs that the processor is called for: several where its worker has the option `batch`, this one first; else this one alone. */
  getBatch(): Job<DataType, ReturnType, NameType, ProgressType>[] {
    const jobs = batchMember(this)?.jobs ?? [this];
    return [...jobs] as Job<DataType, ReturnType, NameType, ProgressType>[];
  }

  /**
   * Cancelling this job aborts it, and so does the end of its time (`timeout`, `ttl`): known of a job of a batch, while the processor runs it, and of one
   * that `worker.getNextJob` gave. That is yours to end, also then. Not in BullMQ.
   */
  get signal(): AbortSignal | undefined {
    return batchMember(this)?.signal ?? manualHold(this)?.signalOf(this);
  }

  /** Keeps what a processor puts there, the signal that it is given, say, as BullMQ's jobs do. */
  set signal(signal: AbortSignal | undefined) {
    Object.defineProperty(this, 'signal', { value: signal, writable: true, enumerable: true, configurable: true });
  }

  /**
   * The result of this job of a batch, whatever the processor returns.
   * @throws Error unless the processor of a worker with the option `batch` runs it
   */
  setResult(result: ReturnType): void {
    requireBatch(this, 'setResult').said = { result };
  }

  /**
   * Fails this job of a batch, whatever becomes of the others: as if the processor had thrown this for it alone.
   * @throws Error unless the processor of a worker with the option `batch` runs it
   */
  setAsFailed(error: Error): void {
    requireBatch(this, 'setAsFailed').said = { error };
  }

  // ---- Plain forms

  /** The job's fields as real values, without the queue. */
  toJSON(): Omit<this, NotInJobJson> {
    return fieldsOf(this) as Omit<this, NotInJobJson>;
  }

  /** The job's fields with `data`, `returnvalue`, `stacktrace` and `failedReason` as JSON texts. */
  asJSON(): JobJson {
    return toPlainJob(this);
  }

  /** @internal The job as it is stored: `data`, `returnvalue` and `stacktrace` are the texts, and `failedReason`, unlike that of `asJSON()`, the reason itself. */
  [inner.AS_STORED](): JobJson {
    const encoded = this[ENCODED];
    const text = (member: typeof DATA | typeof RETURNVALUE | typeof STACKTRACE, bit: number): unknown =>
      encoded & bit ? this[member] : JSON.stringify(this[member] ?? undefined);
    return storedJob(this, {
      data: text(DATA, DATA_TEXT),
      returnvalue: text(RETURNVALUE, RETURNVALUE_TEXT),
      stacktrace: text(STACKTRACE, STACKTRACE_TEXT),
    });
  }

  /** {@link asJSON} with what a sandboxed processor needs to know of the queue. */
  asJSONSandbox(): JobJsonSandbox {
    const { queueName, queueQualifiedName, prefix } = this;
    return { ...this.asJSON(), queueName, queueQualifiedName, prefix };
  }

  /** @internal Shows the fields, and not the queue with all it holds. */
  [inspect.custom](_depth: number, options: object, inspectValue: typeof inspect): string {
    const fields = Object.entries(this.toJSON()).filter(([, value]) => value !== undefined);
    return `${this.constructor.name} ${inspectValue(Object.fromEntries(fields), options)}`;
  }

  // ---- Commands. All reject with an engine error (`code` -1 to -11) when the job is missing or in the wrong state.

  /** Replaces the job's data. */
  async updateData(data: DataType): Promise<void> {
    const text = encodeData(data);
    this.data = data;
    await this[CALL]((native, id) => native.updateData(id, text));
  }

  /** Stores the job's progress, and emits `progress` on its queue or worker. */
  async updateProgress(progress: ProgressType): Promise<void> {
    this.progress = progress;
    const text = JSON.stringify(progress) ?? 'null';
    await this[CALL]((native, id) => native.updateProgress(id, text));
    this.queue.emit('progress', this, progress);
  }

  /**
   * Adds a row to the job's log.
   * @returns the number of rows now kept: at most `opts.keepLogs`
   */
  async log(logRow: string): Promise<number> {
    return Job.addJobLog(this.queue, this[KNOWN_ID](), logRow, this.opts.keepLogs);
  }

  /**
   * Adds a row to the log of the job of this id.
   * @param keepLogs number of rows to keep, the newest ones; 0 or undefined keeps all
   * @returns the number of rows now kept
   * @throws (rejects) for a `keepLogs` that is no number of rows, though the row is stored, as in BullMQ
   */
  static async addJobLog(queue: JobQueue, jobId: string, logRow: string, keepLogs?: number): Promise<number> {
    const id = String(jobId);
    return callAbout(queue, id, queue[COMMANDS].logRows.add(id, String(logRow ?? ''), rowsOf(keepLogs)));
  }

  /** Removes the job's log, but for the newest `keepLogs` rows; or, with less than 0, as many of the oldest. */
  async clearLogs(keepLogs?: number): Promise<void> {
    const rows = rowsOf(keepLogs);
    await this[CALL]((native, id) => native.clearLogs(id, rows));
  }

  /**
   * Removes the job, with its children unless told otherwise, and emits `removed` on its queue or worker. Does nothing
   * when the job is gone already.
   * @throws (rejects) Error when a worker holds the job
   */
  async remove({ removeChildren = true }: { removeChildren?: boolean } = {}): Promise<void> {
    const id = this[KNOWN_ID]();
    const call = this.queue[COMMANDS].startingParents((native) => native.remove(id, Boolean(removeChildren)));
    const removed = await callAbout(this.queue, id, call);
    if (!removed) throw new Error(`Job ${this.id} could not be removed because it is locked by another worker`);
    this.queue.emit('removed', this);
  }

  /** Puts a finished job back in the waiting list. */
  async retry(state: FinishedStatus = 'failed', opts: RetryOptions = {}): Promise<void> {
    const { resetAttemptsMade, resetAttemptsStarted } = opts;
    const [id, lifo] = [this[KNOWN_ID](), Boolean(this.opts.lifo)];
    await this.queue[COMMANDS].starting((native) =>
      native.retryJob(id, String(state), lifo, Boolean(resetAttemptsMade), Boolean(resetAttemptsStarted), Date.now()),
    );
    // As in BullMQ these become null, which their types do not say.
    const cleared = this as {
      failedReason: unknown;
      finishedOn?: unknown;
      processedOn?: unknown;
      returnvalue: unknown;
    };
    cleared.failedReason = null;
    cleared.finishedOn = null;
    cleared.processedOn = null;
    cleared.returnvalue = null;
    if (resetAttemptsMade) this.attemptsMade = 0;
    if (resetAttemptsStarted) this.attemptsStarted = 0;
  }

  /** Puts a delayed job in the waiting list now. */
  async promote(): Promise<void> {
    await this.queue[COMMANDS].starting((native) => native.promote(this[KNOWN_ID](), Date.now()));
    this.delay = 0;
  }

  /**
   * Makes a delayed job due in `delay` milliseconds from now.
   * @throws (rejects) RangeError for a delay that is no finite number
   */
  async changeDelay(delay: number): Promise<void> {
    // BullMQ takes numbers written as strings.
    const isText = typeof delay === 'string' && (delay as string).trim() !== '';
    const ms = isText ? Number(delay) : delay;
    if (!Number.isFinite(ms)) throw new RangeError('delay must be a finite number of milliseconds');
    await this.queue[COMMANDS].starting((native) => native.changeDelay(this[KNOWN_ID](), ms, Date.now()));
    this.delay = delay;
  }

  /**
   * Changes the job's priority; without `priority` it has none from then on. A job in the waiting list is put behind those of the same
   * priority, or before them with `lifo`; a job in another state takes its place when it comes back in the waiting list.
   * @throws (rejects) Error with BullMQ's text for a priority that `add` refuses
   */
  async changePriority(opts: { priority?: number; lifo?: boolean }): Promise<void> {
    const priority = Number(opts.priority ?? 0);
    checkPriority(priority);
    await this[CALL]((native, id) => native.changePriority(id, priority, Boolean(opts.lifo)));
    this.priority = priority;
  }

  /**
   * Takes the job from `active` to `delayed`; the try is not counted. A processor then throws `DelayedError`.
   * @param timestamp when it is due, epoch milliseconds
   * @param token the processor's token; without one the lock is not checked
   */
  async moveToDelayed(timestamp: number, token?: string): Promise<void> {
    const now = Date.now();
    const left = timestamp - now;
    const delay = left > 0 ? left : 0;
    const due = now + Math.min(delay, LONGEST_DELAY_MS);
    await this[CALL]((native, id) => native.moveToDelayed(id, due, unlockedOr(token), now));
    this.delay = delay;
    manualHold(this)?.release();
    recordJob(this.queue, this, 'delayed');
  }

  /**
   * Takes the job from `active` to the front of the waiting list, or of its priority; the try is not counted. A processor then
   * throws `WaitingError`. Without a token a job in another state stays where it is.
   * @returns milliseconds for which the queue is still rate limited, or 0
   */
  async moveToWait(token?: string): Promise<number> {
    const left = await this[CALL]((native, id) => native.moveToWait(id, unlockedOr(token), Date.now()));
    manualHold(this)?.release();
    recordJob(this.queue, this, 'waiting');
    return left;
  }

  /**
   * Holds the job for another `duration` milliseconds.
   * @returns 1, or 0 when the token does not hold the job
   */
  async extendLock(token: string, duration: number): Promise<number> {
    const id = this[KNOWN_ID]();
    const failed = await callAbout(this.queue, id, extendLocks(this.queue, [{ id, token }], duration));
    return failed.length === 0 ? 1 : 0;
  }

  /**
   * Completes a job that the user took, with `worker.getNextJob`.
   * @param token the one it was taken with; `0` is anybody's
   * @param fetchNext takes the next job in the same step, with the same token
   * @returns `[data, id, 0, 0]` of the next job, which `worker.nextJobFromJobData` makes a job of; `[null, 0, 0, due]`
   * when there is none, with the time at which one is due; or `[]`
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's type: its values go on to `fromJSON`
  moveToCompleted(returnValue: ReturnType, token: string, fetchNext = true): Promise<void | any[]> {
    const call = completeManually(this.queue, this, returnValue, token, fetchNext);
    return callAbout(this.queue, this[KNOWN_ID](), call);
  }

  /**
   * Ends an attempt of a job that the user took: the job is tried again, or fails for good.
   * @returns as {@link moveToCompleted}; undefined when the job is tried again at once
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  moveToFailed<E extends Error>(err: E, token: string, fetchNext = false): Promise<void | any[]> {
    return callAbout(this.queue, this[KNOWN_ID](), failManually(this.queue, this, err, token, fetchNext));
  }

  /** The state the job is in, or `unknown` when it is gone. */
  async getState(): Promise<JobState | 'unknown'> {
    return (await this[CALL]((native, id) => native.getState(id))) as JobState | 'unknown';
  }

  private async [IS_IN](state: JobState): Promise<boolean> {
    return (await this[CALL]((native, id) => native.getState(id))) === state;
  }

  /** Whether the job has completed. */
  isCompleted(): Promise<boolean> {
    return this[IS_IN]('completed');
  }

  /** Whether the job has failed for good. */
  isFailed(): Promise<boolean> {
    return this[IS_IN]('failed');
  }

  /** Whether the job waits for its time. */
  isDelayed(): Promise<boolean> {
    return this[IS_IN]('delayed');
  }

  /** Whether a worker holds the job. */
  isActive(): Promise<boolean> {
    return this[IS_IN]('active');
  }

  /** False for a job with a priority, which is `prioritized`. */
  isWaiting(): Promise<boolean> {
    return this[IS_IN]('waiting');
  }

  /** Whether the job waits for its children. */
  isWaitingChildren(): Promise<boolean> {
    return this[IS_IN]('waiting-children');
  }

  /**
   * Resolves with the job's return value when it has completed.
   * @param queueEvents the `QueueEvents` of the queue; a job that has ended already settles at once
   * @param ttl milliseconds to wait at most
   * @throws (rejects) Error with the failed reason, or when the time is over, the job is gone or its worker closes
   */
  waitUntilFinished(queueEvents: JobEvents, ttl?: number): Promise<ReturnType> {
    return waitUntilFinished<ReturnType>(this.queue, this[KNOWN_ID](), this.name, queueEvents, ttl);
  }

  /**
   * Frees the job's deduplication id if the job still owns it.
   * @returns whether it did
   */
  async removeDeduplicationKey(): Promise<boolean> {
    if (!this.deduplicationId) return false;
    const { native } = this.queue[COMMANDS];
    return (await native.removeDeduplicationKey(String(this.deduplicationId), this[KNOWN_ID]())) === 1;
  }

  // ---- Children

  /**
   * The job's children: all of them, or a page of each kind that is named. A small kind mostly comes whole, whatever
   * `count` says, and of a large one a page may be longer or shorter; a cursor of 0 says that there are no more. Of
   * `failed` a page is those from rank `cursor` on, up to the one before rank `count`.
   */
  async getDependencies(opts: DependenciesOpts = {}): Promise<Dependencies> {
    return this[CALL]((native, id) => readDependencies(native, id, opts));
  }

  /** Numbers of children of the kinds that are true, or of all kinds when none is. */
  async getDependenciesCount(
    opts: { failed?: boolean; ignored?: boolean; processed?: boolean; unprocessed?: boolean } = {},
  ): Promise<{ failed?: number; ignored?: number; processed?: number; unprocessed?: number }> {
    return this[CALL]((native, id) => countDependencies(native, id, opts));
  }

  /** Why the children failed that have the option `ignoreDependencyOnFailure` or `continueParentOnFailure`, by their keys. */
  async getIgnoredChildrenFailures(): Promise<{ [jobKey: string]: string }> {
    return this[CALL](readIgnored);
  }

  /** @deprecated Use getIgnoredChildrenFailures. */
  getFailedChildrenValues(): Promise<{ [jobKey: string]: string }> {
    return this.getIgnoredChildrenFailures();
  }

  /** Gives a command about this job: see {@link callAbout}. */
  private [CALL]<T>(command: (native: NativeQueue, id: string) => Promise<T>): Promise<T> {
    const id = this[KNOWN_ID]();
    return callAbout(this.queue, id, command(this.queue[COMMANDS].native, id));
  }

  private [KNOWN_ID](): string {
    // a job that was asked for by a number has that number; one that was never added is not found
    return String(this.id);
  }

  // ---- Parents and children

  /* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's default: the children's results are of any type */
  /** What the children that completed returned, by their keys: `<qualified name of the queue>:<id>`. */
  async getChildrenValues<CT = any>(): Promise<{ [jobKey: string]: CT }> {
    return this[CALL](readReturned<CT>);
  }
  /* eslint-enable @typescript-eslint/no-explicit-any */

  /**
   * Parks the job until its children have ended; it starts again from its beginning then. A processor throws
   * `WaitingChildrenError` when this gives true.
   * @param token the processor's token
   * @param opts `child`: waits only if this one has not ended
   * @returns false when it waits for nothing: the job stays active
   * @throws (rejects) UnrecoverableError with `code` -9 when a child with `failParentOnFailure` has failed
   */
  async moveToWaitingChildren(token: string, { child }: MoveToWaitingChildrenOpts = {}): Promise<boolean> {
    const childKey = parentKeyOf(child) ?? '';
    const call = this[CALL]((native, id) =>
      native.moveToWaitingChildren(id, String(token ?? ''), childKey, Date.now()),
    );
    const parked = await asUnrecoverable(call);
    if (parked) {
      manualHold(this)?.release();
      recordJob(this.queue, this, 'waiting-children');
    }
    return parked;
  }

  /**
   * Stops the job's parent from waiting for it. The parent starts if it waited for nothing else.
   * @returns whether it did wait
   * @throws (rejects) Error with `code` -1 or -5 when the job or its parent is gone
   */
  async removeChildDependency(): Promise<boolean> {
    const removed = await this.queue[COMMANDS].startingParents((native) =>
      native.removeDependency(this[KNOWN_ID](), String(this.parentKey), Date.now()),
    );
    if (removed) {
      this.parent = undefined;
      this.parentKey = undefined;
    }
    return removed;
  }

  /** Removes what the job waits for, directly or not, but for jobs that a worker holds and those that have failed. */
  async removeUnprocessedChildren(): Promise<void> {
    await this.queue[COMMANDS].startingParents((native) => native.removePendingChildren(this[KNOWN_ID](), Date.now()));
  }
}

markOwn(Job);

// Jobs that fail for the first time mostly fail alike: the text is written once.
let lastTrace: { trace: string; text: string } = { trace: '', text: '[""]' };

function textOfTraces(traces: string[]): string {
  const [trace] = traces;
  // the `stack` of an odd error may be an object, which changes
  if (traces.length !== 1 || typeof trace !== 'string') return JSON.stringify(traces);
  if (trace !== lastTrace.trace) lastTrace = { trace, text: JSON.stringify(traces) };
  return lastTrace.text;
}

// Siblings mostly come one behind the other.
let lastParent: { text: string; parent: ParentKeys } = { text: '', parent: { queueKey: '' } };

/** A reference to a parent, which no other job shares. */
function parentFromText(text: string): ParentKeys {
  if (text !== lastParent.text) lastParent = { text, parent: JSON.parse(text) as ParentKeys };
  return { ...lastParent.parent };
}

/** The options that count when a job ends, JSON text. */
function endingOptions({ attempts, backoff, lifo, removeOnComplete, removeOnFail }: JobsOptions): string {
  return JSON.stringify({ attempts, backoff: Backoffs.normalize(backoff), lifo, removeOnComplete, removeOnFail });
}
