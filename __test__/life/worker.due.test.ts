// Who knows when a delayed job is due: of idle workers the one that was woken by it. Where that one looks no more, another one hears of it.
import type { Job } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

/** Later than this a due job is too late; idle workers look by themselves after a minute. */
const LATE_MS = 20_000;
const DELAY_MS = 600;

describe('worker.due', () => {
  const stage = useStage(chasquimq);

  it.each([
    [1, undefined],
    [1, 10],
    [3, undefined],
    [3, 10],
  ])(
    'the worker that knows takes jobs for all of its %i slots, with a global concurrency of %s',
    async (concurrency, limit) => {
      const queue = stage.queue();
      if (limit !== undefined) await queue.setGlobalConcurrency(limit);
      const log = stage.globalLog();
      const gate = stage.gate();
      for (let i = 0; i < 2; i += 1) {
        const run = ({ name }: Job) => (name === 'held' ? gate.opened : undefined);
        const worker = stage.worker(async (job) => run(job), { concurrency, drainDelay: 60 });
        await new EventLog(worker, ['drained']).get('drained');
      }
      const job = await queue.add('later', {}, { delay: DELAY_MS });
      // one of them knows by then
      await sleep(100);
      for (let i = 0; i < concurrency; i += 1) {
        await queue.add('held', {});
        await log.get('active', i + 1);
      }
      await log.get('completed');
      expect(Date.now()).toBeLessThan(job.timestamp + DELAY_MS + LATE_MS);
    },
  );

  it.each(['close', 'pause'] as const)('the worker that knows is told to %s', async (end) => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const workers = [];
    for (let i = 0; i < 3; i += 1) {
      const worker = stage.worker(async () => undefined, { drainDelay: 60 });
      await new EventLog(worker, ['drained']).get('drained');
      workers.push(worker);
    }
    const job = await queue.add('later', {}, { delay: DELAY_MS });
    // the server wakes those who wait in the order in which they came; what was woken waits again, behind the others
    await sleep(100);
    await workers[0][end]();
    await sleep(100);
    await workers[1][end]();
    await log.get('completed');
    expect(Date.now()).toBeLessThan(job.timestamp + DELAY_MS + LATE_MS);
  });

  it('a call of getNextJob that knows gives up', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const manual = stage.worker(null, { drainDelay: 0.4 });
    await manual.getNextJob('t');
    // waits first, so that the server wakes it first
    const waiting = manual.getNextJob('t');
    await sleep(100);
    const idle = stage.worker(async () => undefined, { drainDelay: 60 });
    await new EventLog(idle, ['drained']).get('drained');
    await sleep(50);
    const job = await queue.add('later', {}, { delay: DELAY_MS });
    expect(await waiting).toBeUndefined();
    await log.get('completed');
    expect(Date.now()).toBeLessThan(job.timestamp + DELAY_MS + LATE_MS);
  });
});
