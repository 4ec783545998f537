/**
 * What idle workers do with jobs that are added in one call. A run has several rounds. Before each of them, "warm" workers run a thousand jobs that do nothing; "cold" ones
 * have run none, so that such a run has one round. Then all fall asleep. A wait is from just before the call to the first line of the job's handler, on the clock that the
 * processes of a machine share; a burst is from that call to the last `completed` event.
 */
import type { Metric, Sample } from '../../measure.js';
import { median, quantile } from '../../statistics.js';
import type { Stage } from '../../stage.js';
import { clockOfMachine } from '../../worker-process.js';
import type { Scenario } from '../scenario.js';
import { Team } from './team.js';
import type { JobStart, Members, Work } from './team.js';

interface Batch extends Members {
  /** Of the jobs that one call adds. */
  readonly works: readonly Work[];
  /** The last so many of them are measured; all unless told. */
  readonly measured?: number;
  /** Their waits count from the start of the job before them: what is before that one is left out of account. */
  readonly areBehindIt?: boolean;
  readonly isCold?: boolean;
}

export interface Rounds extends Batch {
  readonly name: string;
  readonly title: string;
  readonly metrics: readonly Metric[];
  /** In a run of warm workers. */
  readonly rounds: number;
}

export interface Round {
  /** Of the measured jobs. */
  readonly jobs: readonly Wait[];
  /** From the call to the last completion. */
  readonly ms: number;
}

export interface Wait {
  readonly ms: number;
  readonly worker: number;
}

/** Seconds that processes take to start, by each of them. */
export const STARTS_S = 0.3;

export function roundsScenario({ name, title, metrics, rounds, ...batch }: Rounds): Scenario {
  const { isCold = false, workers, works } = batch;
  const longest = Math.max(...works.map(({ blocks = 0, waits = 0 }) => blocks + waits));
  return {
    name,
    title: `${title}${isCold ? ', cold' : ''}`,
    metrics,
    size: { kind: 'fixed', full: isCold ? 1 : rounds, quick: 1 },
    isLong: true,
    isOfPlainBase: true,
    waits: workers * STARTS_S + longest / 1e3,
    run: (stage, count) => run(stage, count, batch),
  };
}

async function run(stage: Stage, count: number, batch: Batch): Promise<Sample> {
  const team = await Team.open(stage, batch);
  const done: { readonly numbers: readonly number[]; readonly ms: number }[] = [];
  while (done.length < count) {
    if (!batch.isCold) await team.warmUp();
    await team.fallAsleep();
    const begin = clockOfMachine();
    const numbers = await team.add(batch.works);
    done.push({ numbers, ms: (await team.done()) - begin });
  }
  const starts = await team.account();
  const startsOf = (numbers: readonly number[]) => numbers.map((i) => starts[i]);
  return sampleOf(done.map(({ numbers, ms }) => ({ ms, jobs: waitsOf(startsOf(numbers), batch) })));
}

/** The waits of the measured jobs of one call, all of whose starts are given. */
export function waitsOf(
  starts: readonly JobStart[],
  { measured = starts.length, areBehindIt = false }: Pick<Batch, 'measured' | 'areBehindIt'>,
): Wait[] {
  const before = starts.at(-measured - 1);
  return starts.slice(-measured).map(({ addedAt, startedAt, worker }) => {
    const from = areBehindIt && before ? before.startedAt : addedAt;
    // those that another worker has started before it did not wait for it
    return { ms: Math.max(startedAt - from, 0), worker };
  });
}

export function sampleOf(rounds: readonly Round[]): Sample {
  const all = rounds.flatMap(({ jobs }) => jobs.map(({ ms }) => ms));
  return {
    jobs: all.length,
    seconds: rounds.reduce((sum, { ms }) => sum + ms, 0) / 1e3,
    values: {
      ...latencies(all),
      latencyLastMs: median(rounds.map(({ jobs }) => Math.max(...jobs.map(({ ms }) => ms)))),
      burstMs: median(rounds.map(({ ms }) => ms)),
      busiestJobs: rounds.reduce((sum, { jobs }) => sum + mostOnOne(jobs), 0) / rounds.length,
    },
  };
}

export function latencies(waits: readonly number[]): Sample['values'] {
  return {
    latencyP50Ms: quantile(waits, 0.5),
    latencyP90Ms: quantile(waits, 0.9),
    latencyP99Ms: quantile(waits, 0.99),
    latencyP999Ms: quantile(waits, 0.999),
  };
}

/** As many as ran on the worker that ran most. */
function mostOnOne(jobs: readonly Wait[]): number {
  const counts = new Map<number, number>();
  for (const { worker } of jobs) counts.set(worker, (counts.get(worker) ?? 0) + 1);
  return Math.max(...counts.values());
}
