/** What a run has to say, as Markdown, and beside it a JSON, which stays with whoever ran it: each fault, and each job that ran again. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { describeMachine, describeSource, loadAverage } from '../../bench/machine.js';
import { FOLDER } from '../../bench/samples.js';
import { describeHeld } from '../support/watchdog.js';
import { faultless } from './account.js';
import type { Account, Wrong } from './account.js';
import { faultKindsOf, faultOf, LEASE_MS, SCAN_MS } from './faults.js';
import type { FaultKind, Injected } from './faults.js';
import type { Entry } from './ledger.js';
import type { ChaosResult } from './run.js';

const HOUR_S = 3_600;

export interface Asked {
  readonly command: string;
  readonly seconds: number;
  readonly seed: number;
  /** Not all faults were chosen from. */
  readonly partial: boolean;
}

export interface Report {
  readonly name: string;
  readonly json: unknown;
  readonly markdown: string;
  readonly faultless: boolean;
}

/** Figures of one kind of fault. Times are milliseconds. */
interface Row {
  readonly kind: FaultKind;
  readonly injected: number;
  /** Of those, alone. */
  readonly alone: number;
  /** Completed from the fault to the end of recovery. */
  readonly jobs: number;
  readonly repeats: number;
  /** From the return of what was taken away to the next job that completes (of a producer: that is added). */
  readonly recovery: { readonly median: number; readonly max: number; readonly maxMixed: number } | undefined;
  /** From the fault, which was alone, to the last job in flight that ran again, unless a later fault kept it waiting. */
  readonly rerun: number | undefined;
  /** Errors of calls and `error` events while it was alone, by message. */
  readonly errors: Readonly<Record<string, number>>;
}

const WRONG: Record<Wrong, string> = {
  lost: 'acknowledged or started, and no end recorded, though no master took it along (lost)',
  addedTwice: 'added twice',
  recordedTwice: 'finished and recorded twice',
  toldTwice: '`completed` told twice',
  unexplainedRepeats: 'repeated without a fault that explains it',
  refusedAndThere: 'refused by the server, and there all the same',
  wrongState: 'in another state, with another result or count of tries than recorded',
  wrongRun: 'whose recorded outcome is not that of their last run',
  ranInVain: 'ran though they had expired or been cancelled, or ended otherwise',
  abandoned: 'active long after all faults, though no living worker runs them',
  stuck: 'waiting, delayed or waiting for children long after all faults (stuck)',
  neglected: 'waited beside an idle worker, while there was no fault, for longer than it takes to start them (200 ms)',
  crowded: 'ran, though as many jobs of their group ran as its concurrency lets',
  overdrawn: 'started, though as much of their keys was used as the windows let',
  missedByObserver: 'ends that a QueueEvents missed which listened through all of it',
  heardTwiceByObserver: 'ends that it heard twice, or that are not in the log',
  blocked: 'scripts over 20 ms, or pauses of the event loop over 50 ms',
  said: 'other things found wrong',
};

const UNHEARD =
  'Replication is asynchronous: a master that is gone takes along what its replica had not heard of, and its successor gives the ' +
  'numbers of such jobs again. Just before a master is killed or frozen the replica is seen to have all that was acknowledged up to ' +
  'that moment; only what is acknowledged, told or taken after it counts as unheard. All else must be there, and after a planned failover, ' +
  'or a move of the slot, everything.';

export function describeRun(result: ChaosResult, asked: Asked): Report {
  const { account, faults, entries, startedAt, endedAt, topology, servers } = result;
  const moments = new Moments(entries);
  const rows = faultKindsOf(topology)
    .map((kind) => rowOf(kind, result, moments))
    .filter(({ injected }) => injected > 0);
  const source = describeSource();
  const about = {
    command: `npm run ${asked.command.replace(' ', ' -- ')}`,
    startedAt: new Date(startedAt).toISOString(),
    seconds: Math.round((endedAt - startedAt) / 1e3),
    seed: asked.seed,
    source,
    machine: describeMachine(),
    load: loadAverage(),
    server: servers,
    leaseMs: LEASE_MS,
    scanMs: SCAN_MS,
  };
  const where = topology === 'standalone' ? [] : [topology];
  const name = [
    'chaos',
    ...where,
    about.startedAt.slice(0, 10),
    source.commit,
    ...(asked.partial ? ['partial'] : []),
  ].join('-');
  const { wrong, repeats, ...counts } = account;
  const { longest } = result;
  const json = { ...about, longest, faults: faults.length, ...counts, wrong, rows, injected: faults, repeats };
  return {
    name,
    json,
    markdown: markdown({ ...about, longest }, account, faults, rows),
    faultless: faultless(account),
  };
}

/** Returns the paths written. A report is never overwritten. */
export function writeReport({ name, json, markdown }: Report): string[] {
  mkdirSync(FOLDER, { recursive: true });
  let free = name;
  for (let copy = 2; existsSync(`${FOLDER}${free}.md`); copy++) free = `${name}-${copy}`;
  const paths = [`${FOLDER}${free}.json`, `${FOLDER}${free}.md`] as const;
  writeFileSync(paths[0], `${JSON.stringify(json, undefined, 2)}\n`);
  writeFileSync(paths[1], markdown);
  return [...paths];
}

function rowOf(kind: FaultKind, { faults, account, entries }: ChaosResult, moments: Moments): Row {
  const injected = faults.filter((fault) => fault.kind === kind);
  const alone = injected.filter(({ mixed }) => !mixed);
  const repeats = account.repeats.filter(({ cause }) => cause.kind === kind);
  const lonely = repeats.filter(({ cause, at }) => {
    // a later fault may keep a job waiting whose lease is over
    const isKept = (other: Injected) => other !== cause && other.at < at && other.returned > cause.at + LEASE_MS;
    return alone.includes(cause as Injected) && !faults.some(isKept);
  });
  const recoveries = (list: readonly Injected[]) =>
    list.flatMap((fault) => moments.recoveryOf(fault) ?? []).sort((a, b) => a - b);
  const [lone, mixed] = [recoveries(alone), recoveries(injected.filter((fault) => fault.mixed))];
  return {
    kind,
    injected: injected.length,
    alone: alone.length,
    jobs: injected.reduce((jobs, fault) => jobs + moments.completedDuring(fault), 0),
    repeats: repeats.length,
    recovery:
      lone.length + mixed.length > 0
        ? { median: lone[lone.length >> 1] ?? NaN, max: lone.at(-1) ?? NaN, maxMixed: mixed.at(-1) ?? NaN }
        : undefined,
    rerun: lonely.length > 0 ? Math.max(...lonely.map(({ at, cause }) => at - cause.at)) : undefined,
    errors: errorsDuring(alone, entries),
  };
}

/** When jobs completed and were acknowledged, in order of time. */
class Moments {
  readonly #entries: readonly Entry[];

  constructor(entries: readonly Entry[]) {
    this.#entries = entries
      .filter(({ event }) => event === 'completed' || event === 'acked')
      .sort((a, b) => a.at - b.at);
  }

  /** Time until the next job of those it hit completed, or was added by a producer it hit. Undefined for the observer. */
  recoveryOf({ target, returned }: Injected): number | undefined {
    if (target === 'observer') return undefined;
    const concerned = ({ event, by }: Entry) =>
      target === 'all'
        ? event === 'completed'
        : by.startsWith(`${target}.`) && event === (target.startsWith('p') ? 'acked' : 'completed');
    const next = this.#entries.find((entry) => entry.at >= returned && concerned(entry));
    return next && next.at - returned;
  }

  completedDuring(fault: Injected): number {
    const end = fault.returned + (this.recoveryOf(fault) ?? 0);
    return this.#entries.filter(({ at, event }) => event === 'completed' && at >= fault.at && at <= end).length;
  }
}

/** Connections notice with a delay that they are gone. */
const NOTICED_MS = 400;

function errorsDuring(faults: readonly Injected[], entries: readonly Entry[]): Record<string, number> {
  const errors: Record<string, number> = {};
  for (const { at, event, words } of entries) {
    if (event !== 'error' && event !== 'rejected') continue;
    if (!faults.some((fault) => at >= fault.at && at <= fault.returned + NOTICED_MS)) continue;
    const text = event === 'rejected' ? `rejected: ${words.slice(1).join(' ')}` : `error event: ${words.join(' ')}`;
    const kind = text
      .replace(/127\.0\.0\.1:\d+/g, '<address>')
      .replace(/\b(job )\S+/g, '$1<id>')
      .replace(/\b\d+\b/g, '<n>');
    errors[kind] = (errors[kind] ?? 0) + 1;
  }
  return errors;
}

type About = Record<'command' | 'startedAt' | 'server' | 'load', string> & {
  readonly seconds: number;
  readonly source: ReturnType<typeof describeSource>;
  readonly machine: ReturnType<typeof describeMachine>;
  readonly longest: ChaosResult['longest'];
};

function markdown(about: About, account: Account, faults: readonly Injected[], rows: readonly Row[]): string {
  const { machine, source } = about;
  const { wrong } = account;
  const jobs = account.completed + account.failed + account.iterations;
  const hourly = (count: number) => Math.round((count * HOUR_S) / about.seconds).toLocaleString('en');
  const found = Object.entries(wrong).flatMap(([name, list]) =>
    list.slice(0, 20).map((text) => `- ${WRONG[name as Wrong]}: ${text}`),
  );
  return `${[
    `# Chaos: ${faultless(account) ? 'nothing lost, nothing doubled' : 'FAULTS FOUND'}`,
    [
      `- \`${about.command}\`, ${about.startedAt}, ${about.seconds} s of faults`,
      `- commit ${source.commit}${source.changes.length > 0 ? `, with changes (${source.engineDiff})` : ''}`,
      `- ${about.server}, Node ${machine.node}, ${machine.system}, ${machine.cores} cores of ${machine.cpu}; load average at the end ${about.load}`,
      `- leases of ${LEASE_MS} ms, a scan for lost workers each ${SCAN_MS} ms`,
      `- ${faults.length} faults; ${jobs.toLocaleString('en')} jobs ended: ${account.completed} completed, ${account.failed} failed for good, ${account.unrun} of them expired or cancelled, ` +
        `${account.iterations} of schedulers; ${account.starts} starts, of which ${account.repeats.length} were repeats; ` +
        `${account.moves} times a handler gave its job back (to wait, for later, for its children, for a limit)`,
      describeIdleness(account.idleness),
      `- the longest script took ${describeHeld(about.longest.script)}, the longest pause of the event loop of the process in the middle ${describeHeld(about.longest.pause)}`,
      `- extrapolated from this run, not measured: ${hourly(faults.length)} faults and ${hourly(jobs)} jobs an hour`,
    ].join('\n'),
    '## The account',
    table([
      ['', 'jobs'],
      ['sent', account.sent],
      ['acknowledged', account.acknowledged],
      ['rejected', account.rejected],
      ['neither acknowledged nor refused, and there', account.unacknowledgedThere],
      ...(account.unheardMs > 0
        ? [
            [
              `acknowledged or started by a master at most ${account.unheardMs} ms before it was gone, unheard by its replica`,
              account.unheard.length,
            ],
          ]
        : []),
      ...Object.entries(WRONG).map(([name, title]) => [`**${title}**`, `**${wrong[name as Wrong].length}**`]),
    ]),
    ...(found.length > 0 ? [found.join('\n')] : []),
    ...(account.unheardMs > 0 ? [UNHEARD] : []),
    '## The faults',
    'Jobs carried: completed from the fault until recovery. Repeats: handlers started again for a try that had been started, each because of ' +
      'that fault. Recovery: from the return of what was taken away until the next job of those it hit completes (of a producer: is added). ' +
      'Alone: no other fault was under way. Run again: the longest from a fault that was alone until a job in flight was started again, ' +
      'but for jobs that a later fault kept waiting when their lease was over.',
    table([
      [
        'fault',
        'injected',
        'alone',
        'jobs carried',
        'repeats',
        'recovery alone, median ms',
        'max',
        'max when mixed',
        'run again, ms',
      ],
      ...rows.map(({ kind, injected, alone, jobs: carried, repeats, recovery, rerun }) => [
        faultOf(kind).title,
        injected,
        alone,
        carried,
        repeats,
        ...[recovery?.median, recovery?.max, recovery?.maxMixed, rerun].map((ms) =>
          ms === undefined || isNaN(ms) ? '' : ms,
        ),
      ]),
    ]),
    '## What callers saw',
    'Rejections of calls, and `error` events of queues and workers, while the fault was alone. Some handlers give their job back and return ' +
      'a result all the same, faults or none: `Missing lock`, `Lock mismatch` and `Missing key` are what they are to hear.',
    table([
      ['fault', 'what', 'times'],
      ...rows.flatMap(({ kind, errors }) =>
        Object.entries(errors).map(([text, times]) => [faultOf(kind).title, text, times]),
      ),
    ]),
  ].join('\n\n')}\n`;
}

function describeIdleness({ jobs, idleMs, inSlots }: Account['idleness']): string {
  return (
    `- in times without a fault ${jobs} jobs came while workers were idle for ${Math.round(idleMs / 1e3)} s, all of them taken together; ` +
    `${inSlots} waited in a free slot of a worker whose event loop a handler blocked`
  );
}

function table(rows: readonly (readonly (string | number)[])[]): string {
  const lines = rows.map((cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`);
  const rule = `| --- |${' ---: |'.repeat((rows[0]?.length ?? 1) - 1)}`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}
