/** How `inspect` and `watch` show reports to people. */
import type { JobTimes } from '../../index.js';
import type { QueueReport } from './queue-report.js';
import { bars, count, duration, plain, rate, table } from './text.js';

const HEADINGS = [
  'QUEUE',
  '>WAITING',
  '>PRIORITY',
  '>DELAYED',
  '>PARENTS',
  '>ACTIVE',
  '>COMPLETED',
  '>FAILED',
  '>DONE/S',
  '>FAILED/S',
  '>WORKERS',
  '>OLDEST',
  '>P95 WAIT',
  '>P95 RUN',
  '15 MINUTES',
  'STATE',
];

/** Queues, one a line. */
export function overview(reports: readonly QueueReport[]): string[] {
  return table(
    HEADINGS,
    reports.map((report) => [
      plain(report.name, 60),
      ...countsOf(report).map(count),
      report.rates ? rate(report.rates.completedPerSecond) : '-',
      report.rates ? rate(report.rates.failedPerSecond) : '-',
      report.workers ? count(report.workers.count) : '?',
      timeOf(report.latency.oldestMs),
      timeOf(report.latency.waiting.p95),
      timeOf(report.latency.running.p95),
      bars(report.minutes) || '-',
      stateOf(report),
    ]),
  );
}

function countsOf({ counts }: QueueReport): number[] {
  const { waiting, prioritized, delayed, active, completed, failed } = counts;
  return [waiting, prioritized, delayed, counts['waiting-children'], active, completed, failed];
}

/** What `watch` says of a server that has not answered for so long. Node's timers may fire a moment early: to the second. */
export function lateLine(ms: number): string {
  return `no answer from the server for ${duration(Math.round(ms / 1_000) * 1_000)}`;
}

/** In a word or two what keeps jobs from starting, if anything does. */
export function stateOf({ paused, limits, workers, counts }: QueueReport): string {
  if (paused) return 'paused';
  if (limits.blockedForMs > 0) return `limited for ${duration(limits.blockedForMs)}`;
  if (limits.concurrency !== null && counts.active >= limits.concurrency) return 'at its concurrency';
  if (workers?.count === 0 && counts.waiting + counts.prioritized > 0) return 'no workers';
  return 'running';
}

/** One queue, one figure a line. */
export function details(report: QueueReport): string[] {
  const { counts, oldest, latency, rates, workers, limits } = report;
  const rows: [string, string][] = [
    ['queue', `${plain(report.name)} (prefix ${plain(report.prefix)})`],
    ['state', stateOf(report)],
    ['waiting', count(counts.waiting) + since(oldest.waiting, 'the first has waited')],
    ['prioritized', count(counts.prioritized)],
    ['delayed', count(counts.delayed) + dueOf(report)],
    ['parents', count(counts['waiting-children'])],
    ['active', count(counts.active) + since(oldest.active, 'the oldest has run')],
    ['completed', `${count(counts.completed)} kept${rates ? `, ${rate(rates.completedPerSecond)} a second` : ''}`],
    ['failed', `${count(counts.failed)} kept${rates ? `, ${rate(rates.failedPerSecond)} a second` : ''}`],
    [
      'rates from',
      rates ? (rates.source === 'metrics' ? "the workers' metrics" : 'two looks at what is kept') : 'nothing',
    ],
    ...minutesOf(report),
    ['could start', latency.oldestMs === null ? 'none' : `the oldest has waited ${duration(latency.oldestMs)}`],
    ...timesOf('in line', latency.waiting),
    ...timesOf('runs', latency.running),
    ...timesOf('to completion', latency.completion),
    ['workers', workers ? `${count(workers.count)}${namesOf(workers.names)}` : 'unknown: the user may not ask'],
    ['schedulers', count(report.schedulers) + pausedOf(report)],
    ...groupsOf(report),
    ['concurrency', limits.concurrency === null ? 'no limit' : `at most ${count(limits.concurrency)} at once`],
    ['rate limit', limits.rate ? `${count(limits.rate.max)} in ${duration(limits.rate.duration)}` : 'none'],
    ['length limit', limits.maxLength === null ? 'none' : `${count(limits.maxLength)} jobs`],
  ];
  return rowsText(rows);
}

/** Figures and their names, one a line. */
export function rowsText(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`);
}

/** A time, or that there is none. */
export function timeOf(ms: number | null): string {
  return ms === null ? '-' : duration(ms);
}

/** Rows where workers count, and measure. */
function minutesOf({ minutes, latency: { addedPerMinute, perMinute } }: QueueReport): [string, string][] {
  const rows: [string, string][] = [];
  if (minutes.length > 0) rows.push(['last minutes', `${bars(minutes)} ended, at most ${count(Math.max(...minutes))}`]);
  if (addedPerMinute + perMinute > 0)
    rows.push(['a minute', `${rate(addedPerMinute)} were added, ${rate(perMinute)} ended, in 5m`]);
  return rows;
}

/** A row where workers have measured jobs of the last minutes. */
function timesOf(what: string, { count: jobs, p50, p95, p99 }: JobTimes): [string, string][] {
  if (jobs === 0) return [];
  return [[what, `p50 ${timeOf(p50)}, p95 ${timeOf(p95)}, p99 ${timeOf(p99)}, of ${count(jobs)} in 5m`]];
}

/** A row where jobs wait in groups. */
function groupsOf({ groups }: QueueReport): [string, string][] {
  const some = Object.entries(groups).filter(([, number]) => number > 0);
  return some.length > 0 ? [['groups', some.map(([status, number]) => `${count(number)} ${status}`).join(', ')]] : [];
}

function since(job: { id: string; ageMs: number } | null, what: string): string {
  return job ? `; ${what} ${duration(job.ageMs)} (job ${plain(job.id, 40)})` : '';
}

function dueOf({ oldest: { delayed } }: QueueReport): string {
  if (!delayed) return '';
  const when = delayed.dueInMs >= 0 ? `due in ${duration(delayed.dueInMs)}` : `due for ${duration(-delayed.dueInMs)}`;
  return `; the next is ${when} (job ${plain(delayed.id, 40)})`;
}

function pausedOf({ pausedSchedulers: ids }: QueueReport): string {
  return ids.length === 0 ? '' : `; paused: ${count(ids.length)}${namesOf(ids)}`;
}

function namesOf(names: readonly string[]): string {
  return names.length === 0 ? '' : ` (${plain(names.join(', '), 100)})`;
}

/** A queue in one line, for logs. */
export function line(report: QueueReport, now: Date): string {
  const { counts, latency, rates, workers } = report;
  const fields = [
    ...Object.entries(counts),
    ['done/s', rates ? rate(rates.completedPerSecond) : '-'],
    ['failed/s', rates ? rate(rates.failedPerSecond) : '-'],
    ['oldest', timeOf(latency.oldestMs).replace(' ', '')],
    ['p95-wait', timeOf(latency.waiting.p95).replace(' ', '')],
    ['p95-run', timeOf(latency.running.p95).replace(' ', '')],
    ['workers', workers?.count ?? '?'],
    ['state', stateOf(report).replaceAll(' ', '-')],
  ];
  return `${now.toISOString()} ${plain(report.name)} ${fields.map(([name, value]) => `${name}=${value}`).join(' ')}`;
}
