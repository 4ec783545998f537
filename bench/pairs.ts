/**
 * Runs the scenarios: for each, a calibration of both sides, then pairs of runs, one run of each side in a pair. The side
 * that goes first alternates from pair to pair (A B B A), so that a machine that slows down or speeds up favours neither.
 */
import type { JobLibrary } from './adapters/library.js';
import { calibrate, enlarge } from './calibrate.js';
import type { Period } from './calibrate.js';
import { Interrupted, UsageError } from './ending.js';
import type { Sample } from './measure.js';
import { bestBase } from './opponent.js';
import type { Scenario } from './scenarios/scenario.js';
import type { Server } from './server.js';
import { Stage } from './stage.js';

export const sideNames = ['base', 'challenger'] as const;
/** The base is BullMQ; the challenger is what its figures are divided by. */
export type Side = (typeof sideNames)[number];
export type BothSides<T> = Readonly<Record<Side, T>>;

export interface Mode extends Period {
  readonly rounds: number;
  readonly timeLimitMs: number;
  /**
   * Every scenario has an equal share of this. When its share and what earlier ones left over are used up, it makes do
   * with the pairs it has, at least one. A busy machine can thus not stretch a quick run beyond measure.
   */
  readonly budgetSeconds: number;
}

export const quickMode: Mode = { quick: true, rounds: 3, seconds: 0.25, timeLimitMs: 20_000, budgetSeconds: 100 };
export const fullMode: Mode = { quick: false, rounds: 8, seconds: 1, timeLimitMs: 60_000, budgetSeconds: Infinity };

/** A scenario that would start this long after the budget is used up is reported as not run. */
const OVERTIME_SECONDS = 12;

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
  /** `part` of the scenario's work is done, 0 to 1. */
  step(scenario: Scenario, part: number, doing: string): void;
  done(result: Result): void;
}

export interface Bench {
  readonly libraries: BothSides<JobLibrary>;
  /** Other ways to run the base: the best of them is the base of a scenario. */
  readonly variants?: readonly JobLibrary[];
  readonly server: Server;
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

export async function runAll(bench: Bench, scenarios: readonly Scenario[]): Promise<Result[]> {
  const { mode, observer } = bench;
  const begin = performance.now();
  const passed = () => (performance.now() - begin) / 1e3;
  const results: Result[] = [];
  for (const [i, scenario] of scenarios.entries()) {
    const share = (mode.budgetSeconds * (i + 1)) / scenarios.length;
    const result =
      scenario.needsOwnServer && !bench.ownsServer
        ? leftOut(scenario)
        : passed() > mode.budgetSeconds + OVERTIME_SECONDS
          ? notRun(scenario, passed())
          : await runScenario(bench, scenario, () => passed() > share);
    results.push(result);
    observer.done(result);
  }
  return results;
}

/** Not a fault: it says itself why there are no figures. */
function leftOut(scenario: Scenario): Result {
  return { scenario, pairs: [], faults: [] };
}

function notRun(scenario: Scenario, passed: number): Result {
  const message = `not run: ${Math.round(passed)} s had passed`;
  return { scenario, pairs: [], faults: [{ side: undefined, message }] };
}

/** A side that throws ends the scenario: what was measured up to then stays in the result, beside the fault. */
async function runScenario(whole: Bench, scenario: Scenario, timeIsUp: () => boolean): Promise<Result> {
  const { rounds } = whole.mode;
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
        const sample = await runOnce(bench, scenario, side, jobs[side], round);
        if (sample.jobs === 0) throw new SideFailed(side, new Error('the run was over before its clock had started'));
        jobs[side] = enlarge(scenario.size, bench.mode, jobs[side], sample);
        return sample;
      };
      if (pairs.length > 0 && timeIsUp()) break;
      const wakeMicros = await bench.server.wakeMicros();
      pairs.push({ ...(await runPair(round % 2 === 1 ? 'base' : 'challenger', measured)), wakeMicros });
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
  const settings = { library: libraries[side], server, queueName, seed, timeLimitMs: mode.timeLimitMs };
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
