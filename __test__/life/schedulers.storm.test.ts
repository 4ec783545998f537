// Many processes upsert many schedulers at once, again and again, by clocks that differ.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const SCHEDULERS = 200;
/** They differ by 2 s. */
const SKEWS = [-1000, 0, 1000, 300];
const ROUNDS = 5;

interface Storm {
  /** What calls rejected with. */
  readonly errors: string[];
  /** Slots that ran twice, and slots between the first run of a scheduler and its last that did not run. */
  readonly doubled: string[];
  readonly skipped: string[];
  readonly runs: number;
}

describe('a storm of restarts', () => {
  const stage = useStage(chasquimq);

  async function storm(library: string, rules = {}): Promise<Storm> {
    const env = { LIBRARY: library, QUEUE: stage.queueName, SCHEDULERS, RULES: JSON.stringify(rules) };
    const start = (skew: number) => stage.keep(Program.start('scheduler-storm.mjs', { env: { ...env, SKEW: skew } }));
    const all: Program[] = [];
    let running: Program[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const next = SKEWS.map(start);
      all.push(...next);
      await Promise.all(next.map((program) => program.said('upserted')));
      // three runs of each scheduler, while both generations work
      await until('runs', () => runsOf(all) > 3 * SCHEDULERS * (round + 1));
      await Promise.all(running.map((program) => program.kill('SIGTERM')));
      running = next;
    }
    await Promise.all(running.map((program) => program.kill('SIGTERM')));
    return account(all.flatMap(({ lines }) => lines));
  }

  function runsOf(programs: Program[]): number {
    return programs.reduce((sum, { lines }) => sum + lines.filter((line) => line.startsWith('ran')).length, 0);
  }

  function account(lines: string[]): Storm {
    const slots = new Map<string, number[]>();
    let runs = 0;
    for (const [, scheduler, slot] of lines.filter((line) => line.startsWith('ran')).map((line) => line.split(' '))) {
      runs++;
      slots.set(scheduler, [...(slots.get(scheduler) ?? []), Number(slot)]);
    }
    const doubled: string[] = [];
    const skipped: string[] = [];
    for (const [scheduler, of] of slots) {
      of.sort((a, b) => a - b);
      for (let i = 1; i < of.length; i++) {
        if (of[i] === of[i - 1]) doubled.push(`${scheduler} ${of[i]}`);
        for (let slot = of[i - 1] + 1000; slot < of[i]; slot += 1000) skipped.push(`${scheduler} ${slot}`);
      }
    }
    return { errors: lines.filter((line) => line.startsWith('error')), doubled, skipped, runs };
  }

  it.each([{}, { overlap: 'queue', catchUp: 'all' }])('fails, doubles and skips nothing: %o', async (rules) => {
    const { errors, doubled, skipped, runs } = await storm('chasquimq', rules);
    expect({ errors, doubled, skipped }).toEqual({ errors: [], doubled: [], skipped: [] });
    expect(runs).toBeGreaterThanOrEqual(3 * SCHEDULERS * ROUNDS);
  });

  it('is one: BullMQ does', async () => {
    const { errors, doubled, skipped } = await storm('bullmq');
    expect(errors.length + doubled.length + skipped.length).toBeGreaterThan(0);
  });
});
