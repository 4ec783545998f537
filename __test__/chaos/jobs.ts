/** What the ledgers say of each job. */
import type { Entry } from './ledger.js';

/** What the event log says of a job that ended. */
export interface Recorded {
  readonly id: string;
  readonly state: 'completed' | 'failed';
  /** Its returnvalue without what fills it (ledger.ts), or why it failed: the last words are the mark of the run, and the job's key. */
  readonly text: string;
}

/** What the event log says of where a job is. */
export interface Moved {
  readonly id: string;
  /** The event. */
  readonly to: string;
}

/** One run of a job's handler. */
export interface Run {
  readonly at: number;
  readonly by: string;
  /** How often the job had been started, and what tells it from all other runs. */
  readonly mark: string;
  /** Its try, and what it begins with: the same for two runs only when the first one was spoiled, or gave its job back. */
  readonly start: string;
  ended?: 'returned' | 'threw';
  endedAt?: number;
  /** It was about to give the job back, to begin anew. */
  isParting?: true;
  /** It has given the job back, and is nobody's outcome. */
  isMoved?: true;
}

export interface JobAccount {
  readonly key: string;
  kind: string;
  removed: boolean;
  acknowledged: boolean;
  /** When it was sent first, and when its sender heard that it is there. */
  sent: number | undefined;
  acknowledgedAt: number | undefined;
  rejected: string | undefined;
  /** Its ids, and when each was first seen. */
  readonly ids: Map<string, number>;
  /** By their marks. */
  readonly runs: Map<string, Run>;
  /** When a worker said `completed`. */
  readonly told: number[];
  /** What became of it when it was cancelled, and when its producer heard of that. */
  cancelled: { readonly became: string; readonly at: number } | undefined;
  /** When anything was noted of it. */
  readonly noted: number[];
  readonly ends: Recorded[];
}

export function jobOf(jobs: Map<string, JobAccount>, key: string): JobAccount {
  let job = jobs.get(key);
  if (!job) {
    job = {
      key,
      kind: 'iteration',
      removed: false,
      acknowledged: false,
      sent: undefined,
      acknowledgedAt: undefined,
      rejected: undefined,
      ids: new Map(),
      runs: new Map(),
      told: [],
      cancelled: undefined,
      noted: [],
      ends: [],
    };
    jobs.set(key, job);
  }
  return job;
}

/** What a program notes of a job when it hears of it from the server, or is about to tell it. */
const JOB_EVENTS = new Set(['acked', 'started', 'ended', 'completed', 'failed', 'cancelled']);

function see({ ids }: JobAccount, id: string, at: number): void {
  ids.set(id, Math.min(at, ids.get(id) ?? at));
}

/**
 * A master that is gone may take a number along that its successor gives again: an id may be that of several jobs. What is `kept` of them comes first:
 * one whose producer was killed before it heard the id, and that never ran, is known by nothing else.
 */
export function keysById(
  jobs: ReadonlyMap<string, JobAccount>,
  kept: readonly { readonly id: string; readonly key: string }[],
): Map<string, string[]> {
  const keys = new Map<string, string[]>();
  for (const { id, key } of kept) keys.set(id, [key]);
  for (const { key, ids } of jobs.values())
    for (const id of ids.keys()) keys.set(id, [...new Set([...(keys.get(id) ?? []), key])]);
  return keys;
}

/** The text of an end names the job, if it came to run. Otherwise it is of the one that is kept. */
export function keyOfEnd({ text }: Recorded, keys: readonly string[] = []): string {
  return keys.find((key) => text.split(' ').at(-1) === key) ?? keys[0] ?? text;
}

export function enter({ at, event, by, words }: Entry, jobs: Map<string, JobAccount>, said: string[]): void {
  const [key = '', ...rest] = words;
  if (JOB_EVENTS.has(event)) jobOf(jobs, key).noted.push(at);
  switch (event) {
    case 'sent':
      // a run that begins again sends its children again
      Object.assign(jobOf(jobs, key), { kind: rest[0], removed: rest[1] === 'removed', rejected: undefined });
      jobOf(jobs, key).sent ??= at;
      break;
    case 'acked':
      jobOf(jobs, key).acknowledged = true;
      jobOf(jobs, key).acknowledgedAt ??= at;
      see(jobOf(jobs, key), rest[0] ?? '', at);
      break;
    case 'rejected':
      jobOf(jobs, key).rejected = rest.join(' ');
      break;
    case 'started': {
      const job = jobOf(jobs, key);
      const [id = '', tryNumber = '', step = '', mark = ''] = rest;
      see(job, id, at);
      job.runs.set(mark, { at, by, mark, start: `${tryNumber} ${step}` });
      break;
    }
    case 'parting':
    case 'moved':
    case 'ended': {
      const run = jobOf(jobs, key).runs.get(rest[0] ?? '');
      if (event === 'ended') Object.assign(run ?? {}, { ended: rest[1], endedAt: at });
      else Object.assign(run ?? {}, event === 'moved' ? { isMoved: true } : { isParting: true });
      break;
    }
    case 'completed':
      jobOf(jobs, key).told.push(at);
      break;
    case 'cancelled':
      jobOf(jobs, key).cancelled = { became: rest[0] ?? '', at };
      break;
    case 'wrong':
      said.push(words.join(' '));
      break;
  }
}
