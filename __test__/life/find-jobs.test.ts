// Jobs found by a filter in every state, and removed, retried and promoted by the same. BullMQ has none of it.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import type { JobFilter, JobsProgress, Queue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe('jobs that a filter picks', () => {
  const stage = useStage(chasquimq);

  /** Ids of all pages. */
  async function found(queue: Queue, filter?: JobFilter, limit = 100): Promise<(string | undefined)[]> {
    const ids: (string | undefined)[] = [];
    let cursor: string | undefined;
    do {
      const page = await queue.findJobs(filter, { limit, cursor });
      expect(page.jobs.length).toBeLessThanOrEqual(limit);
      ids.push(...page.jobs.map(({ id }) => id));
      ({ cursor } = page);
    } while (cursor !== undefined);
    return ids;
  }

  /**
   * A queue with jobs in every state: `done` completed, `bad` failed, `run` is active to the end of the test, the others wait: 5 and 6 in a frame, `own`
   * with a record, `a1`, `a2` and `b1` in groups, `first` and `last` with priorities, `soon` and `late` delayed, and a parent.
   */
  async function everyState(opts: { prefix?: string } = {}): Promise<Queue> {
    const queue = stage.queue(opts) as unknown as Queue;
    const gate = stage.gate();
    const worker = stage.worker(
      async (job: Job) => {
        if (job.name === 'bad') throw new Error('no connection');
        if (job.name === 'run') await gate.opened;
      },
      { concurrency: 1, ...opts },
    );
    const log = new EventLog(worker, ['completed', 'failed', 'active']);
    await queue.addBulk([
      { name: 'done', data: { to: 'Ana' } },
      { name: 'bad', data: { to: 'Bo' } },
      { name: 'run', data: { to: 'Cy' } },
    ]);
    await log.get('active', 3);
    await queue.addBulk([
      { name: 'mail', data: { to: 'Ana', tags: ['a', 'b'] } },
      { name: 'mail', data: { to: 'Bo' } },
    ]);
    await queue.add('mail', { to: 'Ana' }, { jobId: 'own' });
    await queue.add('mail', { to: 'Ana' }, { jobId: 'last', priority: 9 });
    await queue.add('mail', { to: 'Bo' }, { jobId: 'first', priority: 1 });
    await queue.add('mail', { to: 'Ana' }, { jobId: 'late', delay: 7_200_000 });
    await queue.add('call', { to: 'Di' }, { jobId: 'soon', delay: 3_600_000 });
    for (const id of ['a1', 'b1', 'a2']) {
      await queue.add('mail', { to: 'Ana' }, { jobId: id, group: { id: id.slice(0, 1) } });
    }
    await stage.flowProducer(opts).add({
      ...{ name: 'parent', queueName: queue.name, ...opts, opts: { jobId: 'parent' } },
      children: [{ name: 'child', data: { to: 'Ed' }, queueName: queue.name, ...opts, opts: { jobId: 'child' } }],
    });
    return queue;
  }

  const filters: [JobFilter, string[]][] = [
    [{ states: 'waiting' }, ['4', '5', 'own', 'child', 'a1', 'b1', 'a2']],
    [{ states: 'prioritized' }, ['first', 'last']],
    [{ states: 'delayed' }, ['soon', 'late']],
    [{ states: 'active' }, ['3']],
    [{ states: 'completed' }, ['1']],
    [{ states: 'failed' }, ['2']],
    [{ states: 'waiting-children' }, ['parent']],
    [{ states: ['failed', 'completed'] }, ['2', '1']],
    [{ name: ['done', 'bad', 'run'] }, ['3', '1', '2']],
    [{ name: 'mail', states: ['waiting', 'delayed'] }, ['4', '5', 'own', 'a1', 'b1', 'a2', 'late']],
    [{ data: 'Bo' }, ['first', '5', '2']],
    [{ data: { to: 'Cy' } }, ['3']],
    [{ data: { tags: ['a', 'b'] } }, ['4']],
    [{ data: { tags: ['a'] } }, []],
    [{ data: { to: 'Ana' }, states: 'completed' }, ['1']],
    [{ reason: 'connection' }, ['2']],
    [{ reason: 'nothing' }, []],
    [{ group: 'a' }, ['a1', 'a2']],
    [{ group: 'a', states: 'failed' }, []],
    [{ parent: { id: 'parent' } }, ['child']],
    [{ olderThan: 3_600_000 }, []],
    [{ newerThan: 3_600_000, name: 'call' }, ['soon']],
  ];

  it('are found and counted in every state, whatever a page has', async () => {
    const queue = await everyState();
    for (const [filter, ids] of filters) {
      expect(await found(queue, filter), JSON.stringify(filter)).toEqual(ids);
      expect(await found(queue, filter, 1), JSON.stringify(filter)).toEqual(ids);
      expect(await queue.countJobs(filter)).toBe(ids.length);
    }
    const all = await found(queue);
    expect([all.length, new Set(all).size, await queue.countJobs()]).toEqual([15, 15, 15]);
    const { jobs } = await queue.findJobs({ states: 'failed' });
    expect(jobs[0]).toBeInstanceOf(chasquimq.Job);
    expect(jobs[0]?.toJSON()).toMatchObject({
      id: '2',
      name: 'bad',
      data: { to: 'Bo' },
      failedReason: 'no connection',
    });
  });

  it('are found by another process as well, as the cursor is a text', async () => {
    const queue = await everyState();
    const first = await queue.findJobs({ states: 'waiting' }, { limit: 3 });
    const other = stage.queue() as unknown as Queue;
    const second = await other.findJobs({ states: 'waiting' }, { limit: 3, cursor: first.cursor });
    expect([...first.jobs, ...second.jobs].map(({ id }) => id)).toEqual(['4', '5', 'own', 'child', 'a1', 'b1']);
  });

  it('are removed, and no others; who holds a job keeps it', async () => {
    const queue = await everyState();
    const log = new EventLog(queue, ['cleaned']);
    expect(await queue.removeJobs({ data: { to: 'Ana' } })).toBe(8);
    expect(log.all('cleaned').map(([ids, state]) => [state, (ids as string[]).length])).toEqual([
      ['delayed', 1],
      ['prioritized', 1],
      ['waiting', 5],
      ['completed', 1],
    ]);
    expect(await found(queue)).toEqual(['parent', 'soon', 'first', '5', 'child', '3', '2']);
    expect(await queue.removeJobs({ states: 'active' })).toBe(0);
    expect(await queue.removeJobs({ states: ['waiting', 'failed'] }, { limit: 1 })).toBe(1);
    expect(await found(queue)).toEqual(['parent', 'soon', 'first', 'child', '3', '2']);
    // a parent whose child is gone waits no more
    expect(await queue.removeJobs({ parent: { id: 'parent', queue: queue.qualifiedName } })).toBe(1);
    expect(await queue.getJobState('parent')).toBe('waiting');
  });

  it('are retried and promoted', async () => {
    const queue = await everyState();
    expect(await queue.retryJobs({ name: 'mail' })).toBe(0);
    expect(await queue.retryJobs({ reason: 'connection' }, { resetAttempts: true })).toBe(1);
    expect((await queue.getJob('2'))?.attemptsMade).toBe(0);
    expect(await queue.retryJobs({ states: 'completed' })).toBe(1);
    expect(await found(queue, { states: 'waiting', name: ['done', 'bad'] })).toEqual(['2', '1']);
    expect(await queue.promoteJobs({ name: 'call' })).toBe(1);
    expect(await found(queue, { states: 'delayed' })).toEqual(['late']);
    expect(await queue.promoteJobs({}, { limit: 1 })).toBe(1);
    expect(await queue.getDelayedCount()).toBe(0);
    // BullMQ's calls are what they were
    expect(await queue.retryJobs({ count: 10, state: 'failed' })).toBeUndefined();
    expect(await queue.promoteJobs({ count: 10 })).toBeUndefined();
  });

  it('are moved to another queue, where they are new jobs', async () => {
    // in a cluster the two share a slot
    const prefix = '{moves}';
    const queue = await everyState({ prefix });
    const other = stage.queue({ prefix }, 'other') as unknown as Queue;
    const log = stage.globalLog({ prefix }, 'other');
    expect(await queue.moveJobs(other, { name: 'mail' })).toBe(9);
    expect(await found(other)).toEqual(['late', 'first', 'last', '1', '2', 'own', 'a1', 'b1', 'a2']);
    expect(await found(queue)).toEqual(['parent', 'soon', 'child', '3', '1', '2']);
    expect(await queue.moveJobs(other.name, { states: ['failed', 'completed'] }, { limit: 1 })).toBe(1);
    expect((await other.getJob('3'))?.toJSON()).toMatchObject({ name: 'bad', data: { to: 'Bo' }, attemptsMade: 0 });
    // children belong to their parent
    expect(await queue.moveJobs(other, { states: 'waiting' })).toBe(0);
    await log.when('all are told', () => log.all('added').length === 10);
    expect(log.all('delayed')).toHaveLength(1);
    const worker = stage.worker(async ({ id }: Job) => id, { prefix }, 'other');
    const ends = new EventLog(worker, ['completed']);
    await ends.when('their ends', () => ends.entries.length === 9);
    const ids = ends.all<[Job]>('completed').map(([{ id }]) => id);
    expect(ids).toEqual(['1', '2', 'own', '3', 'first', 'last', 'a1', 'b1', 'a2']);
  });

  it.each([
    ['', 'The queue to move jobs to must be a Queue, or the name of one'],
    ['a:b', 'The queue to move jobs to must be a Queue, or the name of one'],
    [undefined, 'The queue to move jobs to must be a Queue, or the name of one'],
  ])('are not moved to %o', async (to, message) => {
    const queue = stage.queue() as unknown as Queue;
    expect((await rejection(queue.moveJobs(to as string, { name: 'a' }))).message).toBe(message);
    expect((await rejection(queue.moveJobs(queue.name, { name: 'a' }))).message).toBe(
      'The queue to move jobs to must be another one',
    );
    expect((await rejection(queue.moveJobs('other', { states: 'active' }))).message).toMatch(
      /^states must be some of prioritized/,
    );
    const elsewhere = new chasquimq.Queue('q', {
      connection: { host: '127.0.0.1', port: 1, retryStrategy: () => null },
    });
    elsewhere.on('error', () => {});
    const refused = await rejection(queue.moveJobs(elsewhere as unknown as Queue, { name: 'a' }));
    expect(refused.message).toBe('The queue to move jobs to must be on the same server');
    await elsewhere.close();
  });

  it('are changed in steps that are told, and stop at a signal', async () => {
    const queue = stage.queue() as unknown as Queue;
    await queue.addBulk(Array.from({ length: 5_000 }, (_, i) => ({ name: i % 2 ? 'odd' : 'even', data: i })));
    const told: JobsProgress[] = [];
    const stop = new AbortController();
    const stopped = queue.removeJobs(
      { name: 'odd' },
      {
        signal: stop.signal,
        onProgress: (progress) => {
          told.push(progress);
          if (progress.done >= 1_000) stop.abort(new Error('enough'));
        },
      },
    );
    expect((await rejection(stopped)).message).toBe('enough');
    const { done, looked, state } = told.at(-1) as JobsProgress;
    expect([state, done >= 1_000 && done < 1_500, looked >= 2 * done - 1]).toEqual(['waiting', true, true]);
    expect(await queue.countJobs({ name: 'odd' })).toBe(2_500 - done);
    expect(await queue.removeJobs({ name: 'odd' })).toBe(2_500 - done);
    expect(await queue.countJobs({ states: 'waiting' })).toBe(2_500);
    expect((await rejection(queue.findJobs({}, { signal: AbortSignal.abort() }))).name).toBe('AbortError');
  });

  it('are found once each while others come and go', async () => {
    const queue = stage.queue() as unknown as Queue;
    await queue.addBulk(Array.from({ length: 300 }, (_, i) => ({ name: 'stays', data: i })));
    await queue.addBulk(
      Array.from({ length: 300 }, (_, i) => ({ name: 'later', data: i, opts: { delay: 9_000_000 } })),
    );
    const ids: (string | undefined)[] = [];
    let cursor: string | undefined;
    do {
      const page = await queue.findJobs({}, { limit: 37, cursor });
      ids.push(...page.jobs.map(({ id }) => id));
      // the last one goes, and another comes
      await queue.remove(ids.at(-1) ?? '');
      await queue.add('comes', 1, { delay: 8_000_000, lifo: true });
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect([ids.length, new Set(ids).size]).toEqual([600, 600]);
  });

  it.each([
    [{ name: undefined }, 'name must be a text, or a list of texts'],
    [
      { states: [] },
      'states must be some of waiting-children, delayed, prioritized, waiting, active, completed, failed',
    ],
    [
      { states: 'done' },
      'states must be some of waiting-children, delayed, prioritized, waiting, active, completed, failed',
    ],
    [{ data: '' }, 'data must be a text, or an object with fields'],
    [{ data: {} }, 'data must be a text, or an object with fields'],
    [{ data: [1] }, 'data must be a text, or an object with fields'],
    [{ data: { user: undefined } }, 'data.user must have a value'],
    [{ reason: /x/ }, 'reason must be a text'],
    [{ group: '' }, 'group must be a text'],
    [{ olderThan: -1 }, 'olderThan must be a number of 0 or more'],
    [{ parent: '5' }, 'parent must be { id, queue }, the queue as <prefix>:<name>'],
    [{ parent: { id: '5', queue: 'q' } }, 'parent must be { id, queue }, the queue as <prefix>:<name>'],
    [{ error: 'x' }, 'error is no option of this call'],
  ])('are not touched by a call with %o', async (given, message) => {
    const queue = stage.queue() as unknown as Queue;
    const filter = given as object;
    const calls = [queue.findJobs(filter), queue.countJobs(filter), queue.removeJobs(filter)];
    for (const refused of [...calls, queue.retryJobs(filter, {}), queue.promoteJobs(filter, {})]) {
      const error = await rejection(refused);
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message.replace(/some of .*/, '')).toBe(message.replace(/some of .*/, ''));
    }
  });

  it.each([
    [{ limit: 0 }, 'limit must be a whole number of at least 1'],
    [{ limit: 1.5 }, 'limit must be a whole number of at least 1'],
    [{ signal: {} }, 'signal must be an AbortSignal'],
    [{ onProgress: 1 }, 'onProgress must be a function'],
    [{ start: 1 }, 'start is no option of this call'],
    [{ cursor: 'x' }, 'cursor must be what findJobs gave for the same states'],
  ])('are not touched by options such as %o', async (given, message) => {
    const queue = stage.queue() as unknown as Queue;
    const opts = given as object;
    expect((await rejection(queue.findJobs({}, opts))).message).toBe(message);
    const others = [queue.removeJobs({ name: 'a' }, opts), queue.retryJobs({}, opts), queue.promoteJobs({}, opts)];
    for (const refused of others) expect(await rejection(refused)).toBeInstanceOf(TypeError);
  });

  it('are not removed by a filter that says nothing', async () => {
    const queue = stage.queue() as unknown as Queue;
    const message = 'The filter must say which jobs: name their states at least';
    expect((await rejection(queue.removeJobs({}))).message).toBe(message);
  });
});
