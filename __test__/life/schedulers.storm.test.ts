// Many processes upsert many schedulers at once, again and again, by clocks that differ.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const SCHEDULERS = 200;
// `STORM_PROCESSES=25 STORM_SECONDS=300` make it as long and as wide as one of a whole deployment: two generations are there at a time
const { STORM_PROCESSES = '4', STORM_SECONDS = '0' } = process.env;
/** They differ by 2 s. */
const SKEWS = Array.from({ length: Number(STORM_PROCESSES) }, (_, i) => [-1000, 0, 1000, 300][i % 4]);
const ROUNDS = 5;
const LEAST_MS = Number(STORM_SECONDS) * 1000;
const EVERY_MS = 1000;
/** By so much the slowest of the clocks, and the fastest, differ from the machine's. */
const LATE_MS = 1000;
/** Fifty processes that start together take their time. */
const LIMIT_MS = LEAST_MS > 0 ? 120_000 : 30_000;

interface Storm {
  /** What calls rejected with. */
  readonly errors: string[];
  /** Slots that ran twice, and slots between the first run of a scheduler and its last that did not run. */
  readonly doubled: string[];
  readonly skipped: string[];
  /** Those that were due when the run before began, on a machine that is too busy: they are dropped unless `catchUp` says otherwise. */
  readonly missed: string[];
  readonly runs: number;
}

describe('a storm of restarts', () => {
  const stage = useStage(chasquimq);

  async function storm(library: string, rules = {}): Promise<Storm> {
    const env = { LIBRARY: library, QUEUE: stage.queueName, SCHEDULERS, RULES: JSON.stringify(rules) };
    const start = (skew: number) => stage.keep(Program.start('scheduler-storm.mjs', { env: { ...env, SKEW: skew } }));
    const all: Program[] = [];
    let running: Program[] = [];
    const begin = performance.now();
    for (let round = 0; round < ROUNDS || performance.now() - begin < LEAST_MS; round++) {
      const next = SKEWS.map(start);
      all.push(...next);
      await Promise.all(next.map((program) => program.said('upserted', 1, LIMIT_MS)));
      // three runs of each scheduler, while both generations work
      const both = [...running, ...next];
      const before = runsOf(both);
      await until('runs', () => runsOf(both) > before + 3 * SCHEDULERS, LIMIT_MS);
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
    const ran = new Map<string, { slot: number; at: number }[]>();
    const told = lines.filter((line) => line.startsWith('ran')).map((line) => line.split(' '));
    for (const [, scheduler, slot, at] of told) {
      ran.set(scheduler, [...(ran.get(scheduler) ?? []), { slot: Number(slot), at: Number(at) }]);
    }
    const storm: Storm = {
      errors: lines.filter((line) => line.startsWith('error')),
      doubled: [],
      skipped: [],
      missed: [],
      runs: told.length,
    };
    for (const [scheduler, of] of ran) {
      of.sort((a, b) => a.slot - b.slot);
      for (const [i, { slot }] of of.entries()) {
        const before = of[i - 1];
        if (before?.slot === slot) storm.doubled.push(`${scheduler} ${slot}`);
        for (let missed = before ? before.slot + EVERY_MS : slot; missed < slot; missed += EVERY_MS) {
          const isLate = before.at > before.slot + EVERY_MS + LATE_MS && missed <= before.at + LATE_MS;
          (isLate ? storm.missed : storm.skipped).push(`${scheduler} ${missed}`);
        }
      }
    }
    return storm;
  }

  const limit = 120_000 + 2 * LEAST_MS;

  it.each([{}, { overlap: 'queue', catchUp: 'all' }])(
    'fails, doubles and skips nothing: %o',
    { timeout: limit },
    async (rules) => {
      const { runs, missed, ...wrong } = await storm('chasquimq', rules);
      expect(wrong).toEqual({ errors: [], doubled: [], skipped: [] });
      if ('catchUp' in rules) expect(missed).toEqual([]);
      expect(runs).toBeGreaterThanOrEqual(3 * SCHEDULERS * ROUNDS);
    },
  );

  it('is one: BullMQ does', { timeout: limit }, async () => {
    const { errors, doubled, skipped } = await storm('bullmq');
    expect(errors.length + doubled.length + skipped.length).toBeGreaterThan(0);
  });
});
