// Groups: jobs that share `opts.group.id` are served in turns, within the limits of their group.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { GroupMaxSizeExceededError, RateLimitError, Worker } from '../../src/index.js';
import type { FlowProducer, Job, JobsOptions, WorkerOptions, Queue, QueueEvents } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

type Handler = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>;

const grouped = (id: string, more: object = {}): JobsOptions => ({ group: { id, ...more } });

describe('groups', () => {
  const stage = useStage(chasquimq);
  const queue = (): Queue => stage.queue() as unknown as Queue;

  function worker(handler: Handler, opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(handler as never, opts) as unknown as Worker;
  }

  /** Adds a job for each of these names, whose first letter is its group; `-` has none. */
  async function addAll(names: string[], opts: JobsOptions = {}): Promise<Job[]> {
    const jobs = names.map((name) => {
      const own = name.startsWith('-') ? opts : { ...opts, ...grouped(name[0]) };
      return { name, data: 0, opts: own };
    });
    return queue().addBulk(jobs);
  }

  /** Runs what waits, one job after the other. Gives their names. */
  async function drained(opts: Partial<WorkerOptions> = {}): Promise<string[]> {
    const names: string[] = [];
    const log = new EventLog(
      worker(async (job) => names.push(job.name), opts),
      ['drained'],
    );
    await log.get('drained');
    return names;
  }

  describe('order', () => {
    it('gives each group its turn, behind the jobs without a group', async () => {
      await addAll(['a1', 'a2', 'a3', 'b1', 'c1', 'c2']);
      await queue().add('-p', 0, { priority: 5 });
      await queue().add('-', 0);
      expect(await drained()).toEqual(['-', '-p', 'a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
    });

    it('heeds the priority within a group', async () => {
      await queue().add('last', 0, grouped('g', { priority: 9 }));
      await queue().add('second', 0, grouped('g', { priority: 1 }));
      await queue().add('first', 0, grouped('g'));
      expect(await queue().getCountsPerPriorityForGroup('g', [0, 1, 2, 9])).toEqual({ 0: 1, 1: 1, 2: 0, 9: 1 });
      expect(await drained()).toEqual(['first', 'second', 'last']);
    });

    it('changes the priority within a group', async () => {
      const [first] = await addAll(['a1', 'a2']);
      await first.changePriority({ priority: 3 });
      expect(await drained()).toEqual(['a2', 'a1']);
    });

    it('gives a group of weight 3 three turns', async () => {
      await addAll(Array.from({ length: 9 }, (_, i) => `a${i}`));
      await addAll(Array.from({ length: 3 }, (_, i) => `b${i}`));
      await queue().setGroupWeight('a', 3);
      expect(await queue().getGroupWeight('a')).toBe(3);
      const names = await drained();
      const before = names.slice(0, 4).filter((name) => name.startsWith('a'));
      expect(before).toHaveLength(3);
      expect(await queue().removeGroupWeight('a')).toBe(true);
      expect(await queue().getGroupWeight('a')).toBe(1);
    });

    it('lets a job join its group when it is due', async () => {
      await queue().pause();
      await queue().add('late', 0, { ...grouped('a'), delay: 1 });
      await addAll(['a1', 'b1', 'b2']);
      await until('the job to be due', async () => (await queue().getJob('1'))!.timestamp + 1 < Date.now());
      await queue().resume();
      expect(await drained()).toEqual(['a1', 'b1', 'late', 'b2']);
    });

    it('gives the jobs without a group turns of their own, where the worker says so', async () => {
      await addAll(['-1', '-2', '-3', 'a1', 'a2', 'a3', 'b1']);
      const names = await drained({ group: { ungrouped: 'fair' } });
      expect(names.slice(0, 5).filter((name) => name.startsWith('-'))).toHaveLength(2);
      expect(names.filter((name) => name.startsWith('-'))).toEqual(['-1', '-2', '-3']);
    });

    it('holds a group of strict order back while one of its jobs waits for its next try', async () => {
      const strict = grouped('a', { order: 'strict' });
      await queue().add('a1', 0, { ...strict, attempts: 3, backoff: 150 });
      await addAll(['a2', 'a3', 'b1', 'b2']);
      const names: string[] = [];
      const log = new EventLog(
        worker(async (job) => {
          names.push(job.name);
          if (job.name === 'a1' && job.attemptsMade < 2) throw new Error('again');
        }),
        ['completed'],
      );
      await log.get('completed', 5);
      expect(names).toEqual(['a1', 'b1', 'b2', 'a1', 'a1', 'a2', 'a3']);
      // no longer
      await queue().add('a4', 0, { ...grouped('a', { order: 'fifo' }), attempts: 2, backoff: 60_000 });
      await log.get('completed', 6);
    });

    it('puts what is tried again behind the others of its group', async () => {
      await addAll(['a1', 'a2', 'b1', 'b2'], { attempts: 2 });
      const names: string[] = [];
      const log = new EventLog(
        worker(async (job) => {
          names.push(job.name);
          if (names.length === 1) throw new Error('once');
        }),
        ['drained'],
      );
      await log.get('drained');
      expect(names).toEqual(['a1', 'b1', 'a2', 'b2', 'a1']);
    });
  });

  describe('limits', () => {
    /** Runs jobs on two workers of 10 slots. Gives how many of each group ran at once, at most. */
    async function mostAtOnce(names: string[], opts: Partial<WorkerOptions>): Promise<Record<string, number>> {
      const running: Record<string, number> = {};
      const most: Record<string, number> = {};
      const handler: Handler = async ({ gid = '-' }) => {
        running[gid] = (running[gid] ?? 0) + 1;
        most[gid] = Math.max(most[gid] ?? 0, running[gid]);
        // two turns of the loop, so that others start meanwhile
        await new Promise((resolve) => setTimeout(resolve, 5));
        running[gid]--;
      };
      const logs = [worker(handler, { concurrency: 10, ...opts }), worker(handler, { concurrency: 10, ...opts })].map(
        (one) => new EventLog(one, ['completed']),
      );
      await until('all to end', () => logs[0].names.length + logs[1].names.length === names.length);
      return most;
    }

    it('runs no more of a group than its concurrency, over all workers', async () => {
      const names = Array.from({ length: 60 }, (_, i) => `${'abc'[i % 3]}${i}`);
      await queue().setGroupConcurrency('c', 4);
      await addAll(names);
      const most = await mostAtOnce(names, { group: { concurrency: 2 } });
      expect(most).toMatchObject({ a: 2, b: 2 });
      expect(most.c).toBeLessThanOrEqual(4);
      expect(await queue().getGroupConcurrency('c')).toBe(4);
      expect(await queue().removeGroupConcurrency('c')).toBe(true);
      expect(await queue().getGroupConcurrency('c')).toBeUndefined();
      expect(await queue().getGroupsCount()).toBe(0);
    });

    it('heeds what is set for a group also where no worker has a limit', async () => {
      const names = Array.from({ length: 12 }, (_, i) => `a${i}`);
      await queue().setGroupConcurrency('a', 1);
      await addAll(names);
      expect(await mostAtOnce(names, {})).toEqual({ a: 1 });
    });

    it('starts no more of a group in a window than its limit, and goes on at once when it ends', async () => {
      await addAll(['a1', 'a2', 'a3', 'b1']);
      // a job that is due much later keeps nobody asleep
      await queue().add('far', 0, { delay: 60_000 });
      const starts: Record<string, number> = {};
      const log = new EventLog(
        worker(async ({ name }) => void (starts[name] = performance.now()), {
          concurrency: 5,
          group: { limit: { max: 1, duration: 400 } },
        }),
        ['completed'],
      );
      await log.get('completed', 2);
      expect(Object.keys(starts)).toEqual(['a1', 'b1']);
      await until('the group to be limited', async () => (await queue().getGroupStatus('a')) === 'limited');
      expect(await queue().getGroupRateLimitTtl('a', 1)).toBeGreaterThan(0);
      await log.get('completed', 4);
      expect(starts.a2 - starts.a1).toBeGreaterThan(390);
      expect(starts.a3 - starts.a2).toBeGreaterThan(390);
    });

    it('has a rate limit of one group, which can be removed', async () => {
      await queue().setGroupRateLimit('a', 1, 60_000);
      expect(await queue().getGroupRateLimit('a')).toEqual({ max: 1, duration: 60_000 });
      await addAll(['a1', 'a2']);
      const log = new EventLog(
        worker(async () => {}),
        ['completed'],
      );
      await log.get('completed', 1);
      await until('the group to be limited', async () => (await queue().getGroupStatus('a')) === 'limited');
      expect(await queue().removeGroupRateLimit('a')).toBe(true);
      await log.get('completed', 2);
      expect(await queue().getGroupRateLimit('a')).toBeUndefined();
    });

    it('limits a group by hand: the job goes back, and its try does not count', async () => {
      const [job] = await addAll(['a1']);
      const tries: number[] = [];
      const limiting = worker(async (run) => {
        tries.push(run.attemptsMade);
        if (tries.length > 1) return 'done';
        await limiting.rateLimitGroup(run, 300);
        throw Worker.RateLimitError();
      });
      const log = new EventLog(limiting, ['completed']);
      await until('the group to be limited', async () => (await queue().getGroupStatus('a')) === 'limited');
      // others go on
      await addAll(['b1']);
      await log.get('completed', 2);
      expect(log.all<[Job]>('completed').map(([{ name }]) => name)).toEqual(['b1', 'a1']);
      expect((await queue().getJob(job.id!))!.attemptsMade).toBe(1);
      expect(tries).toEqual([0, 0, 0]);
      await expect(limiting.rateLimitGroup(await queue().add('-', 0), 10)).rejects.toThrow('has no group');
    });

    it('frees the place of a job that a worker which is gone held', async () => {
      await addAll(['a1', 'a2']);
      const gate = stage.gate();
      const opts = { group: { concurrency: 1 } };
      const lost = worker(() => gate.opened, {
        ...opts,
        lockDuration: 300,
        skipLockRenewal: true,
        skipStalledCheck: true,
      });
      await new EventLog(lost, ['active']).get('active');
      expect(await queue().getGroupActiveCount('a')).toBe(1);
      const finder = new EventLog(
        worker(async () => {}, { ...opts, stalledInterval: 100 }),
        ['completed', 'error'],
      );
      await finder.get('completed', 2);
      // its end is refused
      const refused = new EventLog(lost, ['error']).get('error');
      gate.open();
      await refused;
      expect(stage.takeErrors()).toHaveLength(1);
      expect(await queue().getGroupActiveCount('a')).toBe(0);
    });
  });

  describe('pause', () => {
    it('is told by the events of the queue, once for each change', async () => {
      const events = stage.events() as unknown as QueueEvents;
      const heard: string[] = [];
      const hear = (name: string, groupId: string, id: string) => void heard.push(`${name} ${groupId} ${typeof id}`);
      events.on('group-paused', ({ groupId }, id) => hear('paused', groupId, id));
      events.on('group-resumed', ({ groupId }, id) => hear('resumed', groupId, id));
      await queue().resumeGroup('a');
      await queue().pauseGroup('a');
      await queue().pauseGroup('a');
      await queue().pauseGroup('b');
      await queue().resumeGroup('a');
      await until('the last one', () => heard.length === 3);
      expect(heard).toEqual(['paused a string', 'paused b string', 'resumed a string']);
    });

    it('starts no job of a paused group; what runs, ends', async () => {
      expect(await queue().pauseGroup('a')).toBe(true);
      expect(await queue().pauseGroup('a')).toBe(false);
      expect(await queue().isGroupPaused('a')).toBe(true);
      await addAll(['a1', 'b1']);
      expect(await queue().getGroups()).toEqual([
        { id: 'b', status: 'waiting' },
        { id: 'a', status: 'paused' },
      ]);
      const log = new EventLog(
        worker(async () => {}),
        ['completed'],
      );
      await log.get('completed');
      await addAll(['b2']);
      await log.get('completed', 2);
      expect(log.all<[Job]>('completed').map(([{ name }]) => name)).toEqual(['b1', 'b2']);
      expect(await queue().resumeGroup('a')).toBe(true);
      expect(await queue().resumeGroup('a')).toBe(false);
      await log.get('completed', 3);
      expect(await queue().resumeGroup('never')).toBe(false);
    });
  });

  describe('sizes', () => {
    it('refuses the add that finds its group full, and no other', async () => {
      const full = grouped('a', { maxSize: 2 });
      await queue().add('one', 0, full);
      const [refused, other] = await Promise.allSettled([
        queue()
          .add('two', 0, { ...full, delay: 60_000 })
          .then(() => queue().add('three', 0, full)),
        queue().add('other', 0, grouped('b')),
      ]);
      expect(other.status).toBe('fulfilled');
      const { reason } = refused as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(GroupMaxSizeExceededError);
      expect(reason).toMatchObject({
        name: 'GroupMaxSizeExceededError',
        code: 'ERR_GROUP_FULL',
        message: 'Group a is full: 2 of at most 2 jobs wait there. addJob',
      });
      await addAll(['a1']);
    });

    it('adds a bulk or a flow whole or not at all', async () => {
      const full = grouped('a', { maxSize: 2 });
      const three = [1, 2, 3].map((i) => ({ name: `job ${i}`, data: 0, opts: full }));
      expect(await rejection(queue().addBulk(three))).toBeInstanceOf(GroupMaxSizeExceededError);
      const flows = stage.flowProducer() as unknown as FlowProducer;
      const children = three.map(({ name, opts }) => ({ name, queueName: stage.queueName, opts }));
      const flow = { name: 'parent', queueName: stage.queueName, children };
      expect(await rejection(flows.add(flow))).toBeInstanceOf(GroupMaxSizeExceededError);
      expect(await queue().count()).toBe(0);
      await flows.add({ ...flow, children: children.slice(1) });
      expect(await queue().getGroupJobsCount('a')).toBe(2);
    });
  });

  describe('ordinary jobs', () => {
    it('counts, lists and reads them as waiting ones', async () => {
      const [first] = await addAll(['a1', 'b1', '-', 'a2']);
      expect(await queue().getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 4, prioritized: 0 });
      expect(await first.getState()).toBe('waiting');
      expect(first.gid).toBe('a');
      const names = async (...range: number[]): Promise<string[]> =>
        (await queue().getJobs(['waiting'], range[0], range[1], true)).map(({ name }) => name);
      expect(await names()).toEqual(['-', 'a1', 'b1', 'a2']);
      expect(await names(1, 2)).toEqual(['a1', 'b1']);
      expect((await queue().getJobs(['wait'])).map(({ name }) => name)).toEqual(['a2', 'b1', 'a1', '-']);
      expect((await queue().getGroupJobs('a')).map(({ name }) => name)).toEqual(['a1', 'a2']);
      expect((await queue().getGroupJobs('a', 1, 1)).map(({ name }) => name)).toEqual(['a2']);
      expect(await queue().getGroupsJobsCount(1000)).toBe(3);
      expect(await queue().getGroupsByStatus('waiting')).toEqual([
        { id: 'a', count: 2 },
        { id: 'b', count: 1 },
      ]);
      expect(await queue().getGroupsCountByStatus()).toEqual({ waiting: 2, limited: 0, maxed: 0, paused: 0 });
      const ids = async (start: number, end: number) => (await queue().getGroups(start, end)).map(({ id }) => id);
      expect([await ids(0, 0), await ids(-1, -1), await ids(1, 9), await ids(2, 9)]).toEqual([['a'], ['b'], ['b'], []]);
    });

    it('removes, drains and cleans them', async () => {
      const [one] = await addAll(['a1', 'a2', 'b1']);
      await one.remove();
      expect(await queue().getGroupJobsCount('a')).toBe(1);
      expect(await queue().clean(0, 1, 'wait')).toHaveLength(1);
      expect(await queue().getGroupsCount()).toBe(1);
      await addAll(['c1', '-']);
      await queue().drain();
      expect(await queue().count()).toBe(0);
      expect(await queue().getGroups()).toEqual([]);
    });

    it('retries and promotes them into their groups', async () => {
      await addAll(['a1']);
      await queue().add('a2', 0, { ...grouped('a'), delay: 60_000 });
      const log = new EventLog(
        worker(() => Promise.reject(new Error('boom')), { name: 'failing' }),
        ['failed'],
      );
      await log.get('failed');
      await queue().pauseGroup('a');
      await queue().retryJobs({ state: 'failed' });
      await queue().promoteJobs();
      expect((await queue().getGroupJobs('a')).map(({ name }) => name)).toEqual(['a1', 'a2']);
      await queue().resumeGroup('a');
      await log.get('failed', 3);
    });

    it('deletes a group, and all groups, and obliterates a queue', async () => {
      await addAll(['a1', 'a2', 'b1', 'c1']);
      await queue().setGroupWeight('a', 2);
      await queue().deleteGroup('a');
      expect(await queue().getGroupStatus('a')).toBeUndefined();
      expect(await queue().getGroupWeight('a')).toBe(1);
      expect(await queue().getGroupsCount()).toBe(2);
      await queue().deleteGroups();
      expect(await queue().count()).toBe(0);
      await addAll(['a1']);
      await queue().obliterate();
      expect(await queue().getGroupsCount()).toBe(0);
    });

    it('makes them by schedulers, and of parents', async () => {
      await queue().pauseGroup('s');
      await queue().upsertJobScheduler('every', { every: 60_000 }, { name: 'made', opts: grouped('s') });
      await until('the iteration to wait', async () => {
        await queue().promoteJobs();
        return (await queue().getGroupJobsCount('s')) === 1;
      });
      await queue().removeJobScheduler('every');
      await queue().deleteGroup('s');
      const flows = stage.flowProducer() as unknown as FlowProducer;
      await queue().pauseGroup('p');
      await flows.add({
        name: 'parent',
        queueName: stage.queueName,
        opts: grouped('p'),
        children: [{ name: 'child', queueName: stage.queueName, opts: grouped('c') }],
      });
      const log = new EventLog(
        worker(async () => {}),
        ['completed'],
      );
      await log.get('completed');
      await until('the parent to wait', async () => (await queue().getGroupJobsCount('p')) === 1);
    });

    it('lets them yield to one another, and keeps their group', async () => {
      const once = { ...grouped('a'), deduplication: { id: 'once' } };
      const first = await queue().add('a1', 0, once);
      expect((await queue().add('a2', 0, once)).id).toBe(first.id);
      const replacing = { ...grouped('b'), delay: 60_000, deduplication: { id: 'later', replace: true, ttl: 60_000 } };
      await queue().add('b1', 0, replacing);
      const second = await queue().add('b2', 0, replacing);
      await second.promote();
      const kept = { ...grouped('c'), deduplication: { id: 'kept', keepLastIfActive: true } };
      await queue().add('c1', 0, kept);
      const started: string[] = [];
      const log = new EventLog(
        worker(async (job) => {
          started.push(`${job.gid} ${job.name}`);
          if (job.name === 'c1') await queue().add('c2', 0, kept);
        }),
        ['completed'],
      );
      await log.get('completed', 4);
      expect(started.sort()).toEqual(['a a1', 'b b2', 'c c1', 'c c2']);
      expect(await queue().getGroupsCount()).toBe(0);
    });

    it('gives a processor that is a file the group of its job', async () => {
      const [job] = await addAll(['a1']);
      const file = fileURLToPath(new URL('programs/group.cjs', import.meta.url));
      const log = new EventLog(stage.worker(file as never) as object, ['completed']);
      await log.get('completed');
      expect((await queue().getJob(job.id!))!.returnvalue).toBe('a a');
    });

    it('takes one by hand, within the limits of its group', async () => {
      await addAll(['a1', 'a2']);
      const manual = worker(null as never, { group: { concurrency: 1 } });
      const first = await manual.getNextJob('token', { block: false });
      expect(first.name).toBe('a1');
      expect(await manual.getNextJob('token', { block: false })).toBeUndefined();
      await first.moveToCompleted('done', 'token', false);
      expect((await manual.getNextJob('token', { block: false })).name).toBe('a2');
    });
  });

  it('refuses what makes no sense, by its name', async () => {
    const adds: [JobsOptions, string][] = [
      [{ group: 'a' } as never, 'The job option group must be an object'],
      [{ group: {} } as never, 'The job option group.id must be a text'],
      [grouped(''), 'The job option group.id must be a text of 1 to 256 characters'],
      [grouped('x'.repeat(257)), 'The job option group.id must be a text'],
      [{ group: { id: 7 } } as never, 'The job option group.id must be a text'],
      [grouped('a', { priority: -1 }), 'group.priority must be a whole number from 0 to 2097151'],
      [grouped('a', { priority: 1.5 }), 'group.priority'],
      [grouped('a', { maxSize: 0 }), 'group.maxSize must be a whole number of at least 1'],
      [grouped('a', { weight: 0 }), 'group.weight must be a finite number above 0'],
      [grouped('a', { order: 'lifo' }), 'group.order must be strict or fifo, not lifo'],
      [grouped('a', { weigth: 3 }), 'has no field weigth'],
      [{ ...grouped('a'), priority: 3 }, 'group and priority cannot be used together'],
      [{ ...grouped('a'), lifo: true }, 'group and lifo cannot be used together'],
    ];
    for (const [opts, message] of adds) await expect(queue().add('job', 0, opts)).rejects.toThrow(message);
    const workers: [object, string][] = [
      [{ concurrency: 0 }, 'group.concurrency must be a whole number'],
      [{ limit: { max: 1 } }, 'group.limit.duration must be a whole number'],
      [{ limit: 3 }, 'group.limit must be an object'],
      [{ size: 3 }, 'has no field size'],
      [{ ungrouped: 'last' }, 'group.ungrouped must be first or fair, not last'],
    ];
    for (const [group, message] of workers) {
      expect(() => new Worker(stage.queueName, async () => {}, { connection: {}, group })).toThrow(message);
    }
    await expect(queue().setGroupWeight('a', NaN)).rejects.toThrow('The weight of a group');
    await expect(queue().setGroupConcurrency('a', 1.5)).rejects.toThrow('The concurrency of a group');
    await expect(queue().setGroupRateLimit('a', 1, 0)).rejects.toThrow('duration');
    await expect(queue().pauseGroup('')).rejects.toThrow('The group id must be a text');
    await expect(queue().getGroupsByStatus('x' as never)).rejects.toThrow('no group status');
    const template = { opts: grouped('a', { maxSize: 1 }) };
    await expect(queue().upsertJobScheduler('s', { every: 1000 }, template)).rejects.toThrow('group.maxSize');
    expect(RateLimitError).toBeDefined();
  });
});
