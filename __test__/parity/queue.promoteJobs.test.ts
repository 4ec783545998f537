// Pins Queue#promoteJobs: order, events, and what becomes of a delay.
import { describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: queue.promoteJobs', ({ lib }) => {
  const stage = useStage(lib);
  const addDelayed = (queue: Queue, n: number) =>
    queue.addBulk(
      Array.from({ length: n }, (_, i) => ({ name: `n${i}`, data: { i }, opts: { delay: 60_000 - i * 100 } })),
    );

  it('of an empty queue does nothing', async () => {
    expect(await stage.queue().promoteJobs()).toBeUndefined();
  });

  it('makes all delayed jobs wait, those due first first, behind those that wait', async () => {
    const queue = stage.queue();
    await addDelayed(queue, 5);
    await queue.add('first', {});
    await queue.promoteJobs();
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual(['6', '5', '4', '3', '2', '1']);
    expect(await queue.getDelayedCount()).toBe(0);
  });

  it('promotes all of them whatever the count, which is that of a step', async () => {
    const queue = stage.queue();
    await addDelayed(queue, 20);
    await queue.promoteJobs({ count: 3 });
    expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 0, waiting: 20 });
  });

  it('keeps the options', async () => {
    const queue = stage.queue();
    await queue.add('job', { a: 1 }, { delay: 60_000, attempts: 3, jobId: 'mine' });
    await queue.promoteJobs();
    const [job] = await queue.getWaiting();
    expect(job?.opts).toMatchObject({ delay: 60_000, attempts: 3 });
    expect(await job?.getState()).toBe('waiting');
  });

  it('lets workers run them', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => job.name),
      ['completed'],
    );
    await addDelayed(queue, 3);
    await queue.promoteJobs();
    await log.get('completed', 3);
    expect(log.all('completed').map((args) => args[1])).toEqual(['n2', 'n1', 'n0']);
  });

  it('leaves a paused queue paused', async () => {
    const queue = stage.queue();
    await queue.pause();
    await addDelayed(queue, 2);
    await queue.promoteJobs();
    expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 0, waiting: 2 });
    expect(await queue.isPaused()).toBe(true);
  });

  it('tells each job as waiting, and no more', async () => {
    const queue = stage.queue();
    await addDelayed(queue, 3);
    const log = new EventLog(stage.events(), ['waiting', 'delayed', 'removed', 'paused']);
    await queue.promoteJobs();
    await queue.pause();
    await log.get('paused');
    expect(log.entries.slice(3).map(({ event, args }) => [event, args[0]])).toEqual([
      ['waiting', { jobId: '3', prev: 'delayed' }],
      ['waiting', { jobId: '2', prev: 'delayed' }],
      ['waiting', { jobId: '1', prev: 'delayed' }],
      ['paused', {}],
    ]);
  });
});
