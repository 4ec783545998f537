// Pins Queue#getMetrics and the worker option `metrics`.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Queue, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const NOTHING = { meta: { count: 0, prevTS: 0, prevCount: 0 }, data: [], count: 0 };
const START = 1_700_000_000_000;
const MINUTE = 60_000;

describe.each(libraries)('$name: queue.getMetrics', ({ lib }) => {
  const stage = useStage(lib);
  afterEach(() => vi.restoreAllMocks());

  /** Moves the clock on, and lets `n` jobs end. */
  async function pass(queue: Queue, worker: Worker, ms: number, n: number, data = {}): Promise<void> {
    const now = Date.now() + ms;
    vi.spyOn(Date, 'now').mockImplementation(() => now);
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(Array.from({ length: n }, () => ({ name: 'job', data })));
    await log.when(`${n} jobs`, () => log.entries.length === n);
  }

  function at(ms: number): void {
    vi.spyOn(Date, 'now').mockImplementation(() => ms);
  }

  it('is nothing before a job has ended, and for what is no finished state', async () => {
    const queue = stage.queue();
    expect(await queue.getMetrics('completed')).toEqual(NOTHING);
    expect(await queue.getMetrics('failed')).toEqual(NOTHING);
    expect(await queue.getMetrics('waiting' as 'failed')).toEqual(NOTHING);
  });

  it('is nothing when no worker counts', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => {}),
      ['completed'],
    );
    await queue.add('job', {});
    await log.get('completed');
    expect(await queue.getMetrics('completed')).toEqual(NOTHING);
  });

  describe.each([
    ['completed', false],
    ['failed', true],
  ] as const)('of %s jobs', (state, fails) => {
    const processor = async () => {
      if (fails) throw new Error('no');
    };

    it('counts by the minute, the newest first, and fills in minutes without jobs', async () => {
      at(START);
      const queue = stage.queue();
      const worker = stage.worker(processor, { metrics: { maxDataPoints: 5 } });
      worker.setMaxListeners(0);
      await worker.waitUntilReady();
      const seen: unknown[] = [];
      for (const [ms, n] of [
        [0, 1],
        [0, 1],
        [59_000, 1],
        [1_000, 1],
        [0, 2],
        [MINUTE, 1],
        [MINUTE, 3],
        [3 * MINUTE, 1],
        [30_000, 4],
        [MINUTE, 1],
        [10 * MINUTE, 2],
        [20_000, 1],
      ] as const) {
        await pass(queue, worker, ms, n);
        const { meta, data, count } = await queue.getMetrics(state);
        seen.push([meta.count, meta.prevTS - START, meta.prevCount, data, count]);
      }
      expect(seen).toEqual([
        [1, 0, 0, [], 0],
        [2, 0, 0, [], 0],
        [3, 59_000, 2, [2], 1],
        [4, 59_000, 2, [2], 1],
        [6, 59_000, 2, [2], 1],
        [7, 120_000, 6, [4, 2], 2],
        [10, 180_000, 7, [1, 4, 2], 3],
        [11, 360_000, 10, [0, 0, 3, 1, 4], 5],
        [15, 360_000, 10, [0, 0, 3, 1, 4], 5],
        [16, 450_000, 15, [5, 0, 0, 3, 1], 5],
        [18, 1_050_000, 16, [0, 0, 0, 0, 1], 5],
        [19, 1_070_000, 18, [2, 0, 0, 0, 0], 5],
      ]);
      expect((await queue.getMetrics(state, 0, 0)).data).toEqual([2]);
      expect((await queue.getMetrics(state, 1, 2)).data).toEqual([0, 0]);
      expect((await queue.getMetrics(state, -2, -1)).data).toEqual([0, 0]);
      expect((await queue.getMetrics(state, 5, 9)).data).toEqual([]);
      expect(await queue.getMetrics(fails ? 'completed' : 'failed')).toEqual(NOTHING);
    });

    it('counts jobs that are removed when they end', async () => {
      at(START);
      const queue = stage.queue();
      const worker = stage.worker(processor, {
        metrics: { maxDataPoints: 10 },
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      });
      await worker.waitUntilReady();
      await pass(queue, worker, 0, 70);
      await pass(queue, worker, MINUTE, 1);
      expect(await queue.getJobCountByTypes(state)).toBe(0);
      expect(await queue.getMetrics(state)).toMatchObject({ meta: { count: 71, prevCount: 70 }, data: [70], count: 1 });
    });
  });

  it('does not count a try that is repeated', async () => {
    const queue = stage.queue();
    const worker = stage.worker(
      async (job) => {
        if (job.attemptsMade === 0) throw new Error('once');
      },
      { metrics: { maxDataPoints: 5 } },
    );
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {}, { attempts: 2 });
    await log.get('completed');
    expect((await queue.getMetrics('failed')).meta.count).toBe(0);
    expect((await queue.getMetrics('completed')).meta.count).toBe(1);
  });

  it('goes with the queue when it is obliterated', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {}, { metrics: { maxDataPoints: 5 } });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    await log.get('completed');
    await queue.obliterate({ force: true });
    expect(await queue.getMetrics('completed')).toEqual(NOTHING);
  });

  it('with 0 data points counts nothing', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {}, { metrics: { maxDataPoints: 0 } });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    await log.get('completed');
    expect(await queue.getMetrics('completed')).toEqual(NOTHING);
  });
});
