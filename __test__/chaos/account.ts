/** The account of every job: what the ledgers, the event log and the server's state say about it, held against each other. */
import type { Left } from './calm.js';
import { crowdsIn, crowdsInLog } from './crowds.js';
import { Excuses, LastWords } from './excuses.js';
import type { Cause, Repeat } from './excuses.js';
import type { Injected } from './faults.js';
import { watchIdleness } from './idle.js';
import type { Calm, Idleness } from './idle.js';
import { enter, jobOf, keyOfEnd, keysById } from './jobs.js';
import type { JobAccount, Moved, Recorded } from './jobs.js';
import type { Entry } from './ledger.js';
import { overdrawnIn } from './meters.js';

/** A job that ended, as the server keeps it. */
export interface Kept {
  readonly id: string;
  readonly key: string;
  readonly state: 'completed' | 'failed';
  /** Its returnvalue, or why it failed, as `Recorded.text`. */
  readonly text: string;
  readonly attemptsMade: number;
}

/** Everything that is held against each other. */
export interface Evidence {
  readonly entries: readonly Entry[];
  readonly faults: readonly Injected[];
  /** Times in which the whole machine stood still: leases may have ended that nobody took away. */
  readonly standstills: readonly Cause[];
  readonly recorded: readonly Recorded[];
  /** By the event log, in its order. */
  readonly moves: readonly Moved[];
  /** What the QueueEvents heard that listened through all faults. */
  readonly observed: readonly Recorded[];
  readonly kept: readonly Kept[];
  /** What had not ended by the time it should have (calm.ts). */
  readonly left: readonly Left[];
  /** Times without a fault, in which nothing waits beside an idle worker. */
  readonly calms: readonly Calm[];
}

export interface Account {
  readonly sent: number;
  readonly acknowledged: number;
  readonly rejected: number;
  /** Sent by a producer that was killed, or answered by an error: of those, so many are there. */
  readonly unacknowledgedThere: number;
  /** Acknowledged or started by a master just before it was gone, and its replica had not heard of them. */
  readonly unheard: readonly string[];
  /** The longest time before the end of a master of which it is not known that its replica had heard everything, in ms. */
  readonly unheardMs: number;
  readonly completed: number;
  readonly failed: number;
  /** Of those, so many never ran, or not again, as they had expired or were cancelled. */
  readonly unrun: number;
  readonly iterations: number;
  readonly starts: number;
  /** Runs that gave their job back, to be taken again. */
  readonly moves: number;
  readonly repeats: readonly Repeat[];
  readonly idleness: Omit<Idleness, 'neglects'>;
  /** What must not be. Each list is to be empty. */
  readonly wrong: Readonly<Record<Wrong, readonly string[]>>;
}

export type Wrong = keyof ReturnType<typeof nothingWrong>;

function nothingWrong() {
  return {
    /** Acknowledged, and no end is recorded, though no master took the job along. */
    lost: [] as string[],
    addedTwice: [] as string[],
    recordedTwice: [] as string[],
    /** Two workers said `completed`, or one did twice. */
    toldTwice: [] as string[],
    unexplainedRepeats: [] as string[],
    /** Its add was rejected with a refusal, and it is there. */
    refusedAndThere: [] as string[],
    /** Not in the state it ended in, or with another result. */
    wrongState: [] as string[],
    /** What is recorded is no outcome of its last run. */
    wrongRun: [] as string[],
    /** It ran though it had expired, or been cancelled; or is told to be cancelled, and is not. */
    ranInVain: [] as string[],
    /** Active for long after all faults, and no living worker says that it runs it. */
    abandoned: [] as string[],
    /** Not active, and not ended long after all faults. */
    stuck: [] as string[],
    /** Waited in a calm time, though a worker was idle. */
    neglected: [] as string[],
    /** More jobs of a group ran at once than its concurrency lets. */
    crowded: [] as string[],
    /** More of a key was used than its windows let. */
    overdrawn: [] as string[],
    missedByObserver: [] as string[],
    heardTwiceByObserver: [] as string[],
    /** What kept a server, or this process, from everything else for too long. */
    blocked: [] as string[],
    /** Whatever processes found wrong by themselves. */
    said: [] as string[],
  };
}

export function faultless({ wrong }: Account): boolean {
  return Object.values(wrong).every((list) => list.length === 0);
}

/** Answers after which nothing of a call was carried out. */
const REFUSAL = /^(OOM|READONLY|MISCONF|NOREPLICAS|CLUSTERDOWN) |^Queue \S+ is full: /;

export function settle({
  entries,
  faults,
  standstills,
  recorded,
  moves,
  observed,
  kept,
  left,
  calms,
}: Evidence): Account {
  const jobs = new Map<string, JobAccount>();
  const wrong = nothingWrong();
  for (const entry of entries) enter(entry, jobs, wrong.said);
  const keysOf = keysById(jobs, kept);
  for (const end of recorded) jobOf(jobs, keyOfEnd(end, keysOf.get(end.id))).ends.push(end);

  const excuses = new Excuses(faults, standstills);
  const lastWords = new LastWords(faults);
  const repeats: Repeat[] = [];
  const unheard: string[] = [];
  for (const job of jobs.values()) {
    checkJob(job, lastWords, unheard, wrong);
    repeats.push(...excuses.repeatsOf(job.key, [...job.runs.values()], wrong.unexplainedRepeats));
    if (lastWords.concern(job)) continue;
    if (isUnrun(job)) checkUnrun(job, wrong.ranInVain);
    else checkRun(job, wrong.wrongRun);
  }
  for (const { state, text } of left) (state === 'active' ? wrong.abandoned : wrong.stuck).push(text);
  checkState(jobs, kept, wrong.wrongState);
  const some = (id: string, is: (job: JobAccount) => boolean) =>
    (keysOf.get(id) ?? []).some((key) => is(jobOf(jobs, key)));
  const touched = (id: string) => some(id, (job) => lastWords.concern(job) || lastWords.spanEndOf(job));
  checkObserver(recorded, observed, touched, wrong);

  const { neglects, ...idleness } = watchIdleness(jobs, entries, calms);
  wrong.neglected.push(...neglects);
  // of a number that two jobs had, either may be meant
  const kindOf = (id: string) => {
    const [key, other] = keysOf.get(id) ?? [];
    return key === undefined || other !== undefined ? undefined : jobs.get(key)?.kind;
  };
  wrong.crowded.push(...crowdsIn(jobs.values()), ...crowdsInLog(moves, kindOf));
  wrong.overdrawn.push(...overdrawnIn(jobs.values(), faults));

  const sent = [...jobs.values()].filter(({ kind }) => kind !== 'iteration');
  const ended = (state: string) => sent.filter(({ ends }) => ends[0]?.state === state).length;
  return {
    sent: sent.length,
    acknowledged: sent.filter(({ acknowledged }) => acknowledged).length,
    rejected: sent.filter(({ rejected }) => rejected !== undefined).length,
    unacknowledgedThere: sent.filter(({ acknowledged, ends }) => !acknowledged && ends.length > 0).length,
    unheard,
    unheardMs: lastWords.longestMs,
    completed: ended('completed'),
    failed: ended('failed'),
    unrun: sent.filter((job) => job.ends.length > 0 && isUnrun(job)).length,
    iterations: jobs.size - sent.length,
    starts: entries.filter(({ event }) => event === 'started').length,
    moves: entries.filter(({ event }) => event === 'moved').length,
    repeats,
    idleness,
    wrong,
  };
}

function checkJob(
  job: JobAccount,
  lastWords: LastWords,
  unheard: string[],
  wrong: ReturnType<typeof nothingWrong>,
): void {
  const { key, kind, ids, told, ends, runs } = job;
  const about = `${key} (${kind}): ids ${[...ids.keys()].join(' ')}; ends ${ends.map(({ id, state }) => `${id} ${state}`).join(', ')}`;
  const heardOf = [...ids.values()].filter((at) => !lastWords.include(at));
  if ((job.acknowledged || runs.size > 0) && ends.length === 0) (heardOf.length > 0 ? wrong.lost : unheard).push(about);
  if (heardOf.length > 1 || (ids.size > 1 && ends.length > 1)) wrong.addedTwice.push(about);
  if (ends.length > 1) wrong.recordedTwice.push(about);
  if (told.filter((at) => !lastWords.include(at)).length > 1) {
    wrong.toldTwice.push(`${about}; completed ${told.length} times`);
  }
  const refused = !job.acknowledged && job.rejected !== undefined && REFUSAL.test(job.rejected);
  if (refused && ends.length > 0) wrong.refusedAndThere.push(`${about}; ${job.rejected}`);
}

/** Which number of a job's runs this one is. */
const numberOf = (mark: string) => Number(mark.split('.')[0]);

const EXPIRED = 'job expired before it started';

/** Whether it has failed for what is no outcome of a run, or is to have. */
function isUnrun({ key, kind, ends: [end], cancelled }: JobAccount): boolean {
  return (
    kind === 'expired' ||
    cancelled?.became === 'cancelled' ||
    end?.text === EXPIRED ||
    end?.text === `The job was cancelled: ${key}`
  );
}

/** One that ran when it was cancelled, and came back, does not run again. */
function checkUnrun({ key, kind, ends, cancelled, runs }: JobAccount, ranInVain: string[]): void {
  const [end] = ends;
  if (!end) return;
  const expected = kind === 'cancelled' ? `The job was cancelled: ${key}` : EXPIRED;
  const late = [...runs.values()].filter(({ at }) => kind !== 'cancelled' || (cancelled && at > cancelled.at));
  if (end.state !== 'failed' || end.text !== expected || late.length > 0)
    ranInVain.push(
      `${key} (${kind}), ${JSON.stringify(cancelled)}: ${end.state} ${end.text}; its runs: ${late.map(({ at, mark, by }) => `${mark} ${by} at ${at}`).join(', ')}`,
    );
}

/** Whoever takes a job takes the say from all who had it before: what counts is how its last run ended, if that did not give it back. */
function checkRun({ key, kind, ends, runs }: JobAccount, wrongRun: string[]): void {
  const [end] = ends;
  if (!end) return;
  if (kind === 'doomed') {
    const isSo = end.state === 'failed' && /^child \S+ failed$/.test(end.text) && runs.size === 0;
    if (!isSo)
      wrongRun.push(
        `${key} is to fail with its child: ${end.state} ${end.text}; its runs: ${[...runs.keys()].join(' ')}`,
      );
    return;
  }
  // it started because a child failed, and ended before the others
  if (
    kind === 'hasty' &&
    end.state === 'failed' &&
    end.text.endsWith('has pending dependencies. moveToFinished') &&
    runs.size > 0
  )
    return;
  const mark = end.text.split(' ').at(-2) ?? '';
  const run = runs.get(mark);
  const last = Math.max(...[...runs.keys()].map(numberOf));
  const expected = end.state === 'completed' ? 'returned' : 'threw';
  const about = `${key} (${kind}) ${end.state}: ${end.text.slice(0, 200)}; its runs: ${[...runs.keys()].join(' ')}`;
  if (!run) wrongRun.push(`${about}; nobody knows this run`);
  else if (run.ended !== expected) wrongRun.push(`${about}; this run ${run.ended ?? 'has not ended'}`);
  else if (run.isMoved) wrongRun.push(`${about}; this run has given the job back`);
  else if (numberOf(mark) < last) wrongRun.push(`${about}; this run was not the last`);
}

/** What is kept is what was recorded last, and what was to be removed is not there. */
function checkState(jobs: ReadonlyMap<string, JobAccount>, kept: readonly Kept[], wrongState: string[]): void {
  const found = new Map<string, Kept>();
  for (const job of kept) {
    if (found.has(job.key)) wrongState.push(`${job.key} is kept twice: ${found.get(job.key)?.id}, ${job.id}`);
    found.set(job.key, job);
    if (!jobs.has(job.key)) wrongState.push(`${job.key} is kept, and nobody sent it`);
  }
  for (const account of jobs.values()) {
    const { key, kind, removed, ends, runs } = account;
    const [end, job] = [ends[0], found.get(key)];
    const gone = removed && end?.state === 'completed';
    if (end && !gone && !job) wrongState.push(`${key} is to be kept and is gone`);
    if (!job) continue;
    if (gone) wrongState.push(`${key} is to be removed and is kept`);
    if (job.state !== end?.state) wrongState.push(`${key} is ${job.state}, recorded ${end?.state}`);
    if (job.text !== end?.text) wrongState.push(`${key} gave ${job.text.slice(0, 200)}, recorded ${end?.text}`);
    const tries = new Set([...runs.values()].map(({ start }) => start.split(' ')[0])).size;
    // one that fails with its child, or too late, has a try that nobody runs
    if (kind !== 'doomed' && !isUnrun(account) && job.attemptsMade !== tries)
      wrongState.push(`${key} made ${job.attemptsMade} attempts, ran ${tries}`);
  }
}

/** `touched`: whether a master may have taken along what it had told of this id. */
function checkObserver(
  recorded: readonly Recorded[],
  observed: readonly Recorded[],
  touched: (id: string) => boolean,
  wrong: ReturnType<typeof nothingWrong>,
): void {
  const heard = new Map<string, number>();
  for (const { id, state } of observed) heard.set(`${id} ${state}`, (heard.get(`${id} ${state}`) ?? 0) + 1);
  for (const { id, state } of recorded) if (!heard.has(`${id} ${state}`)) wrong.missedByObserver.push(`${id} ${state}`);
  const told = new Set(recorded.map(({ id, state }) => `${id} ${state}`));
  for (const [event, times] of heard) {
    const isOnce = times === 1 && told.has(event);
    if (!isOnce && !touched(event.split(' ')[0] ?? '')) wrong.heardTwiceByObserver.push(`${event}, ${times} times`);
  }
}
