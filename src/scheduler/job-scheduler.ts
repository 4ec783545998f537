import { rank } from '../native/rank.js';
import { COMMANDS } from '../connection/members.js';
import type { Backend, BackendFactory } from '../connection/backend.js';
import { followingOf, strategyOf } from './iterations.js';
import type { Job } from '../job/job.js';
import { noted, type Calls } from '../job/open-calls.js';
import { checkName, textWithoutNulls } from '../add/job-options.js';
import { checkTemplate, iterationText } from './iteration-options.js';
import { ErrorCode } from '../errors/error-code.js';
import type { CodedError } from '../native/native-error.js';
import type { NativeQueue, NativeScheduler, NativeUpsert } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { JobSchedulerJobOptions, JobSchedulerTemplateOptions, JobsOptions } from '../options/job.js';
import type { RepeatBaseOptions } from '../options/queue.js';
import type { RepeatOptions } from '../options/repeat.js';
import { QueueBase } from '../queue/queue-base.js';
import { checkRepeat, iterationOf, nextRun, toMillis, withNumbers } from './next-run.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { telemetryOf } from '../telemetry/trace.js';
import type { GivenConnection } from '../types/given-connection.js';
import type { JobSchedulerJson } from '../types/job-scheduler-json.js';
import type { RepeatStrategy } from '../types/repeat-strategy.js';
import { SpanKind } from '../types/telemetry.js';

/** Text of data and options that say nothing. */
const EMPTY = '{}';

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
  /** Removals under way; each waits for the upserts before it. */
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
   * @returns the next job; undefined when there is none, because of `limit` or `endDate`, and nothing was stored
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
  protected make<T, R, N extends string>(scheduler: Scheduler<T, N>, next: number): Promise<Job<T, R, N>> {
    const { id, name } = scheduler;
    return this.trace(SpanKind.PRODUCER, 'add', `${this.name}.${name}`, async (span, metadata) => {
      const job = await this.store<T, R, N>(scheduler, next, metadata);
      span?.setAttributes({
        [TelemetryAttributes.JobSchedulerId]: id,
        [TelemetryAttributes.JobId]: job.id,
      });
      return job;
    });
  }

  private async store<T, R, N extends string>(
    scheduler: Scheduler<T, N>,
    next: number,
    metadata: string | undefined,
  ): Promise<Job<T, R, N>> {
    const { id, repeat, name, data, opts } = scheduler;
    const { pattern, every, limit, tz, startDate, endDate } = repeat;
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
      start: Math.max(scheduler.start ?? toMillis(startDate) ?? 0, 0),
    };
    const [slot, delay] = await this.takeSlot(repeat, upsert, now);
    return this.iteration<T, R, N>(scheduler, slot, text, now, delay);
  }

  /**
   * Takes the slot of the next job. Of a pattern that job may be there already: somebody has promoted it, and it runs. Then the next one is that of the
   * slot behind it. Without a scheduler it is a job of the user's, as which none may be made.
   */
  private async takeSlot(repeat: RepeatOptions, upsert: NativeUpsert, now: number): Promise<number[]> {
    const { id, name } = upsert;
    for (let { next } = upsert; ;) {
      try {
        return await this[COMMANDS].starting((native) => native.upsertScheduler({ ...upsert, next }, now));
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
    if (!slot) return undefined;
    return this.iteration<T, R, N>(scheduler, slot, following.opts, now, Math.max(slot - now, 0));
  }

  /** The job that was made for a time. */
  private iteration<T, R, N extends string>(
    { id, name, data }: Scheduler<T, N>,
    slot: number,
    text: string,
    now: number,
    delay: number,
  ): Job<T, R, N> {
    const JobClass = this.owner ? this.owner['Job'] : this.Job;
    const jobId = `repeat:${id}:${slot}`;
    const opts = { ...(JSON.parse(text) as JobSchedulerJobOptions), jobId, delay, timestamp: now };
    if (!opts.repeat?.every) opts.prevMillis = slot;
    const job = new JobClass<T, R, N>(this.owner ?? this, name, data, opts, jobId);
    job.repeatJobKey = id;
    return job;
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

function toJson<D>({ id, name, next, count, data, template, repeat, offset }: NativeScheduler): JobSchedulerJson<D> {
  const stored = JSON.parse(repeat) as Partial<JobSchedulerJson<D>>;
  const json: JobSchedulerJson<D> = { key: id, name, next, iterationCount: count, ...stored, offset };
  if (data !== EMPTY || template !== EMPTY) {
    json.template = {
      ...(data !== EMPTY && { data: JSON.parse(data) as D }),
      ...(template !== EMPTY && { opts: JSON.parse(template) as JobSchedulerTemplateOptions }),
    };
  }
  return json;
}
