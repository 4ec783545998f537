/** What `inspect` and `watch` tell of one group of a queue, and how they show it to people. */
import type { GroupLimit, GroupStatus, Job, Queue } from '../../index.js';
import { agedJob, type AgedJob } from './queue-report.js';
import { rowsText, timeOf } from './report-text.js';
import { count, duration, plain, table } from './text.js';

/** Jobs that are shown of each state. */
const MOST_JOBS = 10;

/** Field names are part of the `--json` output: they stay. Where a queue's report has the same field, it is the same thing. */
export interface GroupReport {
  readonly name: string;
  readonly prefix: string;
  readonly group: string;
  /** Whether the queue is paused, and all groups with it. */
  readonly paused: boolean;
  /** Null: none of its jobs waits, and nothing keeps it from starting some. */
  readonly status: GroupStatus | null;
  readonly counts: { readonly waiting: number; readonly active: number };
  /** For how long the job has waited that could have started first; null where none could start now. */
  readonly oldestMs: number | null;
  /** Turns to one of another group. */
  readonly weight: number;
  /** What is set for this group; what workers say of all groups, only they know. */
  readonly limits: {
    readonly concurrency: number | null;
    readonly rate: GroupLimit | null;
    /** How long none of its jobs may start. */
    readonly blockedForMs: number;
  };
  /** Ten of those that run, in no order, and the ten that start next. */
  readonly jobs: { readonly active: readonly AgedJob[]; readonly waiting: readonly AgedJob[] };
}

/** Reads all of it: some ten commands. */
export async function lookAtGroup(queue: Queue, group: string): Promise<GroupReport> {
  const [paused, status, waiting, active, oldestMs, weight, concurrency, rate, blockedForMs, running, next] =
    await Promise.all([
      queue.isPaused(),
      queue.getGroupStatus(group),
      queue.getGroupJobsCount(group),
      queue.getGroupActiveCount(group),
      queue.getGroupOldest(group),
      queue.getGroupWeight(group),
      queue.getGroupConcurrency(group),
      queue.getGroupRateLimit(group),
      queue.getGroupRateLimitTtl(group),
      queue.findJobs({ states: 'active', group }, { limit: MOST_JOBS }),
      queue.getGroupJobs(group, 0, MOST_JOBS - 1),
    ]);
  const now = Date.now();
  return {
    name: queue.name,
    prefix: queue.opts.prefix ?? 'bull',
    group,
    paused,
    status: status ?? null,
    counts: { waiting, active },
    oldestMs,
    weight,
    limits: { concurrency: concurrency ?? null, rate: rate ?? null, blockedForMs },
    jobs: {
      active: running.jobs.map((job: Job) => agedJob(job, job.processedOn, now)),
      waiting: next.map((job) => agedJob(job, job.timestamp, now)),
    },
  };
}

/** A group of several queues, a queue a line; of one queue its jobs as well. */
export function groupOverview(reports: readonly GroupReport[]): string[] {
  const rows = reports.map((report) => [
    plain(report.name, 60),
    plain(report.group, 60),
    count(report.counts.waiting),
    count(report.counts.active),
    timeOf(report.oldestMs),
    report.limits.concurrency === null ? '-' : count(report.limits.concurrency),
    report.limits.rate ? rateOf(report.limits.rate) : '-',
    groupState(report),
  ]);
  const headings = ['QUEUE', 'GROUP', '>WAITING', '>ACTIVE', '>OLDEST', '>AT ONCE', 'RATE LIMIT', 'STATE'];
  return [...table(headings, rows), ...(reports.length === 1 ? reports.flatMap(jobLines) : [])];
}

/** One group, one figure a line, and its jobs. */
export function groupDetails(report: GroupReport): string[] {
  const { counts, limits } = report;
  return [
    ...rowsText([
      ['queue', `${plain(report.name)} (prefix ${plain(report.prefix)})`],
      ['group', plain(report.group)],
      ['state', groupState(report)],
      ['waiting', count(counts.waiting)],
      ['active', count(counts.active)],
      ['could start', report.oldestMs === null ? 'none' : `the oldest has waited ${duration(report.oldestMs)}`],
      ['weight', String(report.weight)],
      ['concurrency', limits.concurrency === null ? 'none of its own' : `at most ${count(limits.concurrency)} at once`],
      ['rate limit', limits.rate ? rateOf(limits.rate) : 'none of its own'],
    ]),
    ...jobLines(report),
  ];
}

function rateOf({ max, duration: ms }: GroupLimit): string {
  return `${count(max)} in ${duration(ms)}`;
}

/** In a word or two what keeps its jobs from starting, if anything does. */
function groupState({ paused, status, counts, limits }: GroupReport): string {
  if (paused) return 'queue paused';
  if (limits.blockedForMs > 0 && status !== 'paused') return `limited for ${duration(limits.blockedForMs)}`;
  return status ?? (counts.active > 0 ? 'running' : 'no jobs');
}

function jobLines({ jobs }: GroupReport): string[] {
  const rows = (['active', 'waiting'] as const).flatMap((state) =>
    jobs[state].map(({ id, name, ageMs }) => [state, plain(id, 40), plain(name, 30), duration(ageMs)]),
  );
  return rows.length === 0 ? [] : ['', ...table(['JOBS', 'ID', 'NAME', '>FOR'], rows)];
}

/** A group in one line, for logs. */
export function groupLine(report: GroupReport, now: Date): string {
  const { counts, oldestMs } = report;
  const fields = [
    ['group', plain(JSON.stringify(report.group))],
    ...Object.entries(counts),
    ['oldest', timeOf(oldestMs).replace(' ', '')],
    ['state', groupState(report).replaceAll(' ', '-')],
  ];
  return `${now.toISOString()} ${plain(report.name)} ${fields.map(([name, value]) => `${name}=${value}`).join(' ')}`;
}
