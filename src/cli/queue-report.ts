/** What `inspect` and `watch` tell of a queue. */
import type { Job, Metrics, Queue } from '../index.js';

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
  /** Null before there is anything to compare with. */
  readonly rates: Rates | null;
  /** Null where the user may not ask who is connected. */
  readonly workers: { readonly count: number; readonly names: readonly string[] } | null;
  readonly schedulers: number;
  readonly limits: {
    readonly concurrency: number | null;
    readonly rate: { readonly max: number; readonly duration: number } | null;
    readonly maxLength: number | null;
    /** How long no job may start because of the rate limit. */
    readonly blockedForMs: number;
  };
}

/** A look at a queue, to be compared with the next one. */
export interface Look {
  readonly report: QueueReport;
  readonly atMs: number;
  /** Jobs that ended since counting began, by the workers' metrics. */
  readonly ended: { readonly completed: number; readonly failed: number } | undefined;
}

/** Reads all of it: some ten commands. */
export async function look(queue: Queue, before?: Look): Promise<Look> {
  const [counts, meta, completed, failed, schedulers, limitLeft, workers] = await Promise.all([
    queue.getJobCounts(...STATES),
    queue.getMeta(),
    queue.getMetrics('completed', 0, 0),
    queue.getMetrics('failed', 0, 0),
    queue.getJobSchedulersCount(),
    queue.getRateLimitTtl(),
    workersOf(queue),
  ]);
  const oldest = await oldestOf(queue, counts);
  const atMs = Date.now();
  const isCounted = completed.meta.prevTS > 0 || failed.meta.prevTS > 0;
  const ended = isCounted ? { completed: completed.meta.count, failed: failed.meta.count } : undefined;
  const { max, duration } = meta;
  const report: QueueReport = {
    name: queue.name,
    prefix: queue.opts.prefix ?? 'bull',
    paused: meta.paused === true,
    counts: counts as QueueReport['counts'],
    oldest,
    rates: null,
    workers,
    schedulers,
    limits: {
      concurrency: meta.concurrency ?? null,
      rate: max !== undefined && duration !== undefined ? { max, duration } : null,
      maxLength: meta.maxLength ?? null,
      blockedForMs: Math.max(0, limitLeft),
    },
  };
  const rates = before ? ratesBetween(before, { report, atMs, ended }) : ratesOf(completed, failed, isCounted, atMs);
  return { report: { ...report, rates }, atMs, ended };
}

/** Two looks, as far apart as `sampleMs` says, where workers do not count; otherwise one. */
export async function lookWithRates(
  queue: Queue,
  sampleMs: number,
  pause: (ms: number) => Promise<void>,
): Promise<Look> {
  const first = await look(queue);
  if (first.report.rates || sampleMs === 0) return first;
  await pause(sampleMs);
  return look(queue, first);
}

/** The last whole minute that workers counted. */
function ratesOf(completed: Metrics, failed: Metrics, isCounted: boolean, now: number): Rates | null {
  if (!isCounted) return null;
  const perSecond = ({ meta, data }: Metrics): number => (now - meta.prevTS < 120_000 ? (data[0] ?? 0) / 60 : 0);
  return { source: 'metrics', completedPerSecond: perSecond(completed), failedPerSecond: perSecond(failed) };
}

/** What two looks differ by. Kept jobs may become fewer: that says nothing of how many ended. */
export function ratesBetween(before: Look, now: Look): Rates {
  const seconds = Math.max(now.atMs - before.atMs, 1) / 1_000;
  const both = before.ended && now.ended ? ([before.ended, now.ended] as const) : undefined;
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
  const aged = (job: Job | undefined, since: number | undefined): AgedJob | null =>
    job ? { id: job.id ?? '', name: job.name, ageMs: Math.max(0, now - (since ?? now)) } : null;
  return {
    waiting: aged(waiting, waiting?.timestamp),
    active: aged(active, active?.processedOn),
    delayed: delayed
      ? { id: delayed.id ?? '', name: delayed.name, dueInMs: delayed.timestamp + delayed.delay - now }
      : null,
  };
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
