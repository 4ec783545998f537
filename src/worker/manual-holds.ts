/** Jobs that users have taken, as far as they are told of them: each has a signal, which is aborted when the job is cancelled, or its time is over. */
import { JobCancelledError } from '../errors/job-cancelled-error.js';
import { JobTimeoutError } from '../errors/job-timeout-error.js';
import type { Job } from '../job/job.js';
import { holdManually, type ManualHold } from '../job/manual-hold.js';
import type { NativeCancelled, NativeWorker } from '../native/types.js';
import type { SignalHolder } from './observe.js';
import { startTimer, type TimeLimits } from './time-limits.js';

/** Cancelled jobs that are remembered before they are known here. */
const MOST_EARLY = 1000;

// Taken at load, so that a user's fake timers do not hold up jobs.
const clock = performance.now.bind(performance);

export class ManualHolds {
  /** By id. A job of which its user has lost hold is not kept for this. */
  private readonly held = new Map<string, Hold>();
  private readonly lost = new FinalizationRegistry<Hold>((hold) => hold.release());
  /** The answer that brings a job may come behind the message that it is cancelled, or wait for its user. */
  private readonly early = new Map<string, NativeCancelled>();
  private attended = 0;

  constructor(
    private readonly native: Pick<NativeWorker, 'attend'>,
    private readonly limits: Pick<TimeLimits, 'of'>,
  ) {}

  /** A user has this job now. */
  take(job: Job): Hold {
    const hold = new Hold(job, {
      limitOf: (of) => this.limits.of(of),
      attend: (more) => this.attend(more),
      release: () => this.held.get(hold.id) === hold && this.held.delete(hold.id),
    });
    this.held.set(hold.id, hold);
    this.lost.register(job, hold);
    holdManually(job, hold);
    const early = this.early.get(hold.id);
    if (early && this.early.delete(hold.id)) this.cancelOne(early);
    return hold;
  }

  /** That of a job which is to be run. */
  of(job: Job): Hold {
    const hold = this.held.get(String(job.id));
    return hold?.job.deref() === job ? hold : this.take(job);
  }

  find(jobId: string): SignalHolder | undefined {
    return this.held.get(jobId);
  }

  all(): Iterable<SignalHolder> {
    return this.held.values();
  }

  /** Somebody has cancelled these jobs, in whatever process: of those that users took the signals are aborted, and none of them is tried again. */
  cancel(jobs: readonly NativeCancelled[]): void {
    for (const job of jobs) {
      if (job.started === undefined || this.cancelOne(job)) continue;
      const [oldest] = this.early.keys();
      if (this.early.size === MOST_EARLY) this.early.delete(oldest);
      this.early.set(job.id, job);
    }
  }

  private cancelOne({ id, started, reason }: NativeCancelled): boolean {
    const hold = this.held.get(id);
    if (!hold || hold.started !== started) return false;
    hold.cancel(new JobCancelledError(reason));
    return true;
  }

  /** One more whose signal somebody has, or one less. While there are any, the worker looks for what no message tells it of. */
  private attend(more: boolean): void {
    const before = this.attended;
    this.attended += more ? 1 : -1;
    if (before === 0 || this.attended === 0) this.native.attend(more);
  }
}

/** What a hold needs of those it is among. */
interface Among {
  limitOf(job: Job): number | undefined;
  attend(more: boolean): void;
  release(): void;
}

/** That of one job. Whoever has the job has this, not the other way round. */
class Hold implements ManualHold, SignalHolder {
  controller: AbortController | undefined = undefined;
  readonly id: string;
  readonly job: WeakRef<Job>;
  /** When this taking of it began, as the server knows it. */
  readonly started: number | undefined;
  private readonly since = clock();
  private isAttended = false;
  private isReleased = false;
  /** Somebody else ends its time. */
  private isRun = false;
  private stopTimer = (): void => {};

  constructor(
    job: Job,
    private readonly among: Among,
  ) {
    this.id = String(job.id);
    this.job = new WeakRef(job);
    this.started = job.processedOn;
  }

  signalOf(job: Job): AbortSignal {
    const { signal } = (this.controller ??= new AbortController());
    if (this.isAttended || this.isReleased || signal.aborted) return signal;
    this.isAttended = true;
    this.among.attend(true);
    const limit = this.isRun ? undefined : this.among.limitOf(job);
    if (limit !== undefined) {
      const { name, id } = job;
      const expire = (): void => this.controller?.abort(new JobTimeoutError(name, id, limit));
      this.stopTimer = startTimer(limit - (clock() - this.since), expire, true);
    }
    return signal;
  }

  /** A processor runs the job from now on, and its time begins. */
  run(): void {
    this.isRun = true;
    this.stopTimer();
  }

  cancel(error: JobCancelledError): void {
    const job = this.job.deref();
    // a frozen one takes none
    if (job) Reflect.set(job, 'deferredFailure', error.message);
    (this.controller ??= new AbortController()).abort(error);
  }

  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.stopTimer();
    if (this.isAttended) this.among.attend(false);
    this.among.release();
  }
}
