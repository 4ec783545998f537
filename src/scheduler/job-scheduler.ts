import { rank } from '../native/rank.js';
import { COMMANDS } from '../connection/members.js';
import type { Backend, BackendFactory } from '../connection/backend.js';
import { followingOf, slotOf, strategyOf } from './iterations.js';
import type { Job } from '../job/job.js';
import { noted, type Calls } from '../job/open-calls.js';
import { checkName, optionsFromText, textWithoutNulls } from '../add/job-options.js';
import { checkTemplate, iterationText } from './iteration-options.js';
import { ErrorCode } from '../errors/error-code.js';
import type { CodedError } from '../native/native-error.js';
import type { NativeQueue, NativeScheduler, NativeUpsert } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { JobSchedulerJobOptions, JobSchedulerTemplateOptions, JobsOptions } from '../options/job.js';
import type { RepeatBaseOptions } from '../options/queue.js';
import type { RepeatOptions } from '../options/repeat.js';
import { QueueBase } from '../queue/queue-base.js';
import { checkRepeat, firstAfter, iterationOf, nextRun, toMillis, withNumbers } from './next-run.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { telemetryOf } from '../telemetry/trace.js';
import type { GivenConnection } from '../types/given-connection.js';
import type { JobSchedulerJson } from '../types/job-scheduler-json.js';
import type { RepeatStrategy } from '../types/repeat-strategy.js';
import { SpanKind } from '../types/telemetry.js';

/** Text of data and options that say nothing. */
const EMPTY = '{}';

/** Slot of an upsert that is to be asked again, with the time behind the latest run. */
const ASK_BEHIND = -1;

/** A scheduler as it is to be. */
export interface Scheduler<T, N> {
  readonly id: string;
  readonly repeat: RepeatOptions;
  readonly name: N;
  readonly data: T;
  readonly opts: JobsOptions;
  /** Time before which nothing runs, epoch milliseconds; that of `repeat.startDate` unless given. */
  readonly start?: number;
}

/**
 * Makes jobs again and again: the schedulers of one queue. Their jobs are made by `upsertJobScheduler`, then by the
 * workers that take them. `Queue` has methods for all of it.
 * Source: BullMQ 6.7.0 `JobScheduler`.
 */
export class JobScheduler<B = Backend, ConnectionOptionsType = ConnectionOptions> extends QueueBase<
  B,
  ConnectionOptionsType
> {
  private readonly repeatStrategy: RepeatStrategy;
  /** Upserts under way; each asks the strategy before it is sent. */
  private readonly upserts: Calls = new Set();
  /** Removals and the like under way; each waits for the upserts before it. */
  private readonly removals: Calls = new Set();

  /** @param owner a queue or worker, whose connection is used; its jobs belong to it */
  constructor(
    name: string,
    opts?: RepeatBaseOptions<GivenConnection<ConnectionOptionsType>>,
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
    protected readonly owner?: QueueBase<unknown, unknown>,
  ) {
    super(name, opts, backendFactory, false, owner?.[COMMANDS]);
    this.repeatStrategy = strategyOf(opts);
  }

  /* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's: the types of jobs are the caller's matter */

  /**
   * Makes or changes a scheduler, with its next job.
   * @param options `override`: false makes what follows the job `producerId` instead, which a worker does by itself
   * @returns the next job; undefined when there is none, because of `limit` or `endDate`, and nothing was stored, or because the scheduler is paused
   * @throws (rejects) Error with BullMQ's text for options it refuses; with `code` -10 or -11 when jobs have its id
   */
  async upsertJobScheduler<T = any, R = any, N extends string = string>(
    jobSchedulerId: string,
    repeatOpts: Omit<RepeatOptions, 'key' | 'prevMillis'>,
    jobName: N,
    jobData: T,
    opts: JobSchedulerTemplateOptions,
    { override, producerId }: { override: boolean; producerId?: string },
  ): Promise<Job<T, R, N> | undefined> {
    const repeat = withNumbers(repeatOpts);
    checkRepeat(repeat);
    checkTemplate(opts);
    const name = checkName(jobName);
    const scheduler = { id: jobSchedulerId, repeat, name, data: jobData, opts };
    return override
      ? noted(this.upserts, this.upsert<T, R, N>(scheduler))
      : this.follow<T, R, N>(scheduler, producerId ?? '');
  }

  /** Commands take effect behind the upserts that were called before. */
  private async behindUpserts(): Promise<NativeQueue> {
    if (this.upserts.size > 0) await Promise.allSettled(this.upserts);
    return this[COMMANDS].native;
  }

  private async upsert<T, R, N extends string>(scheduler: Scheduler<T, N>): Promise<Job<T, R, N> | undefined> {
    const { repeat, name, opts } = scheduler;
    const removals = [...this.removals];
    const next = await nextRun(this.repeatStrategy, repeat, opts.prevMillis ?? 0, name);
    if (removals.length > 0) await Promise.allSettled(removals);
    return next === undefined ? undefined : this.make<T, R, N>(scheduler, next);
  }

  /**
   * Stores a scheduler with its next job.
   * @param next time of that job, epoch milliseconds; 0 when the engine knows, which is so with `every`
   */
  protected make<T, R, N extends string>(scheduler: Scheduler<T, N>, next: number): Promise<Job<T, R, N> | undefined> {
    return this.traced(scheduler, (metadata) => this.store<T, R, N>(scheduler, next, metadata));
  }

  private traced<J extends Job>(
    { id, name }: { id: string; name: string },
    add: (metadata: string | undefined) => Promise<J | undefined>,
  ): Promise<J | undefined> {
    return this.trace(SpanKind.PRODUCER, 'add', `${this.name}.${name}`, async (span, metadata) => {
      const job = await add(metadata);
      span?.setAttributes({
        [TelemetryAttributes.JobSchedulerId]: id,
        [TelemetryAttributes.JobId]: job?.id,
      });
      return job;
    });
  }

  private async store<T, R, N extends string>(
    scheduler: Scheduler<T, N>,
    next: number,
    metadata: string | undefined,
  ): Promise<Job<T, R, N> | undefined> {
    const { id, repeat, name, data, opts } = scheduler;
    const { pattern, every, limit, tz, startDate, endDate, overlap, catchUp, jitter } = repeat;
    const repeatOfJob = { ...repeat, count: iterationOf(repeat) };
    const now = Date.now();
    const text = iterationText({ ...opts, telemetry: telemetryOf(opts, metadata) }, repeatOfJob);
    const stored = {
      startDate: toMillis(startDate),
      endDate: toMillis(endDate),
      tz: tz || undefined,
      pattern: pattern || undefined,
      every: every || undefined,
      limit: limit || undefined,
      overlap,
      catchUp,
      jitter,
    };
    const upsert = {
      id,
      name,
      data: JSON.stringify(data) ?? EMPTY,
      template: textWithoutNulls(opts),
      repeat: JSON.stringify(stored),
      opts: text,
      every: every || 0,
      next,
      ...(every && repeat.offset && { offset: repeat.offset }),
      ...(jitter && { jitter }),
      keeps: !repeat.immediately,
      start: Math.max(scheduler.start ?? toMillis(startDate) ?? 0, 0),
    };
    const [slot, delay] = await this.takeSlot(repeat, upsert, now);
    return slot === undefined ? undefined : this.iteration<T, R, N>(scheduler, iterationId(id, slot), text, now, delay);
  }

  /**
   * Takes the slot of the next job. Of a pattern that job may be there already: somebody has promoted it, and it runs. Then the next one is that of the
   * slot behind it. Without a scheduler it is a job of the user's, as which none may be made. Or a worker has just taken the latest run: what follows that
   * is not computed by the clock of this process, which may be ahead.
   */
  private async takeSlot(repeat: RepeatOptions, upsert: NativeUpsert, now: number): Promise<number[]> {
    const { id, name } = upsert;
    for (let { next, after } = upsert; ;) {
      const asked = { ...upsert, next, ...(after !== undefined && { after }) };
      try {
        const made = await this[COMMANDS].starting((native) => native.upsertScheduler(asked, now));
        if (made[0] !== ASK_BEHIND) return made;
        const [found] = await this[COMMANDS].native.getScheduler(id);
        const behind = found && (await firstAfter(this.repeatStrategy, repeat, found.next, name));
        // without one it is upserted as it was
        if (behind !== undefined && behind > found.next) next = behind;
        after = found?.next;
      } catch (error) {
        if ((error as CodedError).code !== ErrorCode.SchedulerJobIdCollision) throw error;
        const [found] = await this[COMMANDS].native.getScheduler(id);
        const behind = found && (await nextRun(this.repeatStrategy, repeat, next, name));
        if (!behind || behind <= next) throw error;
        next = behind;
      }
    }
  }

  private async follow<T, R, N extends string>(
    scheduler: Scheduler<T, N>,
    takenId: string,
  ): Promise<Job<T, R, N> | undefined> {
    const { id, repeat, name, opts } = scheduler;
    const taken = { id: takenId, scheduler: id, name, opts: { ...opts, repeat } };
    const following = await followingOf(taken, this.repeatStrategy);
    if (!following) return undefined;
    const now = Date.now();
    const [slot] = await this[COMMANDS].native.nextIterations([following], now);
    if (!(slot > 0)) return undefined;
    return this.iteration<T, R, N>(scheduler, iterationId(id, slot), following.opts, now, Math.max(slot - now, 0));
  }

  /** The job of this id. */
  private iteration<T, R, N extends string>(
    { id, name, data }: Pick<Scheduler<T, N>, 'id' | 'name' | 'data'>,
    jobId: string,
    text: string,
    now: number,
    delay: number,
  ): Job<T, R, N> {
    const JobClass = this.owner ? this.owner['Job'] : this.Job;
    const opts = { ...(JSON.parse(text) as JobSchedulerJobOptions), jobId, delay, timestamp: now };
    if (!opts.repeat?.every) opts.prevMillis = slotOf(jobId);
    const job = new JobClass<T, R, N>(this.owner ?? this, name, data, opts, jobId);
    job.repeatJobKey = id;
    return job;
  }

  /**
   * Pauses a scheduler, and takes back its next job, unless that has started. Not in BullMQ.
   * @returns whether there is such a scheduler
   */
  pauseJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return noted(this.removals, this.pauseOne(String(jobSchedulerId)));
  }

  private async pauseOne(id: string): Promise<boolean> {
    const native = await this.behindUpserts();
    return native.pauseScheduler(id, Date.now());
  }

  /**
   * Lets a scheduler go on that is paused, with the next run that is not past. Not in BullMQ.
   * @returns whether there is such a scheduler
   * @throws (rejects) as `upsertJobScheduler`
   */
  resumeJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return noted(this.removals, this.resumeOne(String(jobSchedulerId)));
  }

  private async resumeOne(id: string): Promise<boolean> {
    const native = await this.behindUpserts();
    for (;;) {
      const [found] = await native.getScheduler(id);
      if (!found) return false;
      if (found.held == null) return true;
      const resumed = await this.goOn(found, found.held);
      if (resumed != null) return resumed;
    }
  }

  /** Lets a scheduler go on with what it holds; nothing when that is something else by now. */
  private async goOn({ id, name, next: slot }: NativeScheduler, held: string): Promise<boolean | null | undefined> {
    const opts = optionsFromText(held || EMPTY) as JobSchedulerJobOptions;
    const { repeat = {} } = opts;
    const now = Date.now();
    // what is held counts itself already
    const before = { ...repeat, count: (repeat.count ?? 1) - 1 };
    const isToCome = repeat.pattern !== undefined && slot > now;
    let next = !held || isToCome ? slot : await nextRun(this.repeatStrategy, before, 0, name);
    for (;;) {
      const resumption = { id, held, opts: iterationText(opts, repeat), jitter: repeat.jitter ?? 0 };
      try {
        return await this[COMMANDS].starting((native) =>
          native.resumeScheduler({ ...resumption, ...(next !== undefined && { next }) }, now),
        );
      } catch (error) {
        if ((error as CodedError).code !== ErrorCode.SchedulerJobIdCollision || !next) throw error;
        next = await nextRun(this.repeatStrategy, before, next, name);
      }
    }
  }

  /**
   * Adds a job of a scheduler now, also of one that is paused. When it runs next does not change. Not in BullMQ.
   * @returns the job; undefined when there is no such scheduler
   */
  runJobSchedulerNow<T = any, R = any, N extends string = string>(
    jobSchedulerId: string,
  ): Promise<Job<T, R, N> | undefined> {
    return noted(this.removals, this.runOne<T, R, N>(String(jobSchedulerId)));
  }

  private async runOne<T, R, N extends string>(id: string): Promise<Job<T, R, N> | undefined> {
    const native = await this.behindUpserts();
    const [found] = await native.getScheduler(id);
    if (!found) return undefined;
    const name = found.name as N;
    const template = JSON.parse(found.template) as JobSchedulerTemplateOptions;
    return this.traced({ id, name }, async (metadata) => {
      const now = Date.now();
      const opts = { ...template, telemetry: telemetryOf(template, metadata) };
      const text = iterationText(opts, JSON.parse(found.repeat) as RepeatOptions);
      const jobId = await this[COMMANDS].starting((commands) => commands.runScheduler(id, text, now));
      if (jobId == null) return undefined;
      return this.iteration<T, R, N>({ id, name, data: JSON.parse(found.data) as T }, jobId, text, now, 0);
    });
  }

  /** Removes a scheduler, and its next job if that is delayed. @returns 0, or 1 when there is no such scheduler */
  removeJobScheduler(jobSchedulerId: string): Promise<number> {
    return noted(this.removals, this.remove(String(jobSchedulerId)));
  }

  private async remove(id: string): Promise<number> {
    const native = await this.behindUpserts();
    return (await native.removeScheduler(id, Date.now())) ? 0 : 1;
  }

  /** A scheduler as plain data, or undefined when there is none. */
  async getScheduler<D = any>(id: string): Promise<JobSchedulerJson<D> | undefined> {
    const native = await this.behindUpserts();
    const [found] = await native.getScheduler(String(id));
    return found && toJson<D>(found);
  }

  /**
   * Schedulers by their next run, the last one first unless `asc`.
   * @param start rank of the first, and `end` of the last; negative ones count from the end
   */
  async getJobSchedulers<D = any>(start = 0, end = -1, asc = false): Promise<JobSchedulerJson<D>[]> {
    const native = await this.behindUpserts();
    const found = await native.getSchedulers(rank(start), rank(end), Boolean(asc));
    return found.map((scheduler) => toJson<D>(scheduler));
  }
  /* eslint-enable @typescript-eslint/no-explicit-any */

  /** Whether there is a scheduler of this id. */
  async isJobScheduler(id: string): Promise<boolean> {
    const native = await this.behindUpserts();
    return (await native.getScheduler(String(id))).length > 0;
  }

  /** Number of schedulers. */
  async getSchedulersCount(): Promise<number> {
    const native = await this.behindUpserts();
    return native.countSchedulers();
  }

  /** The connection stays open when it is a queue's or a worker's. */
  override close(): Promise<void> {
    return this.owner ? (this.closing ??= Promise.resolve()) : super.close();
  }

  override disconnect(): Promise<void> {
    return this.owner ? Promise.resolve() : super.disconnect();
  }
}

function iterationId(scheduler: string, slot: number): string {
  return `repeat:${scheduler}:${slot}`;
}

function toJson<D>(found: NativeScheduler): JobSchedulerJson<D> {
  const { id, name, next, count, data, template, repeat, offset, held } = found;
  const stored = JSON.parse(repeat) as Partial<JobSchedulerJson<D>>;
  const json: JobSchedulerJson<D> = { key: id, name, next, iterationCount: count, ...stored, offset };
  if (held != null) json.paused = true;
  if (data !== EMPTY || template !== EMPTY) {
    json.template = {
      ...(data !== EMPTY && { data: JSON.parse(data) as D }),
      ...(template !== EMPTY && { opts: JSON.parse(template) as JobSchedulerTemplateOptions }),
    };
  }
  return json;
}
