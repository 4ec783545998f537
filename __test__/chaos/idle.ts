/** The watch of idleness: in calm times, in which there is no fault, no job waits while a worker could run it (support/idleness.ts). */
import type { Redis } from 'ioredis';
import { idleSpans, neglected, START_MS, total, without } from '../support/idleness.js';
import type { JobRecord, Neglect, Span, WorkerRecord } from '../support/idleness.js';
import { Lateness } from '../support/lateness.js';
import { sleep } from '../support/waiting.js';
import type { JobAccount, Run } from './jobs.js';
import type { Entry } from './ledger.js';
import type { Member } from './member.js';

/** What is in the waiting list once it is added, and leaves it in that order. */
const WATCHED = new Set([
  'mixed',
  'plain',
  'own-id',
  'retried',
  'failing',
  'hopeless',
  'talking',
  'moved',
  'steps',
  'family',
]);
/** What waits for longer beside an idle worker is a fault, whatever else the machine has to do. */
const FAULT_MS = 200;
/** The longest limit of a job (programs/plans.mjs), and what it takes to hear that it is over. */
const LIMIT_MS = 70 + START_MS;

/** A time without a fault. */
export interface Calm extends Span {
  /** Lives of workers whose handlers run on their own event loops, and which were there all the time. */
  readonly workers: readonly Pick<Member, 'signature' | 'concurrency' | 'slots'>[];
  /** When this process, through which all ways lead, or a server was late. */
  readonly late: readonly Span[];
  readonly pace: number;
}

export interface Idleness {
  /** Jobs that came in calm times. */
  readonly jobs: number;
  /** For how long workers were idle meanwhile, and seen to be. */
  readonly idleMs: number;
  /** Waited in a free slot of a worker whose event loop was blocked. */
  readonly inSlots: number;
  readonly neglects: readonly string[];
}

/** Lets some time pass in which nobody does harm. Members are those whose handlers run on their own event loops. */
export async function passCalmly(ms: number, members: readonly Member[], servers: readonly Redis[]): Promise<Calm> {
  const from = Date.now();
  const workers = members.map(({ signature, concurrency, slots }) => ({ signature, concurrency, slots }));
  const lateness = new Lateness(servers, Date.now);
  // what is watched for is that nothing happens
  await sleep(ms);
  await lateness.end();
  return { from, to: Date.now(), workers, late: lateness.late, pace: lateness.pace };
}

export function watchIdleness(
  jobs: ReadonlyMap<string, JobAccount>,
  entries: readonly Entry[],
  calms: readonly Calm[],
): Idleness {
  const seen = calms.map((calm) => watchCalm(jobs, entries, calm));
  const sum = (of: (one: Idleness) => number) => seen.reduce((all, one) => all + of(one), 0);
  return {
    jobs: sum((one) => one.jobs),
    idleMs: sum((one) => one.idleMs),
    inSlots: sum((one) => one.inSlots),
    neglects: seen.flatMap(({ neglects }) => neglects),
  };
}

function watchCalm(jobs: ReadonlyMap<string, JobAccount>, entries: readonly Entry[], calm: Calm): Idleness {
  const workers = calm.workers.map(({ signature, concurrency, slots }): WorkerRecord => {
    const runs = [...jobs.values()].flatMap(({ key, runs: all }) =>
      [...all.values()].filter(({ by }) => by === signature).map((run) => ({ key, ...spanOf(run) })),
    );
    const late = entries.filter(({ by, event }) => by === signature && event === 'late');
    const spans = late.map(({ words: [from, to] }) => ({ from: Number(from), to: Number(to) }));
    return { name: signature, concurrency, slots, alive: calm, runs, late: spans };
  });
  const blind = [...calm.late, ...limits(jobs, calm)];
  const watched = [...jobs.values()].flatMap((job) => recordOf(job, calm) ?? []);
  const mostMs = Math.max(FAULT_MS, START_MS * Math.max(1, calm.pace) + answerMs(jobs, entries, calm));
  const found = neglected(watched, workers, { mostMs, blind });
  const idle = workers.flatMap((worker) => without(idleSpans(worker), blind));
  return {
    jobs: watched.length,
    idleMs: total(idle),
    inSlots: found.filter(({ inSlot }) => inSlot).length,
    neglects: found.filter(({ inSlot }) => !inSlot).map((one) => describe(one, mostMs)),
  };
}

/** Of twenty ends, nineteen were known to be stored within it: whoever has told of one takes what comes next with the answer, and starts nothing before. */
function answerMs(jobs: ReadonlyMap<string, JobAccount>, entries: readonly Entry[], calm: Calm): number {
  const stored = new Map<string, number>();
  for (const { by, event, at, words } of entries) if (event === 'completed') stored.set(`${by} ${words[0]}`, at);
  const took = [...jobs.values()].flatMap(({ key, runs }) =>
    [...runs.values()].flatMap(({ by, endedAt = Infinity }) => {
      const at = stored.get(`${by} ${key}`);
      return at !== undefined && endedAt >= calm.from && endedAt <= calm.to ? [at - endedAt] : [];
    }),
  );
  took.sort((one, other) => one - other);
  return took[Math.floor(took.length * 0.95)] ?? 0;
}

/** What counts is the first run of a job that was added then, and run by one of those workers: to start a sandbox takes its time. */
function recordOf({ key, kind, sent, acknowledgedAt, runs }: JobAccount, calm: Calm): JobRecord | undefined {
  if (!WATCHED.has(kind) || sent === undefined || acknowledgedAt === undefined) return undefined;
  if (sent < calm.from || acknowledgedAt > calm.to) return undefined;
  const [first] = [...runs.values()].sort((one, other) => one.at - other.at);
  if (first && !calm.workers.some(({ signature }) => signature === first.by)) return undefined;
  return { key, sent, added: acknowledgedAt, started: first?.at ?? Infinity };
}

/** When the queue was limited for all. */
function limits(jobs: ReadonlyMap<string, JobAccount>, calm: Calm): Span[] {
  return [...jobs.values()]
    .filter(({ kind }) => kind === 'limited')
    .flatMap(({ runs }) =>
      [...runs.values()].map(({ at, endedAt = calm.to }) => ({ from: at, to: endedAt + LIMIT_MS })),
    );
}

function spanOf({ at, endedAt = Infinity }: Run): Span {
  return { from: at, to: endedAt };
}

function describe({ key, by = 'nobody', idle, from, to }: Neglect, mostMs: number): string {
  return `${key}, run by ${by}, waited beside ${idle} for ${Math.round(to - from)} ms from ${from}; ${Math.round(mostMs)} ms are the most`;
}
