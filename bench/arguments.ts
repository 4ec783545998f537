import { UsageError } from './ending.js';
import { LOAD_FLOOR } from './gate/load.js';
import { readOptions } from './options.js';
import { scenarios } from './scenarios/index.js';
import type { Scenario } from './scenarios/scenario.js';

export interface Arguments {
  readonly quick: boolean;
  readonly self: boolean;
  readonly scenarios: readonly Scenario[];
  /** They were chosen by name. */
  readonly isNamed: boolean;
  readonly rounds: number | undefined;
  readonly evenIfBusy: boolean;
}

const usage = `usage: npm run bench [-- --quick] [--only NAME,...] [--rounds N] [--self] [--even-if-busy]
       npm run bench -- --peers [--rounds N]

Measures ChasquiMQ against BullMQ on the Redis server that REDIS_URL names, and writes a report under benchmarks/.

  --quick          as much as this machine does in about two minutes, the most wanted first. It shows ratios and judges nothing
  --only           only these scenarios, of which a name that ends in "*" names several, as mixed-* and tls-* do: ${scenarios.map(({ name }) => name).join(', ')}
  --peers          other queues on Redis beside both, each in its own figures
  --rounds         pairs of runs of each scenario
  --self           BullMQ against itself, which shows the noise of this machine
  --even-if-busy   a whole run begins above a load of ${LOAD_FLOOR} a core, too. Its report is named so, and no figures are drawn from it

CHASQUI_MODULE names another build of ChasquiMQ to measure instead of dist/.`;

export function readArguments(argv: readonly string[]): Arguments {
  const values = readOptions(argv, usage, {
    quick: { type: 'boolean', default: false },
    self: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
    'even-if-busy': { type: 'boolean', default: false },
  });
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
    throw new UsageError(`--rounds takes a whole number above 0, not ${values.rounds}`);
  }
  return {
    quick: values.quick,
    self: values.self,
    rounds,
    evenIfBusy: values['even-if-busy'],
    isNamed: values.only !== undefined,
    scenarios: values.only === undefined ? scenariosOf(values.quick) : chosen(values.only, usage),
  };
}

/** What a run consists of when nothing is named. */
export function scenariosOf(quick: boolean): readonly Scenario[] {
  return quick ? scenarios.filter(({ isLong }) => !isLong) : scenarios;
}

/** The scenarios of a list of names and of beginnings of names (`mixed-*`), all without one. */
export function chosen(only: string | undefined, usage: string): readonly Scenario[] {
  if (only === undefined) return scenarios;
  const names = only.split(',');
  const isMeant = (name: string, scenario: Scenario) =>
    name.endsWith('*') ? scenario.name.startsWith(name.slice(0, -1)) : scenario.name === name;
  const unknown = names.filter((name) => !scenarios.some((scenario) => isMeant(name, scenario)));
  if (unknown.length > 0) throw new UsageError(`no scenario is called ${unknown.join(', ')}\n\n${usage}`);
  return scenarios.filter((scenario) => names.some((name) => isMeant(name, scenario)));
}
