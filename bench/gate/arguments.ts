import { chosen } from '../arguments.js';
import { UsageError } from '../ending.js';
import { readOptions } from '../options.js';
import type { Scenario } from '../scenarios/scenario.js';
import { scenarios } from '../scenarios/index.js';
import { MOST_GROWTH } from './instructions.js';
import { LEAST_RATIO, LOOKS } from './interval.js';
import { LOAD_FLOOR, TAKEN_FLOOR } from './load.js';

export interface GateArguments {
  readonly base: string | undefined;
  readonly scenarios: readonly Scenario[];
  readonly instructions: boolean;
  readonly evenIfBusy: boolean;
}

/** Beside the scenarios, what can be named. */
const INSTRUCTIONS = 'instructions';

const GATE_USAGE = `usage: npm run bench:gate [-- --base REF] [--only NAME,...] [--even-if-busy]

Builds the commit REF beside this tree and runs base, head, base, head ... in one process, up to ${LOOKS.at(-1)} pairs a scenario. What
falls below ${LEAST_RATIO} of the base fails (exit code 1). Where there is valgrind, it counts the instructions of the engine as well: what grows
by more than ${MOST_GROWTH * 100} % fails, however busy the machine is.

  --base           a commit; otherwise the last one while crates/ or src/ have changes, else where this branch left main
  --only           only these: ${INSTRUCTIONS}, ${scenarios.map(({ name }) => name).join(', ')}
  --even-if-busy   begins above the load floor, too (${LOAD_FLOOR} a core). A drop is not judged above it, nor where others
                   took more than ${TAKEN_FLOOR * 100} % of the cores meanwhile (exit code 3)`;

export function readGateArguments(argv: readonly string[]): GateArguments {
  const values = readOptions(argv, GATE_USAGE, {
    base: { type: 'string' },
    only: { type: 'string' },
    'even-if-busy': { type: 'boolean', default: false },
  });
  const names = values.only?.split(',');
  const others = names?.filter((name) => name !== INSTRUCTIONS);
  const onlyThem = others?.length === 0;
  return {
    base: values.base,
    scenarios: onlyThem
      ? []
      : chosen(others?.join(','), GATE_USAGE).filter(({ isLong, isGated }) => others || !isLong || isGated),
    instructions: names?.includes(INSTRUCTIONS) ?? true,
    evenIfBusy: values['even-if-busy'],
  };
}

export interface BisectArguments {
  readonly good: string;
  readonly bad: string;
  readonly scenario: Scenario;
}

const BISECT_USAGE = `usage: npm run bench:bisect -- --good REF --bad REF --only SCENARIO

Finds the commit after GOOD and up to BAD with which SCENARIO became slower, by pairs of runs against GOOD.

  --only   one of ${scenarios.map(({ name }) => name).join(', ')}`;

export function readBisectArguments(argv: readonly string[]): BisectArguments {
  const { good, bad, only } = readOptions(argv, BISECT_USAGE, {
    good: { type: 'string' },
    bad: { type: 'string' },
    only: { type: 'string' },
  });
  const missing = (name: string) => new UsageError(`--${name} is missing\n\n${BISECT_USAGE}`);
  if (!good) throw missing('good');
  if (!bad) throw missing('bad');
  if (!only) throw missing('only');
  const [scenario, ...more] = chosen(only, BISECT_USAGE);
  if (!scenario || more.length > 0) throw new UsageError(`--only takes one scenario\n\n${BISECT_USAGE}`);
  return { good, bad, scenario };
}
