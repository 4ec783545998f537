/**
 * How long runs may take: `timeout` of a job, else `ttl` of the worker. When the time of a run is over, its signal is aborted, and it fails, whatever its handler comes
 * to: when that ends, or, where `killAfter` is given, so long behind the signal at the latest.
 *
 * Most jobs have no such time: these pay for a look at the text of their options.
 */
import { OPTIONS_TEXT } from '../job/members.js';
import { NO_OPTIONS } from '../add/job-options.js';
import { JobTimeoutError } from '../errors/job-timeout-error.js';
import { thrownSignal } from '../errors/thrown-signal.js';
import { isThrownForGood } from '../job/attempt-policy.js';
import { batchMember } from '../job/batch-member.js';
import type { Job } from '../job/job.js';
import { isObservable } from '../job/observable.js';
import { isTime, type TimeLimit } from '../options/time-limits.js';
import type { Observe, SignalHolder } from './observe.js';

// Taken at load: a user's fake timers stand still.
const { setTimeout, clearTimeout } = globalThis;

/** Longest time that a timer takes, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

export interface TimeLimitsOptions {
  readonly ttl: TimeLimit | undefined;
  /** Milliseconds for a handler to end once its signal is aborted. */
  readonly killAfter: number;
  /** Whether a run begins when it is told, and not at once: a job may wait for its batch. */
  readonly isToldBegin: boolean;
  /** Nothing is heard of this run any more. Gives whether what runs it is dead. */
  kill(job: Job): boolean;
  readonly observe: Observe;
  /** Is told of handlers that run on. */
  report(error: Error): void;
}

export class TimeLimits {
  /** Of each job, or by its name, unless it has a time of its own. */
  private readonly ofAll: number | undefined;
  private readonly byName: ReadonlyMap<string, number> | undefined;
  /** The options that were read last, and the time that they name. */
  private text = NO_OPTIONS;
  private own: number | undefined = undefined;
  private readonly runs = new Map<Job, Run>();

  constructor(private readonly options: TimeLimitsOptions) {
    const { ttl } = options;
    if (typeof ttl === 'object') this.byName = new Map(Object.entries(ttl));
    else this.ofAll = ttl;
  }

  /** Milliseconds that a run of this job may take. */
  of(job: Job): number | undefined {
    const own = job[OPTIONS_TEXT] === this.text ? this.own : this.read(job);
    return own ?? (this.byName ? this.byName.get(job.name) : this.ofAll);
  }

  private read(job: Job): number | undefined {
    const text = job[OPTIONS_TEXT];
    // somebody has read or replaced them
    if (text === undefined) return timeOf(job.opts);
    this.own = text.includes('"timeout"') ? timeOf(JSON.parse(text) as object) : undefined;
    this.text = text;
    return this.own;
  }

  /**
   * Runs a job that may take `ms` milliseconds.
   * @throws (rejects) JobTimeoutError when it took longer, unless the handler says that the job fails for good, or goes back, or has moved it
   */
  async run(job: Job, ms: number, holder: SignalHolder, process: () => unknown): Promise<unknown> {
    const run = new Run(job, ms, holder, this.options);
    this.runs.set(job, run);
    try {
      if (!this.options.isToldBegin) run.begin();
      const value = await Promise.race([run.end(process), run.killed]);
      if (!run.error) return value;
    } catch (error) {
      if (!run.error || thrownSignal(error) || isThrownForGood(error)) throw error;
    } finally {
      run.stop();
      this.runs.delete(job);
    }
    throw run.error;
  }

  /** The processor is called for the job, which may have a time. */
  begin(job: Job): void {
    this.runs.get(job)?.begin();
  }

  /** No time ends any more. */
  stop(): void {
    for (const run of this.runs.values()) run.stop();
  }
}

/**
 * Calls back once, in any number of milliseconds. Gives what stops it.
 * @param isIdle it keeps no process alive
 */
export function startTimer(ms: number, then: () => void, isIdle = false): () => void {
  let timer: NodeJS.Timeout;
  const wait = (left: number): void => {
    timer = left > LONGEST_MS ? setTimeout(() => wait(left - LONGEST_MS), LONGEST_MS) : setTimeout(then, left);
    if (isIdle) timer.unref();
  };
  wait(ms);
  return () => clearTimeout(timer);
}

/** One run of a job that has a time. */
class Run {
  /** Set once its time is over. */
  error: JobTimeoutError | undefined = undefined;
  /** Rejects when its handler is not waited for any more. */
  readonly killed: Promise<never>;
  private giveUp = (): void => {};
  private stopTimer = (): void => {};

  constructor(
    private readonly job: Job,
    private readonly ms: number,
    private readonly holder: SignalHolder,
    private readonly options: TimeLimitsOptions,
  ) {
    this.killed = new Promise((_, reject) => (this.giveUp = () => reject(this.error!)));
  }

  begin(): void {
    this.stopTimer = startTimer(this.ms, () => this.expire());
  }

  /** What the handler comes to, or the observable that it gives. */
  async end(process: () => unknown): Promise<unknown> {
    const value = await process();
    if (!isObservable(value)) return value;
    // its time was over before there was a signal
    if (this.error) throw this.error;
    return this.options.observe(this.job, value, this.holder);
  }

  stop(): void {
    this.stopTimer();
  }

  private expire(): void {
    const { job, ms } = this;
    const { killAfter } = this.options;
    // the processor has said how this job of its batch ends
    if (batchMember(job)?.said) return;
    this.error = new JobTimeoutError(job.name, job.id, ms);
    if (killAfter < Infinity) this.stopTimer = startTimer(killAfter, () => this.kill());
    this.holder.controller?.abort(this.error);
  }

  private kill(): void {
    const { name, id } = this.job;
    if (!this.options.kill(this.job)) {
      const text = `The handler of job ${name} (id ${id}) runs on after its timeout: its slot is free, and its end is not heard`;
      this.options.report(new Error(text, { cause: this.error }));
    }
    this.giveUp();
  }
}

/** The time that options name. Those of a job may have been stored by others, who mean something else. */
function timeOf({ timeout }: { timeout?: unknown }): number | undefined {
  return isTime(timeout) ? timeout : undefined;
}
