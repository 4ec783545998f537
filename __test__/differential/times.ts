/** Answers with moments in them, which no two runs have in common: what is due, and for how long a limit holds. */
import type { Job } from 'bullmq';
import { shown } from './values.js';

/** What is due by then may be over by the time it is looked at. */
const SOON_MS = 5_000;

/** Methods of queues that answer with moments. */
export const isOfTime = (method: string): boolean => /JobScheduler|RateLimitTtl/.test(method);

export function timeless(answer: unknown): string {
  if (typeof answer === 'number') return span(answer);
  if (!Array.isArray(answer)) return shown(schedulerOf(answer));
  const all = answer.map((scheduler) => shown(schedulerOf(scheduler)));
  // those that are due at one moment have no order
  return all.toSorted().join('\n');
}

function span(ms: number): string {
  if (ms <= 0) return shown(ms);
  // few things have been counted in a test
  return ms < 20 ? shown(ms) : ms <= SOON_MS ? 'short' : 'long';
}

function schedulerOf(answer: unknown): unknown {
  if (answer === null || typeof answer !== 'object') return answer;
  const { next, startDate, endDate, offset: _, ...rest } = answer as Record<string, unknown>;
  return { ...rest, next: moment(next), startDate: isSet(startDate), endDate: isSet(endDate) };
}

function moment(at: unknown): unknown {
  return typeof at === 'number' ? (at - Date.now() > SOON_MS ? 'later' : 'soon') : at;
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;

/** Whether a scheduler's iterations follow each other within seconds. */
export const isClose = ({ every, pattern }: Readonly<Record<string, unknown>>): boolean =>
  (typeof every === 'number' && every < SOON_MS) || pattern === '* * * * * *';

/** Without what tells whether a job had to wait until it was due: on a slow machine it is due when it is added. */
export const withoutDelays = (events: readonly string[]): string[] =>
  events
    .filter((event) => event !== 'delayed')
    .map((event) => (event === 'waiting prev="delayed"' ? 'waiting' : event));

/** What an upsert gives. */
export function iterationText(job: Job | undefined): string {
  if (!job) return shown(job);
  const { name, data, opts, repeatJobKey, delay } = job;
  const {
    repeat,
    jobId: _id,
    prevMillis: _millis,
    timestamp: _timestamp,
    delay: _delay,
    ...others
  } = opts as Record<string, unknown>;
  const { every, pattern, limit, count } = (repeat ?? {}) as Record<string, unknown>;
  return shown({
    name,
    data,
    repeatJobKey,
    delay: (delay ?? 0) > SOON_MS ? 'long' : 'short',
    others,
    repeat: { every, pattern, limit, count },
  });
}
