/* eslint-disable max-lines -- BullMQ's `Worker` is one class of some 30 methods, whose docs stand here */
import { COMMANDS, CONNECTION, TARGET } from '../connection/members.js';
import type { Backend, BackendFactory } from '../connection/backend.js';
import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { isFakeClock } from './fake-clock.js';
import { batchOfOne, type Fetched } from './fetched-batch.js';
import { Batches } from './batches.js';
import { Dispatcher } from './dispatcher.js';
import { closeWorker, patience } from './close-worker.js';
import { Deadline } from './deadline.js';
import { delay } from './delay.js';
import { forwardRejection } from '../errors/emit-error.js';
import { engineOptions } from './engine-options.js';
import { rejectWith } from '../errors/reject-with.js';
import { errorFromNative } from '../native/native-error.js';
import { RateLimitError } from '../errors/rate-limit-error.js';
import { WaitingError } from '../errors/waiting-error.js';
import { isCustom } from '../job/custom-class.js';
import { Job } from '../job/job.js';
import { callToLimit } from '../job/open-calls.js';
import { JobScheduler } from '../scheduler/job-scheduler.js';
import { Follower } from '../scheduler/iterations.js';
import { ManualJobs, type ManualJobsOwner } from './manual-jobs.js';
import { native } from '../native/addon.js';
import type { NativeWorker, WorkerMessage } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import {
  checkConcurrency,
  closeTimeoutOf,
  forceOf,
  mostRunning,
  resolveWorkerOptions,
  slotsOf,
  type GetNextJobOptions,
  type ResolvedWorkerOptions,
  type WorkerCloseOptions,
  type WorkerOptions,
} from '../options/worker.js';
import { QueueBase } from '../queue/queue-base.js';
import { checkExpireTime, watchLimiter } from '../options/rate-limiter.js';
import { Readiness } from '../connection/readiness.js';
import { reportConnection } from '../connection/report-connection.js';
import { ChildPool } from '../sandbox/pool.js';
import { processorFile } from '../sandbox/processor-file.js';
import { sandboxed } from '../sandbox/sandbox.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { TracedRuns } from '../telemetry/runs.js';
import { traceInternal } from '../telemetry/trace.js';
import type { GivenConnection } from '../types/given-connection.js';
import type { JobJson } from '../types/job-json.js';
import type { JobProgress } from '../types/job-progress.js';
import type { ObservingProcessor, Processor } from './processor.js';
import { observeWithin, type Observe } from './observe.js';
import { TimeLimits } from './time-limits.js';
import { SpanKind, type Attributes, type Span } from '../types/telemetry.js';
import type { WorkerListener } from './worker-listener.js';

// Symbols, not `#` names: a Proxy around a worker has none of those, and a subclass may call its members what it likes.
const FOLLOWER: unique symbol = Symbol('follower');
const ASYNC_SCOPE: unique symbol = Symbol('scope');
const ENGINE: unique symbol = Symbol('engine');
const READINESS: unique symbol = Symbol('readiness');
const DISPATCHER: unique symbol = Symbol('dispatcher');
const MANUAL: unique symbol = Symbol('manual');
const BATCHES: unique symbol = Symbol('batches');
const LIMITS: unique symbol = Symbol('limits');
const OBSERVE: unique symbol = Symbol('observe');
const CREATE_LIMITS: unique symbol = Symbol('create limits');
const RUNS: unique symbol = Symbol('runs');
const SEE_LIMITER: unique symbol = Symbol('see limiter');
const WRAPPED: unique symbol = Symbol('wrapped');
const LOCK_DURATION: unique symbol = Symbol('lock duration');
const MAX_RUNNING: unique symbol = Symbol('max running');
const END_RUN: unique symbol = Symbol('end run');
const TRACE_ATTRIBUTES: unique symbol = Symbol('trace attributes');
const CREATE_ENGINE: unique symbol = Symbol('create engine');
const CREATE_DISPATCHER: unique symbol = Symbol('create dispatcher');
const REMAKE: unique symbol = Symbol('remake');
const PROCESS: unique symbol = Symbol('process');
const ACCEPTS_SIGNAL: unique symbol = Symbol('accepts signal');
const RECEIVE: unique symbol = Symbol('receive');
const DELIVER: unique symbol = Symbol('deliver');
const PROCESS_WRAPPED: unique symbol = Symbol('process wrapped');
const REPORT_STALLED: unique symbol = Symbol('report stalled');
const REPORT_LOST_LOCKS: unique symbol = Symbol('report lost locks');
const STOP_RUNNING: unique symbol = Symbol('stop running');
const END_PAUSED: unique symbol = Symbol('end paused');
const CLOSE_ALL: unique symbol = Symbol('close all');
const DEADLINE: unique symbol = Symbol('deadline');
const GATHER: unique symbol = Symbol('gather');
const SET_ROOM: unique symbol = Symbol('set room');
const SCHEDULERS: unique symbol = Symbol('schedulers');

// Taken at load, so that a user's fake timers do not hold up `ready` and `pause`.
const { setImmediate } = globalThis;

const DEFAULT_DELAY_MS = 100;

/** How long a child may go on behind the time of its job, in milliseconds. */
const GRACE_OF_CHILDREN_MS = 500;

/** What async hooks call a worker's handlers and events. */
const SCOPE = 'chasquimq.Worker';

/**
 * Processes the jobs of a queue. The engine takes jobs and stores outcomes, on a thread of its own; the dispatcher runs
 * the processor.
 *
 * @typeParam DataType - type of the jobs' data
 * @typeParam ResultType - type of what the processor returns
 * @typeParam NameType - type of the jobs' names
 * Source: BullMQ 6.7.0 `Worker`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
export class Worker<
  DataType = any,
  ResultType = any,
  NameType extends string = string,
  B = Backend,
  ProgressType extends JobProgress = JobProgress,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueBase<B, ConnectionOptionsType> {
  /* eslint-enable @typescript-eslint/no-explicit-any */

  /** Identifies this worker: it owns the jobs it has taken. */
  readonly id: string = randomUUID();
  /** The options given, with the defaults filled in. */
  declare readonly opts: WorkerOptions<ConnectionOptionsType>;
  /** What is called for each job. As in BullMQ, its type does not say that a worker without a processor has none. */
  protected processFn!: Processor<DataType, ResultType, NameType, ProgressType>;
  /** Runs processors that are files. */
  protected childPool: ChildPool | undefined;
  /** Whether this worker is paused. */
  protected paused = false;
  /** Whether `run` was called and has not settled. */
  protected running = false;

  /** @internal */
  readonly [FOLLOWER] = new Follower(this);
  /** @internal Handlers and listeners see the `AsyncLocalStorage` stores of whoever made this worker run. */
  [ASYNC_SCOPE] = new AsyncResource(SCOPE);
  /** @internal */
  readonly [ENGINE]: NativeWorker;
  /** @internal */
  readonly [READINESS]: Readiness;
  /** @internal */
  readonly [DISPATCHER]: Dispatcher;
  /** @internal */
  readonly [MANUAL]: ManualJobs;
  /** @internal Runs several jobs in one call of the processor, where that is wanted. */
  readonly [BATCHES]: Batches | undefined;
  /** @internal */
  readonly [LIMITS]: TimeLimits;
  /** @internal */
  readonly [OBSERVE]: Observe;
  /** @internal */
  readonly [RUNS]: TracedRuns | undefined;
  /** @internal Notices a limiter that was changed. */
  readonly [SEE_LIMITER]: () => void;
  /** @internal By token, what `processJob` runs of the worker's own jobs where it was replaced. */
  readonly [WRAPPED] = new Map<string, (job: Job) => Promise<unknown>>();
  /** @internal */
  readonly [LOCK_DURATION]: number;
  /** @internal */
  [MAX_RUNNING]: number;
  /** @internal When a close no longer waits for the jobs that run. */
  readonly [DEADLINE] = new Deadline();
  /** @internal Settles the promise of `run()`. */
  [END_RUN]: (() => void) | undefined = undefined;

  /** What a processor throws to put its job back in the waiting list without counting the try. */
  static RateLimitError(): Error {
    return new RateLimitError();
  }

  /**
   * Starts processing at once, unless there is no processor or `autorun` is false. A processor that is a file runs in
   * child processes, or threads. Of an observable that it returns the last value is the result. An unreachable server is reported by
   * the `error` event.
   * @throws Error with BullMQ's text for a missing connection, a bad name or an option out of range; NotSupportedError
   * for an option, a connection or a kind of processor not supported yet
   */
  constructor(
    name: string,
    processor?:
      | string
      | URL
      | null
      | Processor<DataType, ResultType, NameType, ProgressType>
      | ObservingProcessor<DataType, ResultType, NameType, ProgressType>,
    opts?: WorkerOptions<GivenConnection<ConnectionOptionsType>>,
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
  ) {
    super(name, requireConnection(opts), backendFactory, true);
    const resolved = resolveWorkerOptions(this.opts);
    this.opts = resolved;
    this[LOCK_DURATION] = resolved.lockDuration;
    // of what observes, the last value is the result
    this.createSandbox(processor as string | Processor<DataType, ResultType, NameType, ProgressType>);
    this[MAX_RUNNING] = resolved.concurrency;
    this[BATCHES] = this[GATHER](resolved);

    const { telemetry } = resolved;
    this[RUNS] = telemetry && new TracedRuns(this, telemetry, this[TRACE_ATTRIBUTES]);
    this[OBSERVE] = observeWithin(this[RUNS]);
    this[LIMITS] = this[CREATE_LIMITS](resolved);
    this[ENGINE] = this[CREATE_ENGINE](resolved);
    this[SEE_LIMITER] = watchLimiter(resolved, (limiter) => this[ENGINE].setLimiter(limiter));
    this[DISPATCHER] = this[CREATE_DISPATCHER](resolved);
    this[MANUAL] = new ManualJobs({
      owner: this as ManualJobsOwner,
      follower: this[FOLLOWER],
      native: this[ENGINE],
      JobClass: this.Job,
      createJob: (json, id) => this.createJob(json, id) as Job,
      remake: () => this[REMAKE](),
      process: (job, token, signal) => this[PROCESS](job, token, signal),
      acceptsSignal: this[ACCEPTS_SIGNAL],
      limits: this[LIMITS],
      observe: this[OBSERVE],
      runs: this[RUNS],
    });
    this[READINESS] = new Readiness(() => this[ENGINE].ready(), this[CONNECTION].retryStrategy);
    this[READINESS].wait().then(
      () => {
        setImmediate(() => !this.closing && this.emit('ready'));
      },
      () => {}, // reported by the connection's `error`
    );
    if (typeof this.processFn === 'function' && resolved.autorun) forwardRejection(this, this.run());
  }

  /** @internal */
  [CREATE_ENGINE](opts: ResolvedWorkerOptions<ConnectionOptionsType>): NativeWorker {
    return new native.NativeWorker(
      engineOptions(this[TARGET], this.id, opts),
      (message) => this[ASYNC_SCOPE].runInAsyncScope(() => this[RECEIVE](message)),
      (...job) => this[ASYNC_SCOPE].runInAsyncScope(() => this[DELIVER](batchOfOne(...job))),
    );
  }

  /** @internal */
  [CREATE_DISPATCHER](opts: ResolvedWorkerOptions<ConnectionOptionsType>): Dispatcher {
    return new Dispatcher({
      owner: this,
      native: this[ENGINE],
      ownEmit,
      JobClass: this.Job,
      remake: () => this[REMAKE](),
      // bound: a call less in the stack traces of users' errors
      process: this.processJob === ownProcessJob ? this[PROCESS].bind(this) : this[PROCESS_WRAPPED].bind(this),
      acceptsSignal: this[ACCEPTS_SIGNAL],
      limits: this[LIMITS],
      observe: this[OBSERVE],
      follow: (taken) => this[FOLLOWER].follow(taken),
      concurrency: mostRunning(opts),
      batches: this[BATCHES],
      tokenPrefix: this.id,
      workerName: opts.name ?? undefined,
      policy: opts,
      runs: this[RUNS],
    });
  }

  /**
   * Takes the processor: a function, or a file that children run.
   * @throws Error `File ... does not exist` or `URL ... does not exist in the local file system`; TypeError for what is neither
   */
  protected createSandbox(
    processor: string | URL | null | undefined | Processor<DataType, ResultType, NameType, ProgressType>,
  ): void {
    if (!processor) return;
    if (typeof processor === 'function') {
      this.processFn = processor;
      return;
    }
    const { useWorkerThreads, workerForkOptions, workerThreadsOptions } = this.opts;
    const file = processorFile(processor);
    this.childPool = new ChildPool({ useWorkerThreads, workerForkOptions, workerThreadsOptions });
    this.processFn = sandboxed(file, this.childPool) as Processor<DataType, ResultType, NameType, ProgressType>;
  }

  /** @internal Has what runs one job gather several, which the processor that was given runs in one call. */
  [GATHER]({ batch, concurrency }: ResolvedWorkerOptions<ConnectionOptionsType>): Batches | undefined {
    if (!batch || typeof this.processFn !== 'function') return undefined;
    const process = this.processFn;
    const owner = {
      process: (job: Job, token: string, signal: AbortSignal) =>
        process.call(this, job as Job<DataType, ResultType, NameType, ProgressType>, token, signal),
      begin: (job: Job) => this[LIMITS].begin(job),
      setRoom: (jobs: number) => this[SET_ROOM](jobs),
      gather: async (ms: number) => {
        try {
          return await this[ENGINE].gather(ms);
        } catch (error) {
          if (!this.closing) this.emit('error', error as Error);
          return undefined;
        }
      },
      leaseNumber: () => this[ENGINE].leaseNumber(),
    };
    const batches = new Batches(owner, batch, slotsOf(concurrency));
    this.processFn = (job, token, signal) => {
      // else a user has taken the job
      const isOwn = token!.startsWith(`${this.id}:`);
      const run = isOwn ? batches.run(job as Job, token!, signal) : batches.runAlone(job as Job, token!, signal);
      return run as Promise<ResultType>;
    };
    return batches;
  }

  /** @internal How long jobs may run. */
  [CREATE_LIMITS]({ ttl, killAfter }: ResolvedWorkerOptions<ConnectionOptionsType>): TimeLimits {
    return new TimeLimits({
      ttl,
      killAfter: killAfter ?? (this.childPool ? GRACE_OF_CHILDREN_MS : Infinity),
      isToldBegin: this[BATCHES] !== undefined,
      kill: (job) => {
        // a child runs a batch until the time of all its jobs is over
        const call = this[BATCHES] ? this[BATCHES].giveUp(job) : job;
        return call !== undefined && this.childPool?.killRunning(call) === true;
      },
      observe: this[OBSERVE],
      report: (error) => this.emit('error', error),
    });
  }

  /** @internal Runs the processor, within a span if there is telemetry. */
  [PROCESS](job: Job, token: string, signal?: AbortSignal): Promise<ResultType> {
    const call = job as Job<DataType, ResultType, NameType, ProgressType>;
    if (!this[RUNS]) return this.callProcessJob(call, token, signal);
    return this[RUNS].run(job, () => this.callProcessJob(call, token, signal));
  }

  /**
   * @internal Runs a job within `processJob`, where somebody has replaced it: a subclass, or a tracer that patches the class. How the job
   * ended is stored as ever. An error of the replacement is no end of the job; one that it does not run stays active until it counts as stalled.
   */
  [PROCESS_WRAPPED](job: Job, token: string, signal?: AbortSignal): Promise<ResultType> {
    return new Promise((resolve, reject) => {
      this[WRAPPED].set(token, (given) => {
        this[WRAPPED].delete(token);
        const run = (async () => await this[PROCESS](given, token, signal))();
        resolve(run);
        return run;
      });
      const call = job as Job<DataType, ResultType, NameType, ProgressType>;
      void (async () => this.processJob(call, token, () => false))()
        .catch((error) => this.emit('error', error as Error))
        .then(() => {
          this[WRAPPED].delete(token);
          reject(new WaitingError());
        });
    });
  }

  /** @internal What spans tell of this worker. */
  get [TRACE_ATTRIBUTES](): Attributes {
    return { [TelemetryAttributes.WorkerId]: this.id, [TelemetryAttributes.WorkerName]: this.opts.name };
  }

  /** @internal */
  get [ACCEPTS_SIGNAL](): boolean {
    return this.processFn !== undefined && (this.childPool !== undefined || this.processFn.length >= 3);
  }

  /** Calls the processor; subclasses may wrap it. */
  protected callProcessJob(
    job: Job<DataType, ResultType, NameType, ProgressType>,
    token: string,
    signal?: AbortSignal,
  ): Promise<ResultType> {
    return this.processFn(job, token, signal);
  }

  /** @internal How jobs are made where a subclass brings its own `createJob`, or class of jobs. */
  [REMAKE](): ((read: Job) => Job) | undefined {
    if (this.createJob === ownCreateJob && !isCustom(this.Job)) return undefined;
    return (read) => Job.remade(read, (json, id) => this.createJob(json, id) as Job);
  }

  /** Makes a job of what is stored, or of the first two values of `job.moveToCompleted` or `job.moveToFailed`; subclasses may bring their own. */
  protected createJob(data: JobJson, jobId: string): Job<DataType, ResultType, NameType, ProgressType> {
    return this.Job.fromJSON(this, data, jobId) as Job<DataType, ResultType, NameType, ProgressType>;
  }

  // ---- Messages of the engine

  /** @internal What a message says happened in this order: outcomes stored, then jobs found stalled or none left, then new jobs. */
  [RECEIVE](message: WorkerMessage): void {
    if (message.flushed !== undefined) this[DISPATCHER].acknowledge(message);
    if (message.stalled) this[REPORT_STALLED](message.stalled);
    if (message.leaseLost) this[REPORT_LOST_LOCKS](this[DISPATCHER].runningIds());
    if (message.locksLost) {
      const running = new Set(this[DISPATCHER].runningIds());
      this[REPORT_LOST_LOCKS](message.locksLost.filter((id) => running.has(id)));
    }
    if (message.jobs) this[DELIVER](message.jobs);
    if (message.cancelled) {
      this[DISPATCHER].cancelHeld(message.cancelled);
      this[MANUAL].cancelHeld(message.cancelled);
    }
    if (message.drained) this.emit('drained');
    if (message.asksForLife) this[ENGINE].heard();
    if (message.clock) this[ENGINE].tick(Date.now(), isFakeClock());
    if (message.error) this.emit('error', errorFromNative(message.error));
    reportConnection(this, this[READINESS], message, message.connectionError);
  }

  /** @internal */
  [DELIVER](fetched: Fetched): void {
    try {
      this[SEE_LIMITER]();
    } catch (error) {
      this.emit('error', error as Error);
    }
    this[DISPATCHER].deliver(fetched);
  }

  /** @internal */
  [REPORT_STALLED](ids: string[]): void {
    this[RUNS]?.stalled(ids);
    for (const id of ids) this.emit('stalled', id, 'active');
  }

  /** @internal */
  [REPORT_LOST_LOCKS](ids: string[]): void {
    if (ids.length === 0) return;
    // another worker may have what is held for a batch
    this[BATCHES]?.giveBack();
    this.emit('lockRenewalFailed', ids);
    for (const id of ids) this.emit('error', new Error(`could not renew lock for job ${id}`));
  }

  // ---- Life

  /**
   * Starts processing; only needed with `autorun: false`.
   * @returns a promise that settles when the worker stops: at `close()`, or at a `pause()` that waits
   * @throws (rejects) Error `No process function is defined.` or `Worker is already running.`
   */
  async run(): Promise<void> {
    if (!this.processFn) throw new Error('No process function is defined.');
    if (this.running) throw new Error('Worker is already running.');
    if (this.paused || this.closing) return;
    this.running = true;
    this[ASYNC_SCOPE] = new AsyncResource(SCOPE);
    const ended = new Promise<void>((resolve) => (this[END_RUN] = resolve));
    if (this.opts.telemetry && !this.opts.skipStalledCheck) {
      const told = traceInternal(this, 'startStalledCheckTimer', this[TRACE_ATTRIBUTES], () => {});
      forwardRejection(this, told);
    }
    this[DISPATCHER].resume();
    this[ENGINE].run(Date.now(), isFakeClock());
    await ended;
  }

  /** @internal */
  [STOP_RUNNING](): void {
    this.running = false;
    this[END_RUN]?.();
    this[END_RUN] = undefined;
  }

  /** Whether `run` was called and has not settled. */
  isRunning(): boolean {
    return this.running;
  }

  /** Whether this worker is paused. `queue.isPaused()` tells it of the queue. */
  isPaused(): boolean {
    return this.paused;
  }

  /**
   * Stops this worker from taking jobs; the queue goes on for others. Emits `paused`. Jobs that were taken and not
   * started go back to the front of the waiting list.
   * @param doNotWaitActive does not wait for the jobs that are running
   */
  async pause(doNotWaitActive = false): Promise<void> {
    return traceInternal(
      this,
      'pause',
      { ...this[TRACE_ATTRIBUTES], [TelemetryAttributes.WorkerDoNotWaitActive]: doNotWaitActive || undefined },
      async () => {
        if (this.paused) return;
        this.paused = true;
        // A closed worker takes nothing any more, and one that is closing ends by itself.
        if (this.closing) {
          this.emit('paused');
          return;
        }
        this[ENGINE].stopWaiting();
        this[DISPATCHER].pause();
        const quiet = this[ENGINE].pause();
        // What a fetch under way brought goes back. Without a connection nothing is fetched.
        if (!this[READINESS].isDown) await Promise.race([quiet, patience()]);
        if (!doNotWaitActive) await this[END_PAUSED]();
        // else it was resumed meanwhile, which is told already
        if (this.paused) this.emit('paused');
        // as in BullMQ, a pause that waits for nothing is over while the worker still runs
        if (doNotWaitActive) setImmediate(() => void this[END_PAUSED]());
      },
    );
  }

  /** @internal Ends the run as soon as no job is running, unless the worker was resumed. */
  async [END_PAUSED](): Promise<void> {
    await this[DISPATCHER].whenSettled();
    if (this.paused) this[STOP_RUNNING]();
  }

  /** Takes jobs again after `pause`, or starts a worker that was not started (`autorun: false`). Emits `resumed`. */
  async resume(): Promise<void> {
    return traceInternal(this, 'resume', this[TRACE_ATTRIBUTES], async () => {
      if (this.running && !this.paused) return;
      this.paused = false;
      if (this.running && !this.closing) {
        this[DISPATCHER].resume();
        this[ENGINE].run(Date.now(), isFakeClock());
      } else if (typeof this.processFn === 'function' && !this.closing) {
        forwardRejection(this, this.run());
      }
      this.emit('resumed');
    });
  }

  /**
   * Resolves when nothing is left for this worker: no job waits, with a priority or without, and the ends of its own jobs are stored. Jobs of a paused queue, or
   * behind a limit, count. Those that are delayed do not, nor do those that other workers run. Of a worker that is paused, or does not run, it waits for the jobs
   * that run alone. `queue.drain()` removes jobs instead.
   * @throws (rejects) Error `The worker was closed before it was drained`
   */
  async drain(): Promise<void> {
    const takesJobs = (): boolean => this.running && !this.paused && !this.closing;
    // false: it was paused, and may be resumed by now
    while (takesJobs() && !(await this[ENGINE].emptied()));
    if (!this.closing) await this[DISPATCHER].whenSettled();
    if (this.closing) throw new Error('The worker was closed before it was drained');
  }

  override waitUntilReady(): Promise<void> {
    return this[READINESS].wait();
  }

  /**
   * Stops taking jobs, waits for those running, stores their outcomes and disconnects. Emits `closing`, then `closed`.
   * A second call returns the promise of the first; its `timeout` counts if it ends sooner.
   * @param options `force` does not wait for those running: they stay active, and are recovered as stalled. What has ended is recorded, and what did not start
   * goes back, if the server answers within half a second. Given alone, any truthy value that is no object counts, also the signal's name that a signal listener gets.
   * `timeout` waits so many milliseconds for those running. Then their signals are aborted; processors that take one have half a second more to end, and a
   * try that throws meanwhile is not counted, unless by an `UnrecoverableError`. What still runs goes back to the front of the waiting list, its try not counted,
   * and children that run processors are killed. If the server does not answer within half a second, it is recovered as stalled.
   * @throws (rejects) RangeError for a `timeout` that is no number of milliseconds, 0 or more; nothing is closed then
   */
  override close(options: boolean | WorkerCloseOptions = false): Promise<void> {
    try {
      this[DEADLINE].within(closeTimeoutOf(options));
    } catch (error) {
      return rejectWith(error);
    }
    if (this.closing) return this.closing;
    const force = forceOf(options) as boolean;
    // Set before the first step, for listeners of `closing`.
    let closed = (): void => {};
    const closing = (this.closing = new Promise((resolve) => (closed = resolve)));
    const attributes = { ...this[TRACE_ATTRIBUTES], [TelemetryAttributes.WorkerForceClose]: force };
    let ending: Promise<void> | undefined;
    const end = (): Promise<void> => (ending ??= this[CLOSE_ALL](Boolean(force)));
    // a tracer that throws keeps nothing open
    const traced = traceInternal(this, 'close', attributes, end).catch((error) => this.emit('error', error as Error));
    void traced.then(end).then(closed);
    return closing;
  }

  /** @internal */
  async [CLOSE_ALL](force: boolean): Promise<void> {
    const { isUp, isDown } = this[READINESS];
    this[READINESS].stop();
    this.emit('closing', 'closing queue');
    const parts = {
      dispatcher: this[DISPATCHER],
      engine: this[ENGINE],
      commands: this[COMMANDS],
      childPool: this.childPool,
      batches: this[BATCHES],
      deadline: this[DEADLINE],
      lockDuration: this[LOCK_DURATION],
      // jobs may come before it is ready
      isUp: isUp || (!isDown && this[DISPATCHER].holdsJobs),
      report: (error: unknown) => this.emit('error', error as Error),
    };
    await closeWorker(parts, force);
    this[STOP_RUNNING]();
    this.closed = true;
    this.emit('closed');
  }

  /** Disconnects at once, as `close(true)` does. */
  override disconnect(): Promise<void> {
    return this.close(true);
  }

  /** Number of jobs, or batches of them, that this worker runs at once; may be changed while it runs. */
  get concurrency(): number {
    return this[MAX_RUNNING];
  }

  /** @throws Error unless it is a finite number of at least 1 */
  set concurrency(concurrency: number) {
    checkConcurrency(concurrency);
    this[MAX_RUNNING] = concurrency;
    if (this[BATCHES]) this[BATCHES].setConcurrency(slotsOf(concurrency));
    else this[SET_ROOM](concurrency);
  }

  /** @internal So many jobs may run at once from now on. */
  [SET_ROOM](jobs: number): void {
    this[ENGINE].setConcurrency(slotsOf(jobs));
    this[DISPATCHER].setConcurrency(slotsOf(jobs));
  }

  /**
   * Lets no job start for a while: see `Queue.rateLimit`.
   * @deprecated Use queue.rateLimit.
   */
  async rateLimit(expireTimeMs: number): Promise<void> {
    return traceInternal(
      this,
      'rateLimit',
      { [TelemetryAttributes.WorkerId]: this.id, [TelemetryAttributes.WorkerRateLimit]: expireTimeMs },
      async () => {
        await callToLimit(this, this[COMMANDS].native.hold(checkExpireTime(expireTimeMs)));
      },
    );
  }

  /**
   * Starts no job of this job's group for a while. A processor that meets somebody else's limit calls it, then throws `Worker.RateLimitError()`: the job goes back to
   * its group, and the try does not count. Not in BullMQ; the paid edition has it.
   * @param expireTimeMs milliseconds
   * @throws (rejects) Error for a job without a group; with the server's text unless the time is a whole number of at least 1
   */
  async rateLimitGroup(job: Pick<Job, 'opts'>, expireTimeMs: number): Promise<void> {
    const { group } = job.opts;
    if (!group) throw new Error('The job has no group');
    await callToLimit(this, this[COMMANDS].native.limitGroup(group.id, checkExpireTime(expireTimeMs)));
  }

  /**
   * Resolves after a while. The worker itself never calls it.
   * @param milliseconds how long; 100 when it is 0 or left out
   * @param abortController ends the wait when it aborts
   */
  async delay(milliseconds = 0, abortController?: AbortController): Promise<void> {
    await delay(milliseconds || DEFAULT_DELAY_MS, abortController);
  }

  // ---- Manual jobs

  /**
   * Takes the next job, for `lockDuration`, which nothing renews but `job.extendLock`. End it with `job.moveToCompleted`
   * or `job.moveToFailed`. Emits `active`, or `drained` when there was none for the first time.
   * @param token holds the job: any text that nobody else uses
   * @param opts `block: false` does not wait; else a call that follows one that found nothing waits for `drainDelay`
   * @returns the job; undefined when there is none, or the worker is paused or closing
   */
  async getNextJob(
    token: string,
    { block = true }: GetNextJobOptions = {},
  ): Promise<Job<DataType, ResultType, NameType, ProgressType>> {
    const job = await this[MANUAL].next(token, block);
    if (this.opts.telemetry) {
      const attributes = {
        ...this[TRACE_ATTRIBUTES],
        [TelemetryAttributes.WorkerOptions]: JSON.stringify({ block }),
        [TelemetryAttributes.JobId]: job?.id,
      };
      const tell = (span?: Span): void => span?.setAttributes(attributes);
      await this.trace(SpanKind.INTERNAL, 'getNextJob', this.name, tell, job?.opts.telemetry?.metadata);
    }
    // without the `undefined` that may come, as in BullMQ's types
    return job as Job<DataType, ResultType, NameType, ProgressType>;
  }

  /**
   * Runs the processor for a job that `getNextJob` gave, and stores how it ended. A worker calls it for its own jobs where it was replaced;
   * then it settles when the processor has, before the end is stored.
   * @param fetchNextCallback whether to take the next job as well
   * @returns the next job
   */
  async processJob(
    job: Job<DataType, ResultType, NameType, ProgressType>,
    token: string,
    fetchNextCallback: () => boolean = () => true,
  ): Promise<void | Job<DataType, ResultType, NameType, ProgressType>> {
    const runOfLoop = this[WRAPPED].get(token);
    if (runOfLoop) return void (await runOfLoop(job as Job).catch(() => {}));
    const next = await this[MANUAL].process(job as Job, token, fetchNextCallback);
    this[RUNS]?.end(job);
    return next as Job<DataType, ResultType, NameType, ProgressType> | undefined;
  }

  /** Makes a job of the first two values that `job.moveToCompleted` or `job.moveToFailed` gave. Emits `active`. */
  protected async nextJobFromJobData(
    jobData?: JobJson | null,
    jobId?: string,
    token?: string,
  ): Promise<Job<DataType, ResultType, NameType, ProgressType>> {
    const job = await this[MANUAL].fromJobData(jobData, jobId as string, token as string);
    return job as Job<DataType, ResultType, NameType, ProgressType>;
  }

  /**
   * Makes locks last `duration` milliseconds from now.
   * @returns the ids of the jobs that their token does not hold
   */
  async extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]> {
    return this[MANUAL].extendLocks(jobIds, tokens, duration);
  }

  /** Looks for jobs of lost workers from now on, each `stalledInterval`; a worker that runs does so by itself. */
  async startStalledCheckTimer(): Promise<void> {
    await traceInternal(this, 'startStalledCheckTimer', this[TRACE_ATTRIBUTES], () => {
      if (!this.closing) this[ENGINE].scan();
    });
  }

  // ---- Cancelling

  /**
   * Aborts the signal of a running job; what follows is up to the processor.
   * @returns false when the job is not running here, or its processor takes no signal
   */
  cancelJob(jobId: string, reason?: string): boolean {
    return this[DISPATCHER].cancel(jobId, reason) || this[MANUAL].cancel(jobId, reason);
  }

  /** Aborts the signals of all running jobs. */
  cancelAllJobs(reason?: string): void {
    this[DISPATCHER].cancelAll(reason);
    this[MANUAL].cancelAll(reason);
  }

  // ---- Events

  override emit<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    ...args: Parameters<WorkerListener<DataType, ResultType, NameType, ProgressType>[U]>
  ): boolean;
  override emit(event: string, ...args: unknown[]): boolean {
    return super.emit(event, ...args);
  }

  /** Calls `listener` at each event of this name. */
  override on<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    listener: WorkerListener<DataType, ResultType, NameType, ProgressType>[U],
  ): this {
    return super.on(event, listener);
  }

  /** Calls `listener` at the next event of this name. */
  override once<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    listener: WorkerListener<DataType, ResultType, NameType, ProgressType>[U],
  ): this {
    return super.once(event, listener);
  }

  /** Removes a listener. */
  override off<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    listener: WorkerListener<DataType, ResultType, NameType, ProgressType>[U],
  ): this {
    return super.off(event, listener);
  }

  // ---- Job schedulers

  /** @internal */
  [SCHEDULERS]: JobScheduler<B, ConnectionOptionsType> | undefined = undefined;

  /** What {@link jobScheduler} resolves with. */
  protected get _jobScheduler(): JobScheduler<B, ConnectionOptionsType> {
    return (this[SCHEDULERS] ??= new JobScheduler<B, ConnectionOptionsType>(this.name, this.opts, undefined, this));
  }

  /** The schedulers of the queue. It uses the connection of the worker's jobs, and closes with it. */
  get jobScheduler(): Promise<JobScheduler<B, ConnectionOptionsType>> {
    return Promise.resolve(this._jobScheduler);
  }
}

/* eslint-disable @typescript-eslint/unbound-method -- compared, not called */
/** The methods as they are while nobody has replaced them. */
const { processJob: ownProcessJob, emit: ownEmit } = Worker.prototype;
const ownCreateJob = Worker.prototype['createJob'];
/* eslint-enable @typescript-eslint/unbound-method */

/** @throws Error `Worker requires a connection` */
function requireConnection<O extends { connection: unknown }>(opts: O | undefined): O {
  if (!opts?.connection) throw new Error('Worker requires a connection');
  return opts;
}
