// The line of a paused queue, which BullMQ 5 calls `paused`.
import { describe, expect } from 'vitest';
import { idiom, libraries, useStage5 } from './stage.js';
import { until } from '../support/waiting.js';

const NONE = {
  active: 0,
  completed: 0,
  delayed: 0,
  failed: 0,
  paused: 0,
  prioritized: 0,
  waiting: 0,
  'waiting-children': 0,
};

describe.each(libraries)('$name: a paused queue', ({ name, lib }) => {
  const stage = useStage5(lib);

  /** Two jobs in the waiting list, the second one added while the queue is paused. */
  async function pausedQueue() {
    const queue = stage.queue();
    const first = await queue.add('first', {});
    await queue.pause();
    const second = await queue.add('second', {});
    return { queue, first, second };
  }

  const namesOf = (jobs: { name: string }[]) => jobs.map((job) => job.name);

  idiom('paused-counts', async () => {
    const { queue } = await pausedQueue();
    const counts = await queue.getJobCounts();
    expect(counts).toEqual({ ...NONE, paused: 2 });
    expect(Object.keys(counts).sort()).toEqual(Object.keys(NONE).sort());
    await queue.resume();
    expect(await queue.getJobCounts()).toEqual({ ...NONE, waiting: 2 });
  });

  idiom('paused-counts-named', async () => {
    const { queue } = await pausedQueue();
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0, paused: 2 });
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 0, failed: 0, paused: 2 });
    await queue.resume();
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 2, paused: 0 });
  });

  idiom('paused-counts-wait', async () => {
    const { queue } = await pausedQueue();
    expect(await queue.getJobCounts('wait')).toEqual({ wait: 0 });
    expect(await queue.getJobCounts('wait', 'paused')).toEqual({ wait: 0, paused: 2 });
    expect(await queue.getJobCounts('paused')).toEqual({ paused: 2 });
    expect(await queue.getJobCounts('failed')).toEqual({ failed: 0 });
    await queue.resume();
    expect(await queue.getJobCounts('wait', 'paused')).toEqual({ wait: 2, paused: 0 });
  });

  idiom('paused-count', async () => {
    const { queue } = await pausedQueue();
    const all = async () => [
      await queue.count(),
      await queue.getWaitingCount(),
      await queue.getJobCountByTypes('waiting'),
      await queue.getJobCountByTypes('paused'),
    ];
    expect(await all()).toEqual([2, 2, 2, 2]);
    await queue.resume();
    expect(await all()).toEqual([2, 2, 2, 0]);
  });

  idiom('paused-jobs', async () => {
    const { queue } = await pausedQueue();
    expect(namesOf(await queue.getJobs(['paused'], 0, -1, true))).toEqual(['first', 'second']);
    expect(namesOf(await queue.getJobs('paused'))).toEqual(['second', 'first']);
    expect(namesOf(await queue.getJobs(['paused'], 1, 1, true))).toEqual(['second']);
    await queue.resume();
    expect(await queue.getJobs(['paused'])).toEqual([]);
  });

  idiom('paused-waiting', async () => {
    const { queue } = await pausedQueue();
    expect(namesOf(await queue.getWaiting())).toEqual(['first', 'second']);
    expect(namesOf(await queue.getWaiting(1, 1))).toEqual(['second']);
    expect(namesOf(await queue.getJobs(['waiting'], 0, -1, true))).toEqual(['first', 'second']);
    expect(namesOf(await queue.getJobs(undefined, 0, -1, true))).toEqual(['first', 'second']);
    await queue.resume();
    expect(namesOf(await queue.getWaiting())).toEqual(['first', 'second']);
  });

  idiom('paused-wait-jobs', async () => {
    const { queue } = await pausedQueue();
    expect(await queue.getJobs(['wait'])).toEqual([]);
    await queue.resume();
    expect(namesOf(await queue.getJobs(['wait'], 0, -1, true))).toEqual(['first', 'second']);
  });

  idiom('paused-ranges', async () => {
    const { queue, first, second } = await pausedQueue();
    expect(await queue.getRanges(['paused'], 0, -1, true)).toEqual([first.id, second.id]);
    expect(await queue.getRanges(['wait'], 0, -1, true)).toEqual([]);
    await queue.resume();
    expect(await queue.getRanges(['wait'], 0, -1, true)).toEqual([first.id, second.id]);
    expect(await queue.getRanges(['paused'], 0, -1, true)).toEqual([]);
  });

  idiom('paused-state', async () => {
    const { queue, first, second } = await pausedQueue();
    for (const job of [first, second]) {
      expect(await job.getState()).toBe('waiting');
      expect(await queue.getJobState(job.id!)).toBe('waiting');
    }
    expect(await queue.getJobState('nobody')).toBe('unknown');
    await queue.resume();
    expect(await first.getState()).toBe('waiting');
    expect(await queue.getJobState(second.id!)).toBe('waiting');
  });

  idiom('paused-is-waiting', async () => {
    const { queue, first, second } = await pausedQueue();
    expect([await first.isWaiting(), await second.isWaiting()]).toEqual([true, true]);
    expect([await first.isActive(), await first.isDelayed()]).toEqual([false, false]);
    await queue.resume();
    expect([await first.isWaiting(), await second.isWaiting()]).toEqual([true, true]);
  });

  idiom('paused-others', async () => {
    const queue = stage.queue();
    await queue.pause();
    const late = await queue.add('late', {}, { delay: 100_000 });
    const urgent = await queue.add('urgent', {}, { priority: 3 });
    expect([await late.getState(), await urgent.getState()]).toEqual(['delayed', 'prioritized']);
    expect(await queue.getJobCounts()).toEqual({ ...NONE, delayed: 1, prioritized: 1 });
  });

  idiom('paused-clean', async () => {
    const { queue, first, second } = await pausedQueue();
    const told: unknown[] = [];
    queue.on('cleaned', (ids, type) => told.push([ids.toSorted(), type]));
    const ids = [first.id, second.id];
    expect((await queue.clean(-1, 0, 'paused')).toSorted()).toEqual(ids);
    expect(told).toEqual([[ids, name === 'bullmq5' ? 'paused' : 'wait']]);
    expect(await queue.count()).toBe(0);
  });

  idiom('paused-clean-wait', async () => {
    const { queue, first, second } = await pausedQueue();
    expect(await queue.clean(-1, 0, 'wait')).toEqual([]);
    expect(await queue.count()).toBe(2);
    await queue.resume();
    expect(await queue.clean(-1, 0, 'paused')).toEqual([]);
    expect((await queue.clean(-1, 0, 'wait')).toSorted()).toEqual([first.id, second.id]);
  });

  idiom('paused-drain', async () => {
    const { queue } = await pausedQueue();
    await queue.drain();
    expect(await queue.getJobCounts()).toEqual(NONE);
    expect(await queue.isPaused()).toBe(true);
  });

  idiom('paused-resume', async () => {
    const { queue } = await pausedQueue();
    const ran: string[] = [];
    stage.worker(async (job) => void ran.push(job.name));
    await queue.resume();
    await until('both to run', () => ran.length === 2);
    expect(ran).toEqual(['first', 'second']);
  });
});
