// How the differential test makes failing programs small, and that a seed is always the same program.
import { describe, expect, it } from 'vitest';
import { generate } from '../differential/generate.js';
import type { JobPlan, Program } from '../differential/program.js';
import { shrink } from '../differential/shrink.js';

const SOON = 10_000;

function jobsOf({ steps }: Program): JobPlan[] {
  return steps.flatMap((step) => (step.do === 'add' ? step.jobs : []));
}

describe('differential', () => {
  it('a seed is a program', () => {
    expect(generate(17)).toEqual(generate(17));
    expect(generate(17)).not.toEqual(generate(18));
  });

  it('what a failure does not need is left out', async () => {
    const needed: JobPlan = {
      key: 'needed',
      opts: { delay: 1 },
      script: [[{ do: 'wait', ms: 1 }], [{ do: 'moveToWait' }]],
    };
    const others = generate(3);
    const program: Program = {
      ...others,
      queues: others.queues + 1,
      steps: [
        ...others.steps,
        { do: 'add', queue: others.queues, how: 'one', jobs: [{ key: 'other' }, needed, { key: 'last', copies: 50 }] },
      ],
    };
    const movesItself = (plan: JobPlan) => (plan.script ?? []).flat().some((action) => action.do === 'moveToWait');
    const small = await shrink(
      program,
      async (smaller) => jobsOf(smaller).some((plan) => plan.key === 'needed' && movesItself(plan)),
      performance.now() + SOON,
    );
    const job = { key: 'needed', script: [[{ do: 'moveToWait' }]] };
    expect(small).toEqual({
      name: others.name,
      queues: 1,
      workers: [],
      steps: [{ do: 'add', queue: 0, how: 'one', jobs: [job] }],
    });
  });

  it('nothing is tried after the deadline', async () => {
    const program = generate(5);
    let tries = 0;
    const small = await shrink(program, async () => ++tries > 0, performance.now() - 1);
    expect([small, tries]).toEqual([program, 0]);
  });
});
