/**
 * What others of these scenarios measure on one server, without TLS, once more where most users live: over TLS, behind Sentinel, and in a Cluster. `../regimes.ts` has
 * their servers. A row is to be read beside the one of the scenario that it repeats. Redis CPU is that of all masters; what replicas and sentinels spend is in none.
 */
import { ownRegimes } from '../regimes.js';
import type { OwnRegime } from '../regimes.js';
import { addScenarios } from './add.js';
import { bandwidthScenarios } from './bandwidth.js';
import { crowdScenarios } from './crowd.js';
import { latencyScenario } from './latency.js';
import { mixedScenarios } from './mixed/index.js';
import { openLoopScenarios } from './open-loop.js';
import type { Scenario } from './scenario.js';
import { trickleScenario } from './trickle.js';
import { waitingScenarios } from './waiting.js';
import { workerScenarios } from './worker.js';

const plain = [
  ...addScenarios,
  ...workerScenarios,
  ...waitingScenarios,
  latencyScenario,
  trickleScenario,
  ...bandwidthScenarios,
  ...openLoopScenarios,
  ...mixedScenarios,
  ...crowdScenarios,
];

const EVERYWHERE = [
  'trickle',
  'latency',
  'add-tiny',
  'waiting-20-1',
  'waiting-20-20',
  'waiting-20-50',
  'worker-100-remove',
  'bandwidth-10kib',
  'open-loop-50',
  'crowd-21',
];
/** Several worker processes: the way to the server makes the difference there, not how many masters there are. */
const MIXED = ['mixed-pair-1', 'mixed-steady-100ms-1', 'mixed-burst-1'];

interface Place {
  readonly words: string;
  readonly names: readonly string[];
  /** Those that the gate has. */
  readonly gated: readonly string[];
}

const places: Readonly<Record<OwnRegime, Place>> = {
  tls: { words: 'over TLS', names: [...EVERYWHERE, ...MIXED], gated: ['trickle'] },
  sentinel: { words: 'behind Sentinel', names: EVERYWHERE, gated: [] },
  cluster: { words: 'in a Cluster', names: EVERYWHERE, gated: ['trickle'] },
};

/** Those of a regime follow each other: its servers are started once. */
export const regimeScenarios: readonly Scenario[] = ownRegimes.flatMap((regime) =>
  places[regime].names.map((name) => under(regime, name)),
);

function under(regime: OwnRegime, name: string): Scenario {
  const scenario = plain.find((other) => other.name === name);
  if (!scenario) throw new Error(`no scenario is called ${name}`);
  const { words, gated } = places[regime];
  return {
    ...scenario,
    name: `${regime}-${name}`,
    title: `${words}: ${scenario.title}`,
    regime,
    isLong: true,
    isGated: gated.includes(name),
  };
}
