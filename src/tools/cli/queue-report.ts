/** What `inspect` and `watch` tell of a queue. */
import type { GroupStatus, Job, JobTimes, Metrics, Queue, QueueLatency } from '../../index.js';

/** Jobs by state, in the order of a job's life. */
export const STATES = [
  'waiting',
  'prioritized',
  'delayed',
  'waiting-children',
  'active',
  'completed',
  'failed',
] as const;

export interface AgedJob {
  readonly id: string;
  readonly name: string;
  /** Since it was added, or started. */
  readonly ageMs: number;
}

export interface Rates {
  /** `metrics`: what workers counted; `samples`: what two looks differ by, in which jobs removed when they end are not seen. */
  readonly source: 'metrics' | 'samples';
  readonly completedPerSecond: number;
  readonly failedPerSecond: number;
}

/** Field names are part of the `--json` output: they stay. */
export interface QueueReport {
  readonly name: string;
  readonly prefix: string;
  readonly paused: boolean;
  readonly counts: Readonly<Record<(typeof STATES)[number], number>>;
  readonly oldest: {
    /** The head of the waiting list. */
    readonly waiting: AgedJob | null;
    readonly active: AgedJob | null;
    /** The one that is due next; a time below 0 says for how long it has been due. */
    readonly delayed: { readonly id: string; readonly name: string; readonly dueInMs: number } | null;
  };
  readonly latency: {
    /** For how long the job has waited that could have started first of those that could start now. */
    readonly oldestMs: number | null;
    /** Of the last minutes, as far as workers measure: in line, running, and to completion, ms. */
    readonly waiting: JobTimes;
    readonly running: JobTimes;
    readonly completion: JobTimes;
    /** Jobs that were added, and that ended, a minute. */
    readonly addedPerMinute: number;
    readonly perMinute: number;
  };
  /** Jobs that ended in each of the last minutes, the newest last, where workers count. */
  readonly minutes: readonly number[];
  /** Null before there is anything to compare with. */
  readonly rates: Rates | null;
  /** Null where the user may not ask who is connected. */
  readonly workers: { readonly count: number; readonly names: readonly string[] } | null;
  readonly schedulers: number;
  /** Ids of those that are paused, of the thousand that run next. */
  readonly pausedSchedulers: readonly string[];
  /** Groups that have waiting jobs, by status. */
  readonly groups: Readonly<Record<GroupStatus, number>>;
  readonly limits: {
    readonly concurrency: number | null;
    readonly rate: { readonly max: number; readonly duration: number } | null;
    readonly maxLength: number | null;
    /**
     * How long no job may start: the queue's rate limit is used up, or `rateLimit()` said so. What a worker's own limiter leaves, nobody
     * else knows.
     */
    readonly blockedForMs: number;
  };
}

/** A look at a queue, to be compared with the next one. */
export interface Look {
  readonly report: QueueReport;
  readonly atMs: number;
  /** Jobs that ended since counting began, by the workers' metrics, if workers have counted. */
  readonly ended: { readonly completed: number; readonly failed: number } | undefined;
  /** Workers count still, as far as one can tell. */
  readonly isCounting: boolean;
  /** When the server was asked for workers. */
  readonly workersAtMs: number;
}

/** Metrics that no job has changed for so long say nothing: no job ends, or workers that do not count end them. */
const COUNTING_MS = 120_000;
/** Of so many minutes it is told how many jobs ended. */
const MINUTES = 15;
/** How far back it is told how long jobs took. */
const LATENCY_WINDOW_MS = 300_000;
/** Workers, and paused schedulers, are looked for no more often: the server lists all its clients for it, for each queue. */
const WORKERS_MS = 10_000;
const MOST_SCHEDULERS = 1_000;

/**
 * Reads all of it: some thirteen commands.
 * @param before what rates are since; workers and paused schedulers are as they were then, if that is not long ago
 */
export async function look(queue: Queue, before?: Look): Promise<Look> {
  const startedAtMs = Date.now();
  const known = before && startedAtMs - before.workersAtMs < WORKERS_MS ? before : undefined;
  const [
    counts,
    meta,
    completed,
    failed,
    schedulers,
    limitLeft,
    closedFor,
    groups,
    latency,
    workers,
    pausedSchedulers,
  ] = await Promise.all([
    queue.getJobCounts(...STATES),
    queue.getMeta(),
    queue.getMetrics('completed', 0, MINUTES - 1),
    queue.getMetrics('failed', 0, MINUTES - 1),
    queue.getJobSchedulersCount(),
    queue.getRateLimitTtl(),
    // as many starts as no limit allows: what `rateLimit()` writes
    queue.getRateLimitTtl(Number.MAX_SAFE_INTEGER),
    queue.getGroupsCountByStatus(),
    queue.getLatency({ window: LATENCY_WINDOW_MS }),
    known ? known.report.workers : workersOf(queue),
    known ? known.report.pausedSchedulers : pausedOf(queue),
  ]);
  const oldest = await oldestOf(queue, counts);
  const atMs = Date.now();
  const countedAtMs = Math.max(completed.meta.prevTS, failed.meta.prevTS);
  const ended = countedAtMs > 0 ? { completed: completed.meta.count, failed: failed.meta.count } : undefined;
  const isCounting = atMs - countedAtMs < COUNTING_MS;
  const { max, duration } = meta;
  const report: QueueReport = {
    name: queue.name,
    prefix: queue.opts.prefix ?? 'bull',
    paused: meta.paused === true,
    counts: counts as QueueReport['counts'],
    oldest,
    latency: latencyIn(latency),
    minutes: countedAtMs > 0 ? endedByMinute([completed, failed], atMs) : [],
    rates: null,
    workers,
    schedulers,
    pausedSchedulers,
    groups,
    limits: {
      concurrency: meta.concurrency ?? null,
      rate: max !== undefined && duration !== undefined ? { max, duration } : null,
      maxLength: meta.maxLength ?? null,
      // without a limit of the queue's the first is the window of any worker, used up or not
      blockedForMs: Math.max(0, max === undefined ? closedFor : limitLeft),
    },
  };
  const now = { report, atMs, ended, isCounting, workersAtMs: known?.workersAtMs ?? startedAtMs };
  const rates = before ? ratesBetween(before, now) : isCounting ? ratesOf(completed, failed, atMs) : null;
  return { ...now, report: { ...report, rates } };
}

function latencyIn({ oldest: oldestMs, from: _, to: __, ...figures }: QueueLatency): QueueReport['latency'] {
  return { oldestMs, ...figures };
}

/** The last whole minutes: those behind the last that was counted had no jobs. */
function endedByMinute(counted: readonly Metrics[], now: number): number[] {
  const ended = Array.from({ length: MINUTES }, () => 0);
  for (const { meta, data } of counted) {
    const since = Math.floor(now / 60_000) - Math.floor(meta.prevTS / 60_000);
    for (const [at, jobs] of [meta.count - meta.prevCount, ...data].entries()) {
      const ago = since + at;
      if (ago >= 1 && ago <= MINUTES) ended[MINUTES - ago] += jobs;
    }
  }
  return ended;
}

/** The last whole minute that workers counted. */
function ratesOf(completed: Metrics, failed: Metrics, now: number): Rates {
  const perSecond = ({ meta, data }: Metrics): number => (now - meta.prevTS < COUNTING_MS ? (data[0] ?? 0) / 60 : 0);
  return { source: 'metrics', completedPerSecond: perSecond(completed), failedPerSecond: perSecond(failed) };
}

/** What two looks differ by. Kept jobs may become fewer: that says nothing of how many ended. */
function ratesBetween(before: Look, now: Look): Rates {
  const seconds = Math.max(now.atMs - before.atMs, 1) / 1_000;
  const both = before.ended && now.ended && now.isCounting ? ([before.ended, now.ended] as const) : undefined;
  const [from, to] = both ?? [before.report.counts, now.report.counts];
  return {
    source: both ? 'metrics' : 'samples',
    completedPerSecond: Math.max(0, to.completed - from.completed) / seconds,
    failedPerSecond: Math.max(0, to.failed - from.failed) / seconds,
  };
}

async function oldestOf(queue: Queue, counts: Record<string, number>): Promise<QueueReport['oldest']> {
  const first = async (state: 'waiting' | 'active' | 'delayed'): Promise<Job | undefined> =>
    counts[state] ? (await queue.getJobs(state, 0, 0, true))[0] : undefined;
  const [waiting, active, delayed] = await Promise.all([first('waiting'), first('active'), first('delayed')]);
  const now = Date.now();
  return {
    waiting: waiting ? agedJob(waiting, waiting.timestamp, now) : null,
    active: active ? agedJob(active, active.processedOn, now) : null,
    delayed: delayed
      ? { id: delayed.id ?? '', name: delayed.name, dueInMs: delayedSince(delayed) + delayed.delay - now }
      : null,
  };
}

/** @param since when it was added, or started */
export function agedJob({ id = '', name }: Job, since: number | undefined, now: number): AgedJob {
  return { id, name, ageMs: Math.max(0, now - (since ?? now)) };
}

/** When the delay of a job began: of one that was tried, when that try ended, which comes soon after its start. */
function delayedSince({ timestamp, processedOn }: Job): number {
  return processedOn ?? timestamp;
}

/** Ids of the job schedulers that are paused, of the thousand that run next. */
export async function pausedOf(queue: Queue): Promise<string[]> {
  const next = await queue.getJobSchedulers(0, MOST_SCHEDULERS - 1, true);
  return next.filter(({ paused }) => paused).map(({ key }) => key);
}

async function workersOf(queue: Queue): Promise<QueueReport['workers']> {
  try {
    const workers = await queue.getWorkers();
    const named = workers.map(({ rawname = '' }) => rawname.split(':w:')[1] ?? '');
    return { count: workers.length, names: named.filter((name) => name !== '').sort() };
  } catch (error) {
    if (/NOPERM|permissions/i.test((error as Error).message)) return null;
    throw error;
  }
}
