/** What faults excuse: repeats, and what a master took along. */
import { faultOf, LEASE_MS } from './faults.js';
import type { FaultKind, Injected } from './faults.js';
import type { JobAccount, Run } from './jobs.js';

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

/** What a program notes may have happened so much earlier. */
const NOTED_MS = 500;

/**
 * What masters acknowledged before they were gone and before it is known that their replicas had heard of it. Replication is
 * asynchronous: a successor knows of all that, or of none, or of the first part of it.
 */
export class LastWords {
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

  /** Whether how a run of this job ended was under way while one was gone: both it and its successor may have told of that. */
  spanEndOf({ noted, runs }: JobAccount): boolean {
    return [...runs.values()].some(({ endedAt }) => {
      if (endedAt === undefined) return false;
      const answered = Math.min(...noted.filter((at) => at > endedAt), Infinity);
      return this.#spans.some(({ from, to }) => endedAt <= to && from <= answered);
    });
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
export class Excuses {
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
