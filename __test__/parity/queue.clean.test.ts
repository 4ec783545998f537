// Pins Queue#clean for every state: which jobs go, in which order they are told, and the events.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue } from 'bullmq';
import { towerOf } from '../support/flows.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const OLD = 100_000;
const GRACE = 50_000;

describe.each(libraries)('$name: queue.clean', ({ lib }) => {
  const stage = useStage(lib);

  const addMany = (queue: Queue, n: number, opts: (i: number) => JobsOptions = () => ({})) =>
    queue.addBulk(Array.from({ length: n }, (_, i) => ({ name: `n${i + 1}`, data: { i }, opts: opts(i) })));
  /** Every second job, the second first, is old. */
  const mixed = (i: number) => ({ timestamp: Date.now() - (i % 2 ? OLD : 0) });
  const ids = async (queue: Queue, state: 'waiting' | 'delayed' | 'completed' | 'failed', asc = true) =>
    (await queue.getJobs(state, 0, -1, asc)).map((job) => job.id);

  async function end(queue: Queue, n: number, fails: boolean): Promise<void> {
    const worker = stage.worker(async () => {
      if (fails) throw new Error('no');
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await addMany(queue, n);
    await log.get(fails ? 'failed' : 'completed', n);
    await worker.close();
  }

  describe('wait', () => {
    it('removes all, the youngest told first', async () => {
      const queue = stage.queue();
      await addMany(queue, 6);
      expect(await queue.clean(0, 0, 'wait')).toEqual(['6', '5', '4', '3', '2', '1']);
      expect(await queue.getWaitingCount()).toBe(0);
      expect(await queue.getJob('3')).toBeUndefined();
    });

    it('removes only what is older than the grace', async () => {
      const queue = stage.queue();
      await addMany(queue, 6, mixed);
      expect(await queue.clean(GRACE, 0, 'wait')).toEqual(['6', '4', '2']);
      expect(await ids(queue, 'waiting')).toEqual(['1', '3', '5']);
      expect(await queue.getWaitingCount()).toBe(3);
    });

    it('looks at as many of the oldest as the limit says', async () => {
      const queue = stage.queue();
      await addMany(queue, 6, mixed);
      expect(await queue.clean(GRACE, 2, 'wait')).toEqual(['2']);
      expect(await queue.clean(GRACE, 1, 'wait')).toEqual([]);
      expect(await ids(queue, 'waiting')).toEqual(['1', '3', '4', '5', '6']);
    });

    it.each(['wait', 'waiting'] as const)(
      '%s with a limit in the middle of a bulk leaves the rest in order',
      async (type) => {
        const queue = stage.queue();
        await addMany(queue, 100);
        const removed = await queue.clean(0, 30, type);
        expect(removed).toEqual(Array.from({ length: 30 }, (_, i) => String(30 - i)));
        expect(await queue.getWaitingCount()).toBe(70);
        expect((await ids(queue, 'waiting')).slice(0, 3)).toEqual(['31', '32', '33']);
        const log = new EventLog(
          stage.worker(async (job) => job.id),
          ['completed'],
        );
        await log.get('completed', 70);
        expect(log.all('completed').map((args) => args[1])).toEqual(
          Array.from({ length: 70 }, (_, i) => String(31 + i)),
        );
      },
    );

    it('goes through frames, records, and frames with records and gaps', async () => {
      const queue = stage.queue();
      await addMany(queue, 5);
      await queue.add('mine', {}, { jobId: 'mine' });
      await addMany(queue, 5);
      await queue.addJobLog('3', 'row');
      await queue.remove('4');
      await (await fetchJob(queue, '9')).updateProgress(10);
      await queue.remove('10');
      // its own number is taken by the job with an id of its own
      const expected = ['11', '9', '8', '7', 'mine', '5', '3', '2', '1'];
      expect(await queue.clean(0, 0, 'wait')).toEqual(expected);
      expect(await queue.getWaitingCount()).toBe(0);
      expect(await queue.getJobLogs('3')).toEqual({ logs: [], count: 0 });
    });

    it('keeps touched jobs that are too young', async () => {
      const queue = stage.queue();
      await addMany(queue, 6, mixed);
      for (const id of ['1', '2', '3']) await queue.addJobLog(id, 'row');
      await queue.add('mine', {}, { jobId: 'young' });
      await queue.add('mine', {}, { jobId: 'old', timestamp: Date.now() - OLD });
      expect(await queue.clean(GRACE, 0, 'wait')).toEqual(['old', '6', '4', '2']);
      expect(await ids(queue, 'waiting')).toEqual(['1', '3', '5', 'young']);
    });

    it('takes the last end or start as the age of a job that ran before', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => {
        throw new Error('no');
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {}, { timestamp: Date.now() - OLD });
      await log.get('failed');
      await worker.close();
      await queue.retryJobs();
      expect(await queue.clean(GRACE, 0, 'wait')).toEqual(['1']);
    });

    it('leaves the other states alone', async () => {
      const queue = stage.queue();
      await end(queue, 2, false);
      await end(queue, 2, true);
      await addMany(queue, 2, () => ({ delay: 60_000 }));
      expect(await queue.clean(0, 0, 'wait')).toEqual([]);
      expect(await queue.getJobCounts('completed', 'failed', 'delayed')).toEqual({
        completed: 2,
        failed: 2,
        delayed: 2,
      });
    });

    it('works on a paused queue; the state paused holds no jobs', async () => {
      const queue = stage.queue();
      await addMany(queue, 3);
      await queue.pause();
      expect(await queue.clean(0, 0, 'paused')).toEqual([]);
      expect(await queue.clean(0, 0, 'wait')).toEqual(['3', '2', '1']);
      expect(await queue.isPaused()).toBe(true);
    });
  });

  describe('delayed', () => {
    it('removes all, the next due told first', async () => {
      const queue = stage.queue();
      await addMany(queue, 4, (i) => ({ delay: 60_000 - i * 1000 }));
      expect(await queue.clean(0, 0, 'delayed')).toEqual(['4', '3', '2', '1']);
      expect(await queue.getDelayedCount()).toBe(0);
    });

    it('goes by the age of a job, not by when it is due', async () => {
      const queue = stage.queue();
      await addMany(queue, 6, (i) => ({ ...mixed(i), delay: 600_000 }));
      expect(await queue.clean(GRACE, 0, 'delayed')).toEqual(['2', '4', '6']);
      expect(await ids(queue, 'delayed')).toEqual(['1', '3', '5']);
    });

    it('looks at as many of those due next as the limit says', async () => {
      const queue = stage.queue();
      await addMany(queue, 6, (i) => ({
        timestamp: Date.now() - (i % 2 ? 0 : OLD),
        delay: 600_000 + (i % 2 ? 0 : OLD) + i * 1000,
      }));
      expect(await queue.clean(GRACE, 2, 'delayed')).toEqual(['1']);
      expect(await queue.getDelayedCount()).toBe(5);
    });
  });

  describe.each([
    ['completed', false],
    ['failed', true],
  ] as const)('%s', (state, fails) => {
    it('removes all, in the order in which they ended', async () => {
      const queue = stage.queue();
      await end(queue, 6, fails);
      expect(await queue.clean(0, 0, state)).toEqual(['1', '2', '3', '4', '5', '6']);
      expect(await queue.getJobCountByTypes(state)).toBe(0);
      expect(await queue.getJob('1')).toBeUndefined();
    });

    it('removes as many as the limit says, those that ended first', async () => {
      const queue = stage.queue();
      await end(queue, 100, fails);
      const ended = await ids(queue, state);
      expect(await queue.clean(0, 30, state)).toEqual(ended.slice(0, 30));
      expect(await ids(queue, state)).toEqual(ended.slice(30));
      expect(await queue.getJobCountByTypes(state)).toBe(70);
      expect(await queue.getJob(ended[29] ?? '')).toBeUndefined();
      expect((await fetchJob(queue, ended[30])).finishedOn).toBeGreaterThan(0);
    });

    it('leaves those that ended within the grace', async () => {
      const queue = stage.queue();
      await end(queue, 3, fails);
      expect(await queue.clean(GRACE, 0, state)).toEqual([]);
      expect(await queue.getJobCountByTypes(state)).toBe(3);
    });

    it('removes jobs that were touched after they ended', async () => {
      const queue = stage.queue();
      await end(queue, 5, fails);
      await queue.addJobLog('3', 'row');
      await queue.remove('2');
      expect((await queue.clean(0, 0, state)).sort()).toEqual(['1', '3', '4', '5']);
      expect(await queue.getJobLogs('3')).toEqual({ logs: [], count: 0 });
    });
  });

  describe('prioritized', () => {
    it('goes by when a job was added, also of one that was tried since', async () => {
      const queue = stage.queue();
      await addMany(queue, 2, (i) => ({ priority: 5, attempts: 2, timestamp: Date.now() - (i === 0 ? OLD : 0) }));
      const worker = stage.worker(null);
      const job = await worker.getNextJob('t');
      await job?.moveToFailed(new Error('no'), 't', false);
      expect(await queue.getPrioritizedCount()).toBe(2);
      expect(await queue.clean(GRACE, 0, 'prioritized')).toEqual(['1']);
    });
  });

  describe('waiting-children', () => {
    // what BullMQ's types leave out
    const parents = 'waiting-children' as 'wait';
    const addParent = (id: string, opts: JobsOptions = {}) =>
      stage.flowProducer().add({
        name: id,
        queueName: stage.name(),
        opts: { jobId: id, ...opts },
        children: [{ name: 'child', queueName: stage.name(), opts: { jobId: `${id}-child` } }],
      });
    const states = (queue: Queue, ids: string[]) => Promise.all(ids.map((id) => queue.getJobState(id)));

    it('removes parents, the oldest first, and leaves their children', async () => {
      const queue = stage.queue();
      const log = new EventLog(queue, ['cleaned']);
      const events = new EventLog(stage.events(), ['cleaned', 'removed', 'waiting', 'added']);
      await addParent('b', { timestamp: Date.now() - OLD });
      await addParent('young');
      await addParent('a', { timestamp: Date.now() - OLD + 1 });
      expect((await queue.getJobs('waiting-children', 0, -1, true)).map(({ id }) => id)).toEqual(['b', 'a', 'young']);
      expect(await queue.clean(GRACE, 1, parents)).toEqual(['b']);
      expect(await queue.clean(GRACE, 0, parents)).toEqual(['a']);
      expect(await states(queue, ['a', 'b', 'young'])).toEqual(['unknown', 'unknown', 'waiting-children']);
      expect(await states(queue, ['a-child', 'b-child', 'young-child'])).toEqual(['waiting', 'waiting', 'waiting']);
      expect(log.entries).toEqual([
        { event: 'cleaned', args: [['b'], 'waiting-children'] },
        { event: 'cleaned', args: [['a'], 'waiting-children'] },
      ]);
      await events.get('cleaned', 2);
      expect(events.names.slice(-2)).toEqual(['cleaned', 'cleaned']);
      expect(events.names).not.toContain('removed');
    });

    it('removes a parent in the same queue with the last that it waits for', async () => {
      const queue = stage.queue();
      await stage.flowProducer().add(towerOf(stage, { timestamp: Date.now() - OLD }));
      expect(await queue.clean(GRACE, 0, parents)).toEqual(['mid']);
      expect(await states(queue, ['root', 'mid', 'leaf'])).toEqual(['unknown', 'unknown', 'waiting']);
    });

    it('leaves children that end as any other', async () => {
      const queue = stage.queue();
      await addParent('p');
      expect(await queue.clean(0, 0, parents)).toEqual(['p']);
      const log = new EventLog(
        stage.worker(async (job) => job.id),
        ['completed'],
      );
      const [child] = await log.get<[Job]>('completed');
      expect(child.parentKey).toBe(stage.childKey('p'));
    });
  });

  it('without a state cleans completed jobs', async () => {
    const queue = stage.queue();
    await end(queue, 2, false);
    await addMany(queue, 1);
    expect(await queue.clean(0, 0)).toEqual(['1', '2']);
    expect(await queue.getWaitingCount()).toBe(1);
  });

  it('leaves active jobs that a worker holds', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active', 'completed'],
    );
    await addMany(queue, 2);
    await log.get('active');
    expect(await queue.clean(0, 0, 'active')).toEqual([]);
    expect(await queue.getActiveCount()).toBe(1);
    gate.open();
    await log.get('completed', 2);
  });

  it('removes nothing with a limit below 0, and says nothing', async () => {
    const queue = stage.queue();
    const log = new EventLog(queue, ['cleaned']);
    await addMany(queue, 2);
    expect(await queue.clean(0, -1, 'wait')).toEqual([]);
    expect(log.names).toEqual([]);
  });

  it.each([Infinity, Number.MAX_SAFE_INTEGER])('takes a limit of %d for none', async (limit) => {
    const queue = stage.queue();
    await addMany(queue, 3);
    expect(await queue.clean(0, limit, 'wait')).toEqual(['3', '2', '1']);
  });

  it('takes a negative grace for the future', async () => {
    const queue = stage.queue();
    await addMany(queue, 2, () => ({ timestamp: Date.now() + 5_000 }));
    expect(await queue.clean(0, 0, 'wait')).toEqual([]);
    expect(await queue.clean(-60_000, 0, 'wait')).toEqual(['2', '1']);
  });

  it('of a state that there is not removes nothing', async () => {
    const queue = stage.queue();
    await addMany(queue, 2);
    expect(await queue.clean(0, 0, 'jobs' as 'wait')).toEqual([]);
    expect(await queue.getWaitingCount()).toBe(2);
  });

  describe('events', () => {
    it('tells the ids on the queue, and the number to everybody', async () => {
      const queue = stage.queue();
      const log = new EventLog(queue, ['cleaned', 'removed']);
      const events = new EventLog(stage.events(), ['cleaned', 'removed', 'drained']);
      await addMany(queue, 3);
      await queue.clean(0, 2, 'waiting');
      await queue.clean(0, 0, 'delayed');
      await queue.clean(0, 0, 'completed');
      expect(log.entries).toEqual([
        { event: 'cleaned', args: [['2', '1'], 'wait'] },
        { event: 'cleaned', args: [[], 'delayed'] },
        { event: 'cleaned', args: [[], 'completed'] },
      ]);
      await events.get('cleaned', 3);
      expect(events.entries.map(({ event, args }) => [event, args[0]])).toEqual([
        ['cleaned', { count: '2' }],
        ['cleaned', { count: '0' }],
        ['cleaned', { count: '0' }],
      ]);
    });

    it.each([
      [10_001, 0, [10_000, 1]],
      [10_000, 0, [10_000, 0]],
      [10_000, 10_000, [10_000]],
    ])('of %d jobs with the limit %d come by ten thousand', async (n, limit, expected) => {
      const queue = stage.queue();
      const log = new EventLog(queue, ['cleaned']);
      const events = new EventLog(stage.events(), ['cleaned']);
      await addMany(queue, n);
      const removed = await queue.clean(0, limit, 'wait');
      expect(removed).toHaveLength(n);
      expect(removed.slice(0, 2)).toEqual(['10000', '9999']);
      expect(log.all<[string[]]>('cleaned').map(([some]) => some.length)).toEqual(expected);
      await events.get('cleaned', expected.length);
      expect(events.all<[{ count: string }]>('cleaned').map(([{ count }]) => Number(count))).toEqual(expected);
      expect(await queue.getWaitingCount()).toBe(0);
    });
  });
});
