import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { chosen } from '../arguments.js';
import { messageOf, UsageError } from '../ending.js';
import type { Scenario } from '../scenarios/scenario.js';
import { scenarios } from '../scenarios/index.js';
import { LEAST_RATIO, LOOKS } from './interval.js';
import { LOAD_FLOOR, TAKEN_FLOOR } from './load.js';

export interface GateArguments {
  readonly base: string | undefined;
  readonly scenarios: readonly Scenario[];
  readonly evenIfBusy: boolean;
}

const GATE_USAGE = `usage: npm run bench:gate [-- --base REF] [--only NAME,...] [--even-if-busy]

Builds the commit REF beside this tree and runs base, head, base, head ... in one process, up to ${LOOKS.at(-1)} pairs a scenario. What
falls below ${LEAST_RATIO} of the base fails (exit code 1).

  --base           a commit; otherwise the last one while crates/ or src/ have changes, else where this branch left main
  --only           only these scenarios: ${scenarios.map(({ name }) => name).join(', ')}
  --even-if-busy   begins above the load floor, too (${LOAD_FLOOR} a core). A drop is not judged above it, nor where others
                   took more than ${TAKEN_FLOOR * 100} % of the cores meanwhile (exit code 3)`;

export function readGateArguments(argv: readonly string[]): GateArguments {
  const values = parse(argv, GATE_USAGE, {
    base: { type: 'string' },
    only: { type: 'string' },
    'even-if-busy': { type: 'boolean', default: false },
  });
  return {
    base: values.base as string | undefined,
    scenarios: chosen(values.only as string | undefined, GATE_USAGE).filter(
      ({ isLong }) => values.only !== undefined || !isLong,
    ),
    evenIfBusy: values['even-if-busy'] === true,
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
  const values = parse(argv, BISECT_USAGE, {
    good: { type: 'string' },
    bad: { type: 'string' },
    only: { type: 'string' },
  });
  const { good, bad, only } = values;
  for (const [name, value] of Object.entries({ good, bad, only })) {
    if (typeof value !== 'string' || value === '') throw new UsageError(`--${name} is missing\n\n${BISECT_USAGE}`);
  }
  const [scenario, ...more] = chosen(only as string, BISECT_USAGE);
  if (!scenario || more.length > 0) throw new UsageError(`--only takes one scenario\n\n${BISECT_USAGE}`);
  return { good: good as string, bad: bad as string, scenario };
}

function parse(
  argv: readonly string[],
  usage: string,
  options: NonNullable<ParseArgsConfig['options']>,
): Record<string, unknown> {
  try {
    const all = { ...options, help: { type: 'boolean', short: 'h' } } as const;
    const values: Record<string, unknown> = parseArgs({ args: [...argv], options: all }).values;
    if (values.help !== undefined) throw new Error('');
    return values;
  } catch (error) {
    throw new UsageError(`${messageOf(error)}\n\n${usage}`.trim());
  }
}
