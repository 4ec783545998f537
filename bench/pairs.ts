/**
 * Runs a scenario: a calibration of both sides, then pairs of runs, one run of each side in a pair. The side that goes
 * first alternates from pair to pair (A B B A), so that a machine that slows down or speeds up favours neither.
 */
import type { JobLibrary } from './adapters/library.js';
import { calibrate, enlarge } from './calibrate.js';
import type { Period } from './calibrate.js';
import { Interrupted, UsageError } from './ending.js';
import type { Sample } from './measure.js';
import { bestBase } from './opponent.js';
import type { Regime } from './regimes.js';
import type { Scenario } from './scenarios/scenario.js';
import type { Server } from './server.js';
import { Stage } from './stage.js';

export const sideNames = ['base', 'challenger'] as const;
/** The base is BullMQ; the challenger is what its figures are divided by. */
export type Side = (typeof sideNames)[number];
export type BothSides<T> = Readonly<Record<Side, T>>;

export interface Mode extends Period {
  readonly rounds: number;
  /** A run that is not done by then hangs. */
  readonly timeLimitMs: number;
  /** For all scenarios together: `plan.ts` says which of them fit into it. */
  readonly budgetSeconds: number;
}

export const quickMode: Mode = { quick: true, rounds: 3, seconds: 0.25, timeLimitMs: 60_000, budgetSeconds: 100 };
export const fullMode: Mode = { quick: false, rounds: 8, seconds: 1, timeLimitMs: 60_000, budgetSeconds: Infinity };

export interface Pair extends BothSides<Sample> {
  readonly first: Side;
  /** From a question to the server to its answer just before, when both have been asleep: it decides what single calls take. */
  readonly wakeMicros?: number;
}

export interface Fault {
  /** Undefined when the fault is neither side's. */
  readonly side: Side | undefined;
  readonly message: string;
}

export interface Result {
  readonly scenario: Scenario;
  readonly pairs: readonly Pair[];
  /** Name of the base, where there was a choice. */
  readonly base?: string;
  readonly faults: readonly Fault[];
}

export interface Observer {
  say(line: string): void;
  /** So many scenarios are run, as far as is known. */
  planned(scenarios: number): void;
  /** `part` of the scenario's work is done, 0 to 1. */
  step(scenario: Scenario, part: number, doing: string): void;
  done(result: Result): void;
}

export interface Bench {
  readonly libraries: BothSides<JobLibrary>;
  /** Other ways to run the base: the best of them is the base of a scenario. */
  readonly variants?: readonly JobLibrary[];
  /** That of the scenario under way. */
  readonly server: Server;
  /** Starts that of a regime when it is wanted. */
  readonly serverOf: (regime?: Regime) => Promise<Server>;
  readonly mode: Mode;
  /** Part of every queue name of this bench, and of no other key. */
  readonly mark: string;
  readonly observer: Observer;
  /** The server was started for the bench: its settings may be changed. */
  readonly ownsServer: boolean;
  /** Rejects with {@link Interrupted} when the bench is to stop; the run under way is cleaned up first. */
  readonly interrupted: Promise<never>;
}

/** The calibration of both sides counts as much as this many pairs in the progress of a scenario. */
const CALIBRATION_WEIGHT = 1;

/**
 * A side that throws ends the scenario: what was measured up to then stays in the result, beside the fault.
 * @param seconds are left for it: it makes do with the pairs that end in them, at least one
 */
export async function runScenario(whole: Bench, scenario: Scenario, seconds: number): Promise<Result> {
  const rounds = Math.min(whole.mode.rounds, scenario.mostPairs ?? Infinity);
  const begin = performance.now();
  let bench = whole;
  const pairs: Pair[] = [];
  const step = (part: number, doing: string, side: Side) =>
    bench.observer.step(scenario, part / (rounds + CALIBRATION_WEIGHT), `${doing}, ${bench.libraries[side].name}`);
  try {
    step(0, 'choosing the base', 'base');
    const withBase = (base: JobLibrary): Bench => ({ ...whole, libraries: { ...whole.libraries, base } });
    bench = withBase(
      await bestBase(whole, scenario, (base, jobs) => runOnce(withBase(base), scenario, 'base', jobs, 0)),
    );
    const sized = async (side: Side) => {
      step(0, 'calibrating', side);
      return calibrate(scenario.size, bench.mode, (jobs) => runOnce(bench, scenario, side, jobs, 0));
    };
    const jobs = { base: await sized('base'), challenger: await sized('challenger') };
    for (let round = 1; round <= rounds; round += 1) {
      const measured = async (side: Side) => {
        step(pairs.length + CALIBRATION_WEIGHT, `pair ${round} of ${rounds}`, side);
        for (;;) {
          const tried = jobs[side];
          const sample = await runOnce(bench, scenario, side, tried, round);
          jobs[side] = enlarge(scenario.size, bench.mode, tried, sample);
          if (sample.jobs > 0) return sample;
          // a machine that was busy while it calibrated has run too few
          if (jobs[side] === tried)
            throw new SideFailed(side, new Error('the run was over before its clock had started'));
        }
      };
      const pairBegin = performance.now();
      const wakeMicros = await bench.server.wakeMicros();
      pairs.push({ ...(await runPair(round % 2 === 1 ? 'base' : 'challenger', measured)), wakeMicros });
      const now = performance.now();
      // one more would take as long
      if (now - begin + (now - pairBegin) > seconds * 1e3) break;
    }
    return { scenario, pairs, base: bench.libraries.base.name, faults: [] };
  } catch (error) {
    if (!(error instanceof SideFailed)) throw error;
    return { scenario, pairs, base: bench.libraries.base.name, faults: [{ side: error.side, message: error.message }] };
  }
}

export async function runPair(first: Side, measured: (side: Side) => Promise<Sample>): Promise<Pair> {
  if (first === 'base') {
    const base = await measured('base');
    return { first, base, challenger: await measured('challenger') };
  }
  const challenger = await measured('challenger');
  return { first, base: await measured('base'), challenger };
}

export class SideFailed extends Error {
  constructor(
    readonly side: Side,
    cause: unknown,
  ) {
    super(cause instanceof Error ? cause.message || cause.name : String(cause), { cause });
  }
}

let runsSoFar = 0;

/**
 * One run on a queue of its own, whose keys are gone afterwards. The garbage collector is left alone: forced between runs,
 * when no job is alive, it also drops the hidden classes of jobs and the code compiled for them, and BullMQ, which is
 * JavaScript throughout, then spends up to five times the CPU on each job of a short run.
 */
export async function runOnce(
  bench: Bench,
  scenario: Scenario,
  side: Side,
  jobs: number,
  seed: number,
): Promise<Sample> {
  const { server, libraries, mode } = bench;
  const queueName = `${bench.mark}-${(runsSoFar += 1)}`;
  const timeLimitMs = Math.max(mode.timeLimitMs, scenario.timeLimitMs ?? 0);
  const settings = { library: libraries[side], server, queueName, seed, timeLimitMs };
  const stage = new Stage(settings);
  const stray = (reason: unknown) => stage.fail(reason);
  process.on('unhandledRejection', stray);
  try {
    const sample = await Promise.race([scenario.run(stage, jobs), stage.fault, bench.interrupted, server.lost]);
    await Promise.race([stage.close(), stage.fault]);
    return sample;
  } catch (error) {
    await stage.close(true).catch(() => undefined); // the first fault is the one to report
    throw error instanceof Interrupted || error instanceof UsageError ? error : new SideFailed(side, error);
  } finally {
    stage.dismiss();
    if (!server.isLost) {
      if (scenario.needsOwnServer) await server.keepOnDisk('none');
      await server.sweep(queueName);
    }
    process.off('unhandledRejection', stray);
  }
}
