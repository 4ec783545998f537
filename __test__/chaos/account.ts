/** The account of every job: what the ledgers, the event log and the server's state say about it, held against each other. */
import { faultOf, LEASE_MS } from './faults.js';
import type { Left } from './calm.js';
import type { FaultKind, Injected } from './faults.js';
import type { Entry } from './ledger.js';

/** A job that ended, as the server keeps it. */
export interface Kept {
  readonly id: string;
  readonly key: string;
  readonly state: 'completed' | 'failed';
  /** Its returnvalue, or why it failed, as `Recorded.text`. */
  readonly text: string;
  readonly attemptsMade: number;
}

/** What the event log says of a job that ended. */
export interface Recorded {
  readonly id: string;
  readonly state: 'completed' | 'failed';
  /** Its returnvalue without what fills it (ledger.ts), or why it failed: the last words are the mark of the run, and the job's key. */
  readonly text: string;
}

/** Everything that is held against each other. */
export interface Evidence {
  readonly entries: readonly Entry[];
  readonly faults: readonly Injected[];
  /** Times in which the whole machine stood still: leases may have ended that nobody took away. */
  readonly standstills: readonly Cause[];
  readonly recorded: readonly Recorded[];
  /** What the QueueEvents heard that listened through all faults. */
  readonly observed: readonly Recorded[];
  readonly kept: readonly Kept[];
  /** What had not ended by the time it should have (calm.ts). */
  readonly left: readonly Left[];
}

/** What a repeat is put down to. */
export interface Cause {
  readonly kind: FaultKind | 'standstill';
  readonly target: string;
  readonly at: number;
  readonly returned: number;
}

/** A run of a try that had been started before. */
export interface Repeat {
  readonly key: string;
  /** Who started it again, and when. */
  readonly by: string;
  readonly at: number;
  /** What was under way. */
  readonly cause: Cause;
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
  readonly iterations: number;
  readonly starts: number;
  /** Runs that gave their job back, to be taken again. */
  readonly moves: number;
  readonly repeats: readonly Repeat[];
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
    /** Active for long after all faults, and no living worker says that it runs it. */
    abandoned: [] as string[],
    /** Not active, and not ended long after all faults. */
    stuck: [] as string[],
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

/** One run of a job's handler. */
interface Run {
  readonly at: number;
  readonly by: string;
  /** How often the job had been started, and what tells it from all other runs. */
  readonly mark: string;
  /** Its try, and what it begins with: the same for two runs only when the first one was spoiled, or gave its job back. */
  readonly start: string;
  ended?: 'returned' | 'threw';
  /** It was about to give the job back, to begin anew. */
  isParting?: true;
  /** It has given the job back, and is nobody's outcome. */
  isMoved?: true;
}

interface JobAccount {
  readonly key: string;
  kind: string;
  removed: boolean;
  acknowledged: boolean;
  rejected: string | undefined;
  /** Its ids, and when each was first seen. */
  readonly ids: Map<string, number>;
  /** By their marks. */
  readonly runs: Map<string, Run>;
  /** When a worker said `completed`. */
  readonly told: number[];
  /** When anything was noted of it. */
  readonly noted: number[];
  readonly ends: Recorded[];
}

/** Answers after which nothing of a call was carried out. */
const REFUSAL = /^(OOM|READONLY|MISCONF) |^Queue \S+ is full: /;

export function settle({ entries, faults, standstills, recorded, observed, kept, left }: Evidence): Account {
  const jobs = new Map<string, JobAccount>();
  const wrong = nothingWrong();
  for (const entry of entries) enter(entry, jobs, wrong.said);
  const keysOf = keysById(jobs);
  for (const end of recorded) jobOf(jobs, keyOfEnd(end, keysOf.get(end.id))).ends.push(end);

  const excuses = new Excuses(faults, standstills);
  const lastWords = new LastWords(faults);
  const repeats: Repeat[] = [];
  const unheard: string[] = [];
  for (const job of jobs.values()) {
    checkJob(job, lastWords, unheard, wrong);
    repeats.push(...excuses.repeatsOf(job.key, [...job.runs.values()], wrong.unexplainedRepeats));
    if (!lastWords.concern(job)) checkRun(job, wrong.wrongRun);
  }
  for (const { state, text } of left) (state === 'active' ? wrong.abandoned : wrong.stuck).push(text);
  checkState(jobs, kept, wrong.wrongState);
  const touched = (id: string) => (keysOf.get(id) ?? []).some((key) => lastWords.concern(jobOf(jobs, key)));
  checkObserver(recorded, observed, touched, wrong);

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
    iterations: jobs.size - sent.length,
    starts: entries.filter(({ event }) => event === 'started').length,
    moves: entries.filter(({ event }) => event === 'moved').length,
    repeats,
    wrong,
  };
}

function jobOf(jobs: Map<string, JobAccount>, key: string): JobAccount {
  let job = jobs.get(key);
  if (!job) {
    job = {
      key,
      kind: 'iteration',
      removed: false,
      acknowledged: false,
      rejected: undefined,
      ids: new Map(),
      runs: new Map(),
      told: [],
      noted: [],
      ends: [],
    };
    jobs.set(key, job);
  }
  return job;
}

/** What a program notes of a job when it hears of it from the server, or is about to tell it. */
const JOB_EVENTS = new Set(['acked', 'started', 'ended', 'completed', 'failed']);

function see({ ids }: JobAccount, id: string, at: number): void {
  ids.set(id, Math.min(at, ids.get(id) ?? at));
}

/** A master that is gone may take a number along that its successor gives again: an id may be that of several jobs. */
function keysById(jobs: ReadonlyMap<string, JobAccount>): Map<string, string[]> {
  const keys = new Map<string, string[]>();
  for (const { key, ids } of jobs.values()) for (const id of ids.keys()) keys.set(id, [...(keys.get(id) ?? []), key]);
  return keys;
}

/** The text of an end names the job, if it came to run. */
function keyOfEnd({ text }: Recorded, keys: readonly string[] = []): string {
  return keys.find((key) => text.split(' ').at(-1) === key) ?? keys[0] ?? text;
}

function enter({ at, event, by, words }: Entry, jobs: Map<string, JobAccount>, said: string[]): void {
  const [key = '', ...rest] = words;
  if (JOB_EVENTS.has(event)) jobOf(jobs, key).noted.push(at);
  switch (event) {
    case 'sent':
      // a run that begins again sends its children again
      Object.assign(jobOf(jobs, key), { kind: rest[0], removed: rest[1] === 'removed', rejected: undefined });
      break;
    case 'acked':
      jobOf(jobs, key).acknowledged = true;
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
      if (event === 'ended') Object.assign(run ?? {}, { ended: rest[1] });
      else Object.assign(run ?? {}, event === 'moved' ? { isMoved: true } : { isParting: true });
      break;
    }
    case 'completed':
      jobOf(jobs, key).told.push(at);
      break;
    case 'wrong':
      said.push(words.join(' '));
      break;
  }
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

/** Whoever takes a job takes the say from all who had it before: what counts is how its last run ended, if that did not give it back. */
function checkRun({ key, kind, ends, runs }: JobAccount, wrongRun: string[]): void {
  const [end] = ends;
  if (!end) return;
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
  for (const { key, removed, ends, runs } of jobs.values()) {
    const [end, job] = [ends[0], found.get(key)];
    const gone = removed && end?.state === 'completed';
    if (end && !gone && !job) wrongState.push(`${key} is to be kept and is gone`);
    if (!job) continue;
    if (gone) wrongState.push(`${key} is to be removed and is kept`);
    if (job.state !== end?.state) wrongState.push(`${key} is ${job.state}, recorded ${end?.state}`);
    if (job.text !== end?.text) wrongState.push(`${key} gave ${job.text.slice(0, 200)}, recorded ${end?.text}`);
    const tries = new Set([...runs.values()].map(({ start }) => start.split(' ')[0])).size;
    if (job.attemptsMade !== tries) wrongState.push(`${key} made ${job.attemptsMade} attempts, ran ${tries}`);
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

/** What a program notes may have happened so much earlier. */
const NOTED_MS = 500;

/**
 * What masters acknowledged before they were gone and before it is known that their replicas had heard of it. Replication is
 * asynchronous: a successor knows of all that, or of none, or of the first part of it.
 */
class LastWords {
  readonly #spans: readonly { from: number; to: number }[];
  readonly longestMs: number;

  constructor(faults: readonly Injected[]) {
    this.#spans = faults.flatMap(({ heard: from, gone: to }) => (from && to ? [{ from, to }] : []));
    this.longestMs = Math.max(0, ...this.#spans.map(({ from, to }) => to - from));
  }

  /** Whether what was noted then may be among them. */
  include(at: number): boolean {
    return this.#spans.some(({ from, to }) => from <= at && at <= to + NOTED_MS);
  }

  /** Whether something of this job may be among them. */
  concern({ noted }: JobAccount): boolean {
    return noted.some((at) => this.include(at));
  }
}

/** A member was without the server for so long that its lease may have run out. */
interface Outage {
  readonly target: string;
  from: number;
  to: number;
  cause: Cause;
}

/** A lease that is renewed each quarter of its time is that old at most. */
const LEASE_LEFT_MS = LEASE_MS * 0.75;
/** A connection is there again so long after its way. */
const RECONNECTED_MS = 1_000;

/** A process that is sent SIGKILL is gone so long afterwards. */
const KILLED_MS = 100;

/** Which repeats are explained by a fault that was under way. */
class Excuses {
  readonly #kills: readonly Injected[];
  readonly #outages: readonly Outage[];

  constructor(faults: readonly Injected[], standstills: readonly Cause[]) {
    this.#kills = faults.filter(({ kind }) => faultOf(kind).excuses === 'in flight');
    this.#outages = outages([...faults.filter(({ kind }) => takesServerAway(kind)), ...standstills]);
  }

  /** The repeats among a job's runs: those that began like one before. All but one of a kind have to be explained. */
  repeatsOf(key: string, runs: readonly Run[], unexplained: string[]): Repeat[] {
    if (runs.length < 2) return [];
    const inOrder = [...runs].sort((a, b) => a.at - b.at);
    const begun = new Map<string, Run[]>();
    for (const run of inOrder) if (!run.isParting) begun.set(run.start, [...(begun.get(run.start) ?? []), run]);
    return [...begun.values()].flatMap((alike) => {
      if (alike.length < 2) return [];
      const last = alike.at(-1) as Run;
      let causes = alike.flatMap((run) => this.#spoiled(run, last) ?? []);
      // one whose lease was over may have set back how far the job is
      if (causes.length < alike.length - 1) causes = inOrder.flatMap((run) => this.#spoiled(run, last) ?? []);
      if (causes.length < alike.length - 1)
        unexplained.push(
          `${key}: ${inOrder.map(({ at, by, start, mark }) => `${mark} (${start}) ${by} at ${at}`).join(', ')}`,
        );
      return alike.slice(1).flatMap(({ by, at }, i) => {
        const cause = causes[i];
        return cause ? [{ key, by, at, cause }] : [];
      });
    });
  }

  /** Why what was started then was not recorded. */
  #spoiled({ at, by }: Run, last: Run): Cause | undefined {
    const [name = '', life = ''] = by.split('.');
    const killed = this.#kills.find((kill) => kill.target === name && kill.life === Number(life));
    // it was killed after this start, and before the next one
    if (killed && killed.at + KILLED_MS >= at && killed.at <= last.at) return killed;
    const hits = ({ target, from, to }: Outage) =>
      (target === name || target === 'all') && from <= Math.max(last.at, at) && to >= at;
    return this.#outages.find(hits)?.cause;
  }
}

/** Absences that follow close on each other count as one, in which nobody could renew a lease. */
function outages(causes: readonly Cause[]): Outage[] {
  const inOrder = [...causes].sort((a, b) => a.at - b.at);
  const joined: Outage[] = [];
  for (const target of new Set(inOrder.map((cause) => cause.target))) {
    const own: Outage[] = [];
    for (const cause of inOrder.filter((other) => other.target === target || other.target === 'all')) {
      const [last, to] = [own.at(-1), cause.returned + RECONNECTED_MS];
      if (last && cause.at <= last.to) {
        last.to = Math.max(last.to, to);
        // the longest of them weighs most
        if (cause.returned - cause.at > last.cause.returned - last.cause.at) last.cause = cause;
      } else own.push({ target, from: cause.at, to, cause });
    }
    joined.push(...own);
  }
  return joined.filter(({ from, to }) => to - from >= LEASE_LEFT_MS);
}

function takesServerAway(kind: FaultKind): boolean {
  return (
    faultOf(kind).excuses === 'lease over' ||
    ['cut', 'cut-one-side', 'reset-request', 'reset-reply', 'client-kill'].includes(kind)
  );
}
