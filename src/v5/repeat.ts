/** What BullMQ 5 calls repeatable jobs: job schedulers, whose ids are made of the job's name and when it runs. */
import { rank } from '../native/rank.js';
import { COMMANDS } from '../connection/members.js';
import { engineOptions } from './job-options.js';
import { NotSupportedError } from '../errors/not-supported-error.js';
import { keyOf, keyText } from './repeat-key.js';
import { Job } from './job.js';
import { checkName } from '../add/job-options.js';
import { checkTemplate } from '../scheduler/iteration-options.js';
import { JobScheduler } from '../scheduler/job-scheduler.js';
import { checkRepeat, getNextMillis, iterationOf, toMillis } from '../scheduler/next-run.js';
import type { NativeScheduler } from '../native/types.js';
import type { RepeatBaseOptions as BaseRepeatBaseOptions } from '../options/queue.js';
import type { Given } from './connection.js';
import type { RepeatBaseOptions } from './options.js';
import type { QueueBase } from '../queue/queue-base.js';
import type { RepeatStrategy } from '../types/repeat-strategy.js';
import type { JobsOptions, RepeatOptions, RepeatableJob } from './types.js';

/** A repetition as programs have it: `cron` is `pattern` in BullMQ 2, the other is an option of its cron parser. */
type GivenRepeat = RepeatOptions & { cron?: string; nthDayOfWeek?: number };

/**
 * The repeatable jobs of one queue; `Queue` has methods for most of it.
 * @deprecated as in BullMQ 5: use job schedulers
 * Source: BullMQ 5.81 `Repeat`.
 */
export class Repeat extends JobScheduler {
  private readonly strategy: RepeatStrategy;
  private readonly hashAlgorithm: string;

  /** @param owner a queue or worker, whose connection is used; its jobs belong to it */
  constructor(name: string, opts?: RepeatBaseOptions<Given>, _Connection?: unknown, owner?: QueueBase) {
    super(name, opts as BaseRepeatBaseOptions<Given>, undefined, owner);
    this.strategy = opts?.settings?.repeatStrategy ?? getNextMillis;
    this.hashAlgorithm = opts?.settings?.repeatKeyHashAlgorithm ?? 'md5';
  }

  protected override get Job(): typeof Job {
    return Job;
  }

  /* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's: the types of jobs are the caller's matter */
  /**
   * Makes a scheduler of `opts.repeat`, or changes it, with its next job.
   * @param __namedParameters `override`: false makes what follows the job `opts.jobId` instead, which a worker does by itself
   * @returns the next job; undefined when there is none, because of `limit` or `endDate`, and nothing was stored
   * @throws (rejects) as `queue.upsertJobScheduler`
   */
  async updateRepeatableJob<T = any, R = any, N extends string = string>(
    name: N,
    data: T,
    opts: JobsOptions,
    { override }: { override: boolean },
  ): Promise<Job<T, R, N> | undefined> {
    const { repeat: given, jobId, prevMillis = 0, ...rest } = opts;
    const { repeat, key } = this.read(name, given, prevMillis ? undefined : jobId);
    const template = engineOptions(rest);
    if (template.deduplication) throw new NotSupportedError('the option "deduplication" of a job that repeats');
    if (!override) {
      const follow = { override, producerId: jobId };
      return (await this.upsertJobScheduler<T, R, N>(key, repeat, name, data, template, follow)) as Job<T, R, N>;
    }
    if (repeat.limit !== undefined) repeat.count ||= await this.runsOf(key);
    const next = await this.next(name, repeat, prevMillis);
    if (!next) return undefined;
    checkTemplate(template);
    const scheduler = { id: key, repeat, name: checkName(name), data, opts: template, start: next };
    return this.make<T, R, N>(scheduler, repeat.every ? 0 : next) as Promise<Job<T, R, N>>;
  }
  /* eslint-enable @typescript-eslint/no-explicit-any */

  /** A repetition as the engine takes it, and its key, which goes by what was given. */
  private read(
    name: string,
    given: GivenRepeat = {},
    jobId: string | undefined,
  ): { repeat: RepeatOptions; key: string } {
    const { cron, ...repeat } = given;
    repeat.pattern ??= cron;
    if (repeat.every) repeat.every = Number(repeat.every);
    if (jobId) repeat.jobId = jobId;
    checkRepeat({ ...repeat, immediately: false });
    return { repeat: inUtc(repeat), key: keyOf(name, repeat, this.hashAlgorithm) };
  }

  /** How many runs were before the one that is pending: the same `add` at each start of a program does not begin its count anew. */
  private async runsOf(key: string): Promise<number> {
    const found = await this.getScheduler(key);
    const pending = found && (await Job.fromId(this.owner ?? this, `repeat:${key}:${found.next}`));
    const { repeat = {} }: JobsOptions = pending && !pending.finishedOn ? pending.opts : {};
    return Math.max((repeat.count ?? 1) - 1, 0);
  }

  /** When it runs first, epoch milliseconds; nothing when it does not. */
  private async next(name: string, repeat: RepeatOptions, prevMillis: number): Promise<number | undefined> {
    const now = Date.now();
    const { limit, endDate } = repeat;
    if (limit !== undefined && iterationOf(repeat) > limit) return undefined;
    if (endDate && now > (toMillis(endDate) as number)) return undefined;
    return this.strategy(Math.max(now, prevMillis), repeat, name);
  }

  /**
   * What repeats, by the next run, the last one first unless `asc`; job schedulers are among it.
   * @param start rank of the first, and `end` of the last; negative ones count from the end
   */
  async getRepeatableJobs(start = 0, end = -1, asc = false): Promise<RepeatableJob[]> {
    const found = await this[COMMANDS].native.getSchedulers(rank(start), rank(end), Boolean(asc));
    return found.map(toRepeatableJob);
  }

  /** How many there are; job schedulers are among them. */
  async getRepeatableCount(): Promise<number> {
    return this[COMMANDS].native.countSchedulers();
  }

  /**
   * Removes what the same words have made, and its next job if that is delayed.
   * @returns 0, or 1 when there is none
   */
  async removeRepeatable(name: string, repeat: RepeatOptions, jobId?: string): Promise<number> {
    const given = { ...repeat, jobId: jobId ?? repeat.jobId };
    let missing = await this.removeRepeatableByKey(keyOf(name, given, this.hashAlgorithm));
    // one of `utc` is listed with that as its `tz`, which was perhaps not given
    if (missing && repeat.utc && repeat.tz === 'UTC') {
      missing = await this.removeRepeatableByKey(keyOf(name, { ...given, tz: undefined }, this.hashAlgorithm));
    }
    // one that BullMQ wrote before 5.10, and that was moved here
    return missing && !repeat.key ? this.removeRepeatableByKey(keyText(name, given)) : missing;
  }

  /**
   * Removes what repeats, and its next job if that is delayed.
   * @param repeatJobKey as `getRepeatableJobs` tells it
   * @returns 0, or 1 when there is none
   */
  removeRepeatableByKey(repeatJobKey: string): Promise<number> {
    return this.removeJobScheduler(repeatJobKey);
  }

  /** Id of the job of a run. */
  getRepeatJobKey(_name: string, nextMillis: number, repeatJobKey: string, _data?: unknown): string {
    return `repeat:${repeatJobKey}:${nextMillis}`;
  }
}

function toRepeatableJob({ id, name, next, repeat }: NativeScheduler): RepeatableJob {
  const { endDate, tz, pattern, every } = JSON.parse(repeat) as Record<string, string | number | undefined>;
  return {
    key: id,
    name,
    endDate: Number(endDate) || null,
    tz: (tz as string) || null,
    pattern: (pattern as string) || null,
    every: every ? String(every) : null,
    next,
  };
}

/**
 * A repetition whose `utc`, which outdoes `tz`, is told as `tz`.
 * @throws NotSupportedError for `nthDayOfWeek`
 */
export function inUtc({ nthDayOfWeek, ...repeat }: Omit<GivenRepeat, 'key'>): RepeatOptions {
  if (nthDayOfWeek) throw new NotSupportedError('the repeat option "nthDayOfWeek": write 1#2 for the second Monday');
  return repeat.utc ? { ...repeat, tz: 'UTC' } : repeat;
}
