/**
 * A host that is busy with something else: one process for each core burns CPU from before the run to its end. The same scenarios without them stand
 * elsewhere in the report, so that what the load takes can be read from both. Both sides of a pair have it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import type { Sample } from '../measure.js';
import { addScenarios } from './add.js';
import { latencyScenario } from './latency.js';
import type { Scenario } from './scenario.js';
import { trickleScenario } from './trickle.js';
import { waitingScenarios } from './waiting.js';
import { workerScenarios } from './worker.js';

/** It says when it begins. It ends by itself, too: nothing is left behind by a bench that was killed. */
const BURNER = 'fs.writeSync(1, "."); for (const end = Date.now() + 120_000; Date.now() < end && process.ppid !== 1;);';

const quiet = [...addScenarios, ...workerScenarios, ...waitingScenarios, latencyScenario, trickleScenario];

function contended(name: string): Scenario {
  const scenario = quiet.find((other) => other.name === name);
  if (!scenario) throw new Error(`no scenario is called ${name}`);
  return {
    ...scenario,
    name: `contended-${name}`,
    title: `beside a busy process on each core: ${scenario.title}`,
    isLong: true,
    run: (stage, jobs) => besideLoad(() => scenario.run(stage, jobs)),
  };
}

async function besideLoad(run: () => Promise<Sample>): Promise<Sample> {
  const burners = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', BURNER], { stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  try {
    await Promise.all(burners.map(({ stdout }) => once(stdout, 'data')));
    return await run();
  } finally {
    for (const burner of burners) burner.kill('SIGKILL');
  }
}

export const contendedScenarios: readonly Scenario[] = [
  'add-in-flight',
  'worker-100-remove',
  'waiting-20-20',
  'latency',
  'trickle',
].map(contended);
