import { addScenarios } from './add.js';
import { bandwidthScenarios } from './bandwidth.js';
import { busyScenario } from './busy.js';
import { contendedScenarios } from './contended.js';
import { controlScenarios } from './control.js';
import { crowdScenarios } from './crowd.js';
import { cpuScenarios } from './cpu.js';
import { delayedScenario } from './delayed.js';
import { distanceScenarios } from './distance.js';
import { flowScenario } from './flow.js';
import { getScenarios } from './getters.js';
import { groupScenarios } from './groups.js';
import { idleScenario } from './idle.js';
import { latencyScenario } from './latency.js';
import { listenerScenarios } from './listeners.js';
import { memoryScenarios } from './memory.js';
import { mixedScenarios } from './mixed/index.js';
import { openLoopScenarios } from './open-loop.js';
import { pacedScenarios } from './paced.js';
import { persistenceScenarios } from './persistence.js';
import { priorityScenario } from './priority.js';
import { processScenarios } from './processes.js';
import { regimeScenarios } from './regimes.js';
import { retryScenario } from './retry.js';
import type { Scenario } from './scenario.js';
import { schedulerScenarios } from './schedulers.js';
import { trickleApart, trickleOfManySlots, trickleScenario } from './trickle.js';
import { waitingScenarios } from './waiting.js';
import { workerScenarios } from './worker.js';

/** In the order in which they run and are reported. */
export const scenarios: readonly Scenario[] = [
  ...addScenarios,
  ...workerScenarios,
  ...groupScenarios,
  ...controlScenarios,
  ...waitingScenarios,
  ...cpuScenarios,
  retryScenario,
  delayedScenario,
  priorityScenario,
  ...schedulerScenarios,
  flowScenario,
  latencyScenario,
  trickleScenario,
  trickleOfManySlots,
  trickleApart,
  ...pacedScenarios,
  busyScenario,
  ...bandwidthScenarios,
  ...getScenarios,
  ...memoryScenarios,
  ...distanceScenarios,
  ...persistenceScenarios,
  ...openLoopScenarios,
  ...processScenarios,
  ...mixedScenarios,
  ...listenerScenarios,
  ...contendedScenarios,
  ...crowdScenarios,
  ...regimeScenarios,
  // it has garbage collected, by which those after it would lose what V8 has compiled
  idleScenario,
];
