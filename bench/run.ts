/** Runs scenarios one after the other: all of them, or what ends in time. */
import { calibrate } from './calibrate.js';
import { Interrupted, messageOf } from './ending.js';
import { runOnce, runScenario } from './pairs.js';
import type { Bench, Result, Side } from './pairs.js';
import { fitting, planOf, wordsOf } from './plan.js';
import type { Speeds } from './plan.js';
import { addScenarios } from './scenarios/add.js';
import type { Scenario } from './scenarios/scenario.js';
import { workerScenarios } from './scenarios/worker.js';

/** One that adds, and one that runs what was added. */
const probes = [...addScenarios, ...workerScenarios].filter(({ name }) =>
  ['add-bulk-50', 'worker-100-keep'].includes(name),
);

/** What is asked for and has no result was left out, to end in time. */
export async function runAll(bench: Bench, asked: readonly Scenario[]): Promise<Result[]> {
  const { mode, observer, libraries } = bench;
  const begin = performance.now();
  const left = () => mode.budgetSeconds - (performance.now() - begin) / 1e3;

  const speeds = Number.isFinite(mode.budgetSeconds) ? await measureSpeeds(bench) : undefined;
  const plan = planOf(asked, mode, speeds, left());
  if (speeds) observer.say(wordsOf(plan, speeds, libraries, left()));
  const planned = { ...bench, mode: { ...mode, seconds: plan.window, rounds: plan.pairs } };
  const results: Result[] = [];
  let waiting = plan.parts;
  for (;;) {
    // looked at anew each time: some take longer than was expected, and some less
    const fits = fitting(waiting, left());
    const next = fits.length > 0 || results.length > 0 ? fits : waiting.slice(0, 1);
    const [part] = next;
    if (!part) return results;
    observer.planned(results.length + next.length);
    waiting = waiting.filter((other) => other !== part);
    const { scenario } = part;
    const isRun = bench.ownsServer || !scenario.needsOwnServer;
    const result = isRun ? await runInRegime(planned, scenario, left()) : leftAlone(scenario);
    results.push(result);
    observer.done(result);
  }
}

/** A server that does not start is a fault of neither side. */
async function runInRegime(bench: Bench, scenario: Scenario, seconds: number): Promise<Result> {
  const started = await Promise.race([bench.serverOf(scenario.regime), bench.interrupted]).catch((error: unknown) => {
    if (error instanceof Interrupted) throw error;
    return `there is no server for it: ${messageOf(error)}`;
  });
  if (typeof started === 'string') return { scenario, pairs: [], faults: [{ side: undefined, message: started }] };
  return runScenario({ ...bench, server: started }, scenario, seconds);
}

/** Not a fault: it says itself why there are no figures. */
function leftAlone(scenario: Scenario): Result {
  return { scenario, pairs: [], faults: [] };
}

/** Calibrating warms a side up, so the run after it is the one that tells. */
async function measureSpeeds(bench: Bench): Promise<Speeds> {
  const speedOf = async (side: Side) => {
    let secondsAJob = 0;
    for (const scenario of probes) {
      const run = (jobs: number) => runOnce(bench, scenario, side, jobs, 0);
      const { seconds, jobs } = await run(await calibrate(scenario.size, bench.mode, run));
      // it may be over before its clock has started
      secondsAJob += seconds / Math.max(jobs, 1);
    }
    return 1 / secondsAJob;
  };
  return { base: await speedOf('base'), challenger: await speedOf('challenger') };
}
