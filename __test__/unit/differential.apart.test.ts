// What the differential test knows of workers in processes of their own: whose runs and waits are whose, and which jobs waited beside an idle one.
import { describe, expect, it } from 'vitest';
import type { JobPlan, Program, Step, WorkerPlan } from '../differential/program.js';
import { Runs } from '../differential/runs.js';
import { shrink } from '../differential/shrink.js';
import { Signals } from '../differential/signals.js';
import { neglectsIn, watchedQueues } from '../differential/watch.js';

const apart: WorkerPlan = { queue: 0, kind: 'apart', concurrency: 1 };
const add = (...jobs: JobPlan[]): Step => ({ do: 'add', queue: 0, how: 'bulk', jobs });
const program = (workers: WorkerPlan[], ...steps: Step[]): Program => ({ name: 'p', queues: 1, workers, steps });

describe('runs', () => {
  it('are in the order of their starts, in whichever order processes tell of them', () => {
    const runs = new Runs();
    runs.write('j1', 'second', 'w1', 20).note('noted');
    runs.write('j1', 'first', 'w0', 10).end(15);
    expect(runs.of('j1')).toEqual(['first', 'second; noted']);
    expect(runs.startOf('j1')).toBe(10);
    expect(runs.by('w1')).toEqual([{ key: 'j1', from: 20, to: Infinity }]);
    expect(runs.by('w0')).toEqual([{ key: 'j1', from: 10, to: 15 }]);
  });

  it('end once', () => {
    const runs = new Runs();
    const [one, other] = [runs.write('j1', '', 'w0'), runs.write('j2', '', 'w0')];
    one.end();
    one.end();
    expect(runs.running).toBe(1);
    other.end();
    expect(runs.running).toBe(0);
  });
});

describe('signals', () => {
  it('are waited for no more by a process that is gone', async () => {
    const signals = new Signals();
    const [gone, left] = [signals.wait('s', 'w0'), signals.wait('s', 'w1')];
    expect([signals.waitingFor('s'), signals.held]).toEqual([2, 2]);
    signals.forget('w0');
    await gone;
    expect([signals.waitingFor('s'), signals.held]).toEqual([1, 1]);
    signals.give('s');
    await left;
    expect([signals.waitingFor('s'), signals.held]).toEqual([0, 0]);
  });
});

describe('a watch', () => {
  it('is over queues that only processes take from, whom nothing holds back', () => {
    const watched = (...of: Parameters<typeof program>) => watchedQueues(program(...of));
    expect(watched([apart, apart], add({ key: 'j1' }))).toEqual([0]);
    expect(watched([], add({ key: 'j1' }))).toEqual([]);
    expect(watched([apart, { ...apart, kind: 'function' }])).toEqual([]);
    expect(watched([{ ...apart, opts: { limiter: { max: 1, duration: 10 } } }])).toEqual([]);
    expect(watched([apart], { do: 'queue', queue: 0, method: 'pause', args: [] })).toEqual([]);
    expect(watched([apart], { do: 'pauseWorker', worker: 0 })).toEqual([]);
    expect(watched([apart], add({ key: 'j1' }), { do: 'job', key: 'j1', method: 'remove', args: [] })).toEqual([]);
    expect(watched([apart], add({ key: 'j1', script: [[{ do: 'rateLimit', ms: 60 }]] }))).toEqual([]);
  });

  const sent = new Map(['slow', 'quick'].map((name) => [name, { sent: 0, added: 1 }]));
  const lives = ['w0', 'w1'].map((name) => ({ name, plan: apart, alive: { from: 0, to: 1_000 }, late: [] }));
  /** Both jobs are run by one worker, one after the other. */
  const oneAfterTheOther = (ms: number) => {
    const runs = new Runs();
    runs.write('slow', '', 'w0', 2).end(2 + ms);
    runs.write('quick', '', 'w0', 3 + ms).end(4 + ms);
    return runs;
  };
  const seen = (ms: number, more: Partial<Parameters<typeof neglectsIn>[0]> = {}) =>
    neglectsIn({ sent, runs: oneAfterTheOther(ms), lives, blind: [], pace: 1, ...more });

  it('names who waited, and beside whom', () => {
    expect(seen(100)).toEqual([
      { text: 'quick, run by w0, waited beside w1 for 102 ms; 50 ms are the most', isLong: false },
    ]);
    expect(seen(400).map(({ isLong }) => isLong)).toEqual([true]);
  });

  it('blames nobody on a slow machine, while that is late, or where nobody is idle', () => {
    expect(seen(100, { pace: 3 })).toEqual([]);
    expect(seen(100, { blind: [{ from: 40, to: 70 }] })).toEqual([]);
    expect(seen(400, { lives: lives.slice(0, 1) })).toEqual([]);
    expect(seen(40)).toEqual([]);
  });
});

it('a difference that needs no process of its own is shown without one', async () => {
  const small = await shrink(
    program([apart, apart], { do: 'start', worker: 0 }, { do: 'start', worker: 1 }, add({ key: 'j1' })),
    async ({ steps }) => ['start', 'add'].every((kind) => steps.some((step) => step.do === kind)),
    performance.now() + 10_000,
  );
  expect(small.workers.map(({ kind }) => kind)).toEqual(['function']);
});
