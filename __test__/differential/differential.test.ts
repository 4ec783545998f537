// Random programs, the same ones in each run, on BullMQ and here: states, results, tries, events and errors agree. Fresh ones:
// `npm run differential`.
import { afterAll, describe, expect, it } from 'vitest';
import { describe as describeDifference } from './compare.js';
import { generate } from './generate.js';
import { judge } from './judge.js';
import { keptPrograms } from './kept.js';
import type { Program } from './program.js';
import { Pair } from './side.js';

const SEEDS = 60;
/** Of three runs of both, each of which may wait for what never comes. */
const PROGRAM_MS = 180_000;

describe('differential', () => {
  const pair = new Pair();
  afterAll(() => pair.close());

  async function agree(program: Program): Promise<void> {
    const differences = await judge(pair, program);
    expect(differences.map(describeDifference).join('\n'), JSON.stringify(program)).toBe('');
  }

  it.each(keptPrograms().map((program) => [program.name, program] as const))(
    'kept: %s',
    async (_, program) => agree(program),
    PROGRAM_MS,
  );

  it.each(Array.from({ length: SEEDS }, (_, i) => i + 1))('seed %i', async (seed) => agree(generate(seed)), PROGRAM_MS);
});
