// Pins Queue#drain: what goes, what stays, and that nobody is told.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const NONE = { active: 0, completed: 0, delayed: 0, failed: 0, prioritized: 0, waiting: 0, 'waiting-children': 0 };

describe.each(libraries)('$name: queue.drain', ({ lib }) => {
  const stage = useStage(lib);
  const plain = (n: number, opts = {}) => Array.from({ length: n }, (_, i) => ({ name: 'job', data: { i }, opts }));

  it('of an empty queue does nothing', async () => {
    const queue = stage.queue();
    expect(await queue.drain()).toBeUndefined();
    expect(await queue.getJobCounts()).toEqual(NONE);
  });

  it('removes what waits, framed or alone, and leaves what is delayed', async () => {
    const queue = stage.queue();
    await queue.addBulk(plain(200));
    await queue.add('mine', {}, { jobId: 'mine' });
    await queue.addBulk(plain(3));
    await queue.add('later', {}, { delay: 60_000 });
    await queue.drain();
    expect(await queue.getJobCounts()).toEqual({ ...NONE, delayed: 1 });
    expect(await queue.getJob('1')).toBeUndefined();
    expect(await queue.getJob('mine')).toBeUndefined();
    expect(await queue.getJob('205')).toBeDefined();
    await queue.drain(false);
    expect(await queue.getDelayedCount()).toBe(1);
  });

  it('removes what is delayed as well when told to', async () => {
    const queue = stage.queue();
    await queue.addBulk([...plain(3), ...plain(3, { delay: 60_000 })]);
    await queue.drain(true);
    expect(await queue.getJobCounts()).toEqual(NONE);
  });

  it('leaves jobs that are active or ended', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(async (job) => {
      if (job.name === 'fails') throw new Error('no');
      if (job.name === 'holds') await gate.opened;
    });
    const log = new EventLog(worker, ['active', 'completed', 'failed']);
    await queue.addBulk(['passes', 'fails', 'holds', 'waits', 'waits'].map((name) => ({ name, data: {} })));
    await log.get('active', 3);
    await queue.drain();
    expect(await queue.getJobCounts()).toEqual({ ...NONE, completed: 1, failed: 1, active: 1 });
    gate.open();
    await log.get('completed', 2);
    expect(log.all('active')).toHaveLength(3);
  });

  it('removes a waiting job that was logged to, with its log', async () => {
    const queue = stage.queue();
    await queue.addBulk(plain(3));
    await queue.addJobLog('2', 'row');
    await queue.remove('1');
    await queue.drain();
    expect(await queue.getJobCounts()).toEqual(NONE);
    expect(await queue.getJobLogs('2')).toEqual({ logs: [], count: 0 });
  });

  it('drains a paused queue, which stays paused', async () => {
    const queue = stage.queue();
    await queue.pause();
    await queue.addBulk(plain(5));
    await queue.drain();
    expect(await queue.getJobCounts()).toEqual(NONE);
    expect(await queue.isPaused()).toBe(true);
  });

  it('goes on with the next id, and workers take what comes then', async () => {
    const queue = stage.queue();
    await queue.addBulk(plain(5));
    await queue.drain();
    const log = new EventLog(
      stage.worker(async (job) => job.id),
      ['completed'],
    );
    expect((await queue.add('job', {})).id).toBe('6');
    expect((await log.get('completed'))[1]).toBe('6');
  });

  it('frees the ids of the jobs it removed', async () => {
    const queue = stage.queue();
    await queue.add('old', {}, { jobId: 'mine' });
    await queue.drain();
    await queue.add('new', {}, { jobId: 'mine' });
    expect((await queue.getJob('mine'))?.name).toBe('new');
    expect(await queue.getWaitingCount()).toBe(1);
  });

  it('tells nobody', async () => {
    const queue = stage.queue();
    const log = new EventLog(queue, ['cleaned', 'removed']);
    const events = new EventLog(stage.events(), ['cleaned', 'removed', 'drained', 'paused']);
    await queue.addBulk(plain(5));
    await queue.drain(true);
    await queue.pause();
    await events.get('paused');
    expect(events.names).toEqual(['paused']);
    expect(log.names).toEqual([]);
  });
});
