// Random programs, the same ones in each run, on BullMQ and here: states, results, tries, events and errors agree. Fresh ones:
// `npm run differential`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describe as describeDifference } from './compare.js';
import { generate } from './generate.js';
import { judge } from './judge.js';
import { keptPrograms } from './kept.js';
import type { Program } from './program.js';
import { Pair } from './side.js';

const SEEDS = 50;
/** Of three runs of both, each of which may wait for what never comes. */
const PROGRAM_MS = 600_000;
const LANES = 3;

describe('differential', () => {
  const pairs = Array.from({ length: LANES }, () => new Pair());
  afterAll(() => Promise.all(pairs.map((pair) => pair.close())));

  const programs: Program[] = [...keptPrograms(), ...Array.from({ length: SEEDS }, (_, i) => generate(i + 1))];
  const judgements = new Map<Program, Promise<string>>();

  /** Most of the time of a program is spent waiting, so some run at a time. */
  async function lane(
    pair: Pair,
    todo: Program[],
    settled: Map<Program, (text: Promise<string>) => void>,
  ): Promise<void> {
    for (let program = todo.shift(); program; program = todo.shift()) {
      const judged = judge(pair, program).then((differences) => differences.map(describeDifference).join('\n'));
      settled.get(program)?.(judged);
      await judged.catch(() => undefined);
    }
  }

  beforeAll(() => {
    const settled = new Map<Program, (text: Promise<string>) => void>();
    for (const program of programs) judgements.set(program, new Promise((resolve) => settled.set(program, resolve)));
    const todo = [...programs];
    for (const pair of pairs) void lane(pair, todo, settled);
  });

  it.each(programs.map((program) => [program.name, program] as const))(
    '%s',
    async (_, program) => {
      expect(await judgements.get(program), JSON.stringify(program)).toBe('');
    },
    PROGRAM_MS,
  );
});
