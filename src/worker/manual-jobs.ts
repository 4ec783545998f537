/**
 * Jobs that users run themselves: `getNextJob`, `processJob` and what belongs to them. Only the user renews their locks.
 */
import { extendLocks, manualStep } from '../job/manual-step.js';
import { thrownSignal } from '../errors/thrown-signal.js';
import { reasonNotToRun } from '../job/attempt-policy.js';
import type { Follower } from '../scheduler/iterations.js';
import { Job } from '../job/job.js';
import { isObservable } from '../job/observable.js';
import type { NativeCancelled, NativeJob, NativeWorker } from '../native/types.js';
import type { ResolvedWorkerOptions } from '../options/worker.js';
import type { TracedRuns } from '../telemetry/runs.js';
import { ManualHolds } from './manual-holds.js';
import type { Observe } from './observe.js';
import type { TimeLimits } from './time-limits.js';
import type { JobJson } from '../types/job-json.js';
import type { JobQueue } from '../job/minimal-queue.js';

/** Longest wait before the next look at the queue, in milliseconds: a clock may jump. */
const LONGEST_WAIT_MS = 10_000;

// Taken at load, so that a user's fake timers do not hold up jobs.
const clock = performance.now.bind(performance);

/** The worker, as seen from here. */
export interface ManualJobsOwner extends JobQueue {
  readonly opts: ResolvedWorkerOptions<unknown>;
  isPaused(): boolean;
}

export interface ManualJobsOptions {
  owner: ManualJobsOwner;
  native: Pick<NativeWorker, 'attend' | 'waitForJob' | 'wakeAnother'>;
  follower: Follower;
  /** Class of the jobs handed out. */
  JobClass: typeof Job;
  /** Makes a job of its plain form. */
  createJob(json: JobJson, id: string): Job;
  /** As that of the dispatcher. */
  remake(): ((read: Job) => Job) | undefined;
  process(job: Job, token: string, signal?: AbortSignal): unknown;
  acceptsSignal: boolean;
  /** As that of the dispatcher. */
  limits: Pick<TimeLimits, 'of' | 'run'>;
  observe: Observe;
  /** Spans of the jobs' runs, if there is telemetry. */
  runs: TracedRuns | undefined;
}

export class ManualJobs {
  /** The last look found nothing: the next one may wait. */
  private drained = false;
  /** Until when a rate limit holds that a processor met, as `clock` has it. */
  private limitedUntil = 0;
  private readonly holds: ManualHolds;

  constructor(private readonly options: ManualJobsOptions) {
    this.holds = new ManualHolds(options.native, options.limits);
  }

  private get isStopped(): boolean {
    const { owner } = this.options;
    return owner.isPaused() || owner.closing !== undefined;
  }

  // ---- Taking

  /** The next job, held by `token`; undefined when there is none, or the worker is paused or closing. */
  async next(token: string, block: boolean): Promise<Job | undefined> {
    if (typeof token !== 'string') throw new TypeError(`getNextJob needs a token, a string, not ${String(token)}`);
    const until = block && this.drained ? clock() + this.options.owner.opts.drainDelay * 1000 : undefined;
    try {
      return await this.look(token, until);
    } catch (error) {
      if (this.options.owner.closing) return undefined;
      throw error;
    }
  }

  private async look(token: string, until: number | undefined): Promise<Job | undefined> {
    const { owner, native } = this.options;
    let hasWaited = false;
    let due: number | undefined;
    while (!this.isStopped && clock() >= this.limitedUntil) {
      const { job, limited, nextDue } = await manualStep(owner, token, true);
      const active = job && (await this.receive(job, token));
      if (active) return active;
      if (job && active === undefined) return undefined;
      if (job) continue;
      this.emitDrained();
      due = nextDue;
      const left = until === undefined ? 0 : until - clock();
      if (left <= 0 || limited > 0) break;
      const untilDue = due === undefined ? LONGEST_WAIT_MS : Math.max(1, due - Date.now());
      if (!(await native.waitForJob(Math.min(left, untilDue, LONGEST_WAIT_MS)))) return undefined;
      hasWaited = true;
    }
    // Perhaps this wait alone heard of a job, or of when one is due.
    const mayKnow = hasWaited && (this.isStopped || due !== undefined);
    if (mayKnow && !owner.closing) await native.wakeAnother();
    return undefined;
  }

  private receive(found: NativeJob, token: string): Promise<Job | undefined | null> {
    const { owner, JobClass } = this.options;
    const remake = this.options.remake();
    const job = remake ? remake(Job.plainFromNative(owner, found)) : JobClass.plainFromNative(owner, found);
    return this.activate(job, token);
  }

  /** A job of what `moveToCompleted` or `moveToFailed` gave. */
  async fromJobData(jobData: JobJson | null | undefined, jobId: string, token: string): Promise<Job | undefined> {
    if (jobData) return (await this.activate(this.options.createJob(jobData, jobId), token)) ?? undefined;
    this.emitDrained();
    return undefined;
  }

  /** Undefined for an iteration of a job scheduler whose next one cannot be made: it stays active. Null for one that is not to run now. */
  private async activate(job: Job, token: string): Promise<Job | undefined | null> {
    const { owner } = this.options;
    this.drained = false;
    job.token = token;
    const hold = this.holds.take(job);
    const { id = '', repeatJobKey: scheduler, name } = job;
    if (scheduler !== undefined) {
      const refused = await this.options.follower.follow([{ id, scheduler, name, opts: job.opts, token }]);
      const refusal = refused.get(id);
      if (refusal !== undefined) hold.release();
      if (refusal === null) return null;
      if (refusal) {
        owner.emit('error', refusal);
        return undefined;
      }
    }
    owner.emit('active', job, 'waiting');
    return job;
  }

  private emitDrained(): void {
    if (this.drained) return;
    this.drained = true;
    this.options.owner.emit('drained');
  }

  // ---- Running

  /** Runs the processor for a job, and stores how it ended. Gives the next job, if `fetchNext` allows. */
  async process(job: Job, token: string, fetchNext: () => boolean): Promise<Job | undefined> {
    const { owner, acceptsSignal, limits } = this.options;
    const mayFetch = (): boolean => !this.isStopped && fetchNext();
    const hold = this.holds.of(job);
    hold.run();
    let value: unknown;
    try {
      const refusal = reasonNotToRun(job, owner.opts.maxStartedAttempts);
      if (refusal) {
        this.options.runs?.begin(job);
        throw refusal;
      }
      const signal = acceptsSignal ? hold.signalOf(job) : undefined;
      const run = (): unknown => this.options.process(job, token, signal);
      const limit = limits.of(job);
      value = await (limit === undefined ? run() : limits.run(job, limit, hold, run));
      if (isObservable(value)) value = await this.options.observe(job, value, hold);
    } catch (error) {
      return this.failed(job, token, error, mayFetch);
    } finally {
      hold.release();
    }
    try {
      const next = await this.traced(job, () => job.moveToCompleted(value, token, mayFetch()));
      this.emitEnd(job, 'completed', value);
      return await this.afterEnd(next, token);
    } catch (error) {
      owner.emit('error', error);
      return this.failed(job, token, error, mayFetch);
    }
  }

  private async failed(job: Job, token: string, error: unknown, mayFetch: () => boolean): Promise<Job | undefined> {
    const { owner } = this.options;
    try {
      const signal = thrownSignal(error);
      if (signal === 'rateLimited') {
        // a subclass may give nothing
        this.limitedUntil = clock() + ((await this.traced(job, () => job.moveToWait(token))) || 0);
        this.options.runs?.end(job);
        return undefined;
      }
      if (signal === 'moved') {
        this.options.runs?.end(job);
        return mayFetch() ? await this.next(token, false) : undefined;
      }
      const next = await this.traced(job, () => job.moveToFailed(error as Error, token, mayFetch()));
      this.emitEnd(job, 'failed', error);
      return await this.afterEnd(next, token);
    } catch (failure) {
      owner.emit('error', failure);
      return undefined;
    }
  }

  /** Spans of what is done with the job are those of its run. */
  private traced<T>(job: Job, call: () => T): T {
    const { runs } = this.options;
    return runs ? runs.within(job, call) : call();
  }

  private emitEnd(job: Job, became: 'completed' | 'failed', value: unknown): void {
    const { owner, runs } = this.options;
    if (runs) runs.told(job, became, value);
    else owner.emit(became, job, value, 'active');
  }

  private async afterEnd(next: void | unknown[], token: string): Promise<Job | undefined> {
    if (!next) return undefined;
    const [jobData, jobId] = next as [JobJson | null | undefined, string];
    return this.fromJobData(jobData, jobId, token);
  }

  // ---- Locks and signals

  /** Ids of the jobs whose lock could not be extended. */
  extendLocks(ids: string[], tokens: string[], duration: number): Promise<string[]> {
    const locks = ids.map((id, i) => ({ id, token: tokens[i] }));
    return extendLocks(this.options.owner, locks, duration);
  }

  cancel(jobId: string, reason?: string): boolean {
    const controller = this.holds.find(jobId)?.controller;
    controller?.abort(reason);
    return controller !== undefined;
  }

  cancelAll(reason?: string): void {
    for (const { controller } of this.holds.all()) controller?.abort(reason);
  }

  /** Somebody has cancelled these jobs. */
  cancelHeld(jobs: readonly NativeCancelled[]): void {
    this.holds.cancel(jobs);
  }
}
