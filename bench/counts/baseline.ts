/** `benchmarks/baseline.json`: the counts that are to be kept, why they are what they are, and the comparison with them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../ending.js';
import { BYTES, MEMORY } from './count.js';
import type { Counts } from './count.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FILE = 'benchmarks/baseline.json';

export interface Counted {
  /** Of which memory was measured, such as `Redis 7.0.15`. */
  readonly server: string;
  readonly counts: Readonly<Record<string, Counts>>;
}

export interface Baseline extends Counted {
  /** Why the counts are not those of the baseline before. */
  readonly reason: string;
}

/**
 * A figure may be larger by this part. Numbers and times in what is sent and stored differ in length from run to run, and the server rounds
 * up what it takes; the least of some runs is compared, which leaves these spreads. Everything else is exact.
 */
const ALLOWANCES: Readonly<Record<string, number>> = {
  ...Object.fromEntries(BYTES.map((name) => [name, 0.0025])),
  [MEMORY]: 0.02,
};

/** Bytes by which memory may be larger beside: a list or a stream's node that the server makes larger, it makes larger by as much as 1 KiB. */
const MEMORY_STEPS = 2_048;

export interface Change {
  readonly scenario: string;
  readonly figure: string;
  /** Undefined where there was none, or is none. */
  readonly was: number | undefined;
  readonly is: number | undefined;
}

export interface Comparison {
  readonly worse: readonly Change[];
  readonly better: readonly Change[];
  /** What could not be compared, and why. */
  readonly notCompared: readonly string[];
}

export function isWorse(figure: string, was: number | undefined, is: number | undefined): boolean {
  const steps = figure === MEMORY ? MEMORY_STEPS : 0;
  return (is ?? 0) > (was ?? 0) * (1 + (ALLOWANCES[figure] ?? 0)) + steps;
}

export function compare(baseline: Counted, found: Counted): Comparison {
  const [worse, better]: [Change[], Change[]] = [[], []];
  const isSameServer = baseline.server === found.server;
  const scenarios = new Set([...Object.keys(baseline.counts), ...Object.keys(found.counts)]);
  for (const scenario of scenarios) {
    const [was, is] = [baseline.counts[scenario] ?? {}, found.counts[scenario] ?? {}];
    if (!(scenario in found.counts)) {
      worse.push({ scenario, figure: 'is counted (1) or not (0)', was: 1, is: 0 });
      continue;
    }
    for (const figure of new Set([...Object.keys(was), ...Object.keys(is)])) {
      if (figure === MEMORY && !isSameServer) continue;
      const change = { scenario, figure, was: was[figure], is: is[figure] };
      if (isWorse(figure, change.was, change.is)) worse.push(change);
      else if (isWorse(figure, change.is, change.was)) better.push(change);
    }
  }
  const why = `Redis memory: the baseline is of ${baseline.server}, this is ${found.server}`;
  return { worse, better, notCompared: isSameServer ? [] : [why] };
}

export function readBaseline(): Baseline {
  const path = `${ROOT}${FILE}`;
  if (!existsSync(path)) throw new UsageError(`there is no ${FILE}: write one with --write "reason"`);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Baseline;
  } catch (error) {
    throw new UsageError(`${FILE} cannot be read: ${String(error)}`);
  }
}

/** At once or not at all. */
export function writeBaseline(baseline: Baseline): string {
  writeFileSync(`${ROOT}${FILE}.new`, `${JSON.stringify(baseline, undefined, 2)}\n`);
  renameSync(`${ROOT}${FILE}.new`, `${ROOT}${FILE}`);
  return FILE;
}

/** What is wrong with a baseline whose counts are others than those before it. */
export function complaintAbout(now: Baseline, before: Baseline | undefined): string | undefined {
  if (!now.reason) return `${FILE} gives no reason`;
  if (!before || JSON.stringify(now.counts) === JSON.stringify(before.counts)) return undefined;
  const isNew = now.reason !== before.reason;
  return isNew ? undefined : `the counts in ${FILE} were changed, and its reason is the one of the counts before`;
}

/** The baseline of the last commit, or of the one before it if that is the same. Undefined where git has none. */
export function committedBefore(now: Baseline): Baseline | undefined {
  for (const commit of ['HEAD', 'HEAD^']) {
    const text = committed(commit);
    if (text === undefined) return undefined;
    const before = JSON.parse(text) as Baseline;
    if (JSON.stringify(before.counts) !== JSON.stringify(now.counts)) return before;
  }
  return undefined;
}

function committed(commit: string): string | undefined {
  try {
    return execFileSync('git', ['show', `${commit}:${FILE}`], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return undefined;
  }
}
