// Pins options of parents and children: delays, priorities, deduplication, defaults, retention, order.
import { describe, expect, it } from 'vitest';
import type { FlowJob, Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: flow.options', ({ lib }) => {
  const stage = useStage(lib);

  function flow(parent: JobsOptions, child: JobsOptions = {}): FlowJob {
    return {
      name: 'parent',
      queueName: stage.name('top'),
      opts: { jobId: 'p', ...parent },
      children: [{ name: 'child', queueName: stage.name(), opts: { jobId: 'c', ...child } }],
    };
  }

  async function endChildren(count = 1): Promise<void> {
    const worker = stage.worker(async () => 'value');
    await new EventLog(worker, ['completed']).get('completed', count);
    await worker.close();
  }

  it('a jobId of null is none', async () => {
    const jobId = null as unknown as string;
    const { job, children = [] } = await stage.flowProducer().add(flow({ jobId }, { jobId }));
    expect(job.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(children.map((child) => child.job.id)).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  });

  describe('a parent', () => {
    it.each([
      ['a delay', { delay: 60_000 }, 'delayed'],
      ['a priority', { priority: 7 }, 'prioritized'],
      ['a delay and a priority', { delay: 60_000, priority: 7 }, 'delayed'],
      ['nothing', {}, 'waiting'],
    ])('with %s is parked first, and released by it', async (_, opts, released) => {
      const { job } = await stage.flowProducer().add(flow(opts));
      expect(await job.getState()).toBe('waiting-children');
      await endChildren();
      expect(await job.getState()).toBe(released);
    });

    it('shows its delay while it waits for its children', async () => {
      const { job } = await stage.flowProducer().add(flow({ delay: 60_000 }));
      expect((await fetchJob(stage.queue({}, 'top'), job.id)).delay).toBe(60_000);
    });

    it('is delayed from the time of its release', async () => {
      const log = stage.globalLog({}, 'top');
      await stage.flowProducer().add(flow({ delay: 60_000, timestamp: Date.now() - 30_000 }));
      const before = Date.now();
      await endChildren();
      const [{ delay }] = await log.get<[{ delay: number }]>('delayed');
      expect(delay).toBeGreaterThanOrEqual(before + 60_000);
      expect(delay).toBeLessThanOrEqual(Date.now() + 60_000);
    });

    it('that was delayed runs when it is due', async () => {
      const top = new EventLog(
        stage.worker(async (job) => job.getChildrenValues(), {}, 'top'),
        ['completed'],
      );
      await stage.flowProducer().add(flow({ delay: 40 }));
      await endChildren();
      expect((await top.get('completed'))[1]).toEqual({ [stage.childKey('c')]: 'value' });
    });

    it('with a priority comes in its turn', async () => {
      const top = stage.queue({}, 'top');
      await top.add('urgent', {}, { priority: 1 });
      await top.add('idle', {}, { priority: 9 });
      await stage.flowProducer().add(flow({ priority: 5 }));
      await endChildren();
      expect((await top.getPrioritized()).map(({ name }) => name)).toEqual(['urgent', 'parent', 'idle']);
    });

    it('without one goes to the head of the waiting list', async () => {
      const top = stage.queue({}, 'top');
      await top.addBulk(['x', 'y'].map((name) => ({ name, data: {} })));
      await stage.flowProducer().add(flow({}));
      await endChildren();
      expect((await top.getWaiting()).map(({ name }) => name)).toEqual(['parent', 'x', 'y']);
    });

    it('is released while its queue is paused, and runs when it is resumed', async () => {
      const top = stage.queue({}, 'top');
      await top.pause();
      const log = new EventLog(
        stage.worker(async () => 1, {}, 'top'),
        ['completed'],
      );
      const { job } = await stage.flowProducer().add(flow({}));
      await endChildren();
      expect(await job.getState()).toBe('waiting');
      expect(log.names).toEqual([]);
      await top.resume();
      await log.get('completed');
    });

    it('is parked with a changed priority, which counts at its release', async () => {
      const { job } = await stage.flowProducer().add(flow({}));
      await job.changePriority({ priority: 4 });
      expect(await job.getState()).toBe('waiting-children');
      await endChildren();
      expect(await job.getState()).toBe('prioritized');
      expect((await fetchJob(stage.queue({}, 'top'), 'p')).priority).toBe(4);
    });

    it('cannot be promoted or retried while it is parked', async () => {
      const { job } = await stage.flowProducer().add(flow({}));
      await expect(job.promote()).rejects.toThrow(`Job p is not in the delayed state. promote`);
      await expect(job.retry()).rejects.toThrow(`Job p is not in the failed state. reprocessJob`);
      await expect(job.changeDelay(5)).rejects.toThrow(`Job p is not in the delayed state. changeDelay`);
      expect(await job.getState()).toBe('waiting-children');
    });

    it('is removed on completion when told to', async () => {
      const top = new EventLog(
        stage.worker(async () => 1, {}, 'top'),
        ['completed'],
      );
      const { job } = await stage.flowProducer().add(flow({ removeOnComplete: true }));
      await endChildren();
      await top.get('completed');
      expect(await job.getState()).toBe('unknown');
      expect(await job.getChildrenValues()).toEqual({});
      expect(await stage.queue().getJobState('c')).toBe('completed');
    });
  });

  describe('a child', () => {
    it.each([
      ['a delay', { delay: 60_000 }, 'delayed'],
      ['a priority', { priority: 7 }, 'prioritized'],
      ['lifo', { lifo: true }, 'waiting'],
    ])('with %s starts as any other', async (_, opts, state) => {
      const { children = [] } = await stage.flowProducer().add(flow({}, opts));
      expect(await children[0].job.getState()).toBe(state);
    });

    it('with a delay releases its parent when it has ended', async () => {
      const { job } = await stage.flowProducer().add(flow({}, { delay: 30 }));
      await endChildren();
      expect(await job.getState()).toBe('waiting');
    });

    it('with lifo comes first', async () => {
      const queue = stage.queue();
      await queue.add('x', {});
      await stage.flowProducer().add(flow({}, { lifo: true }));
      expect((await queue.getWaiting()).map(({ name }) => name)).toEqual(['child', 'x']);
    });

    it('that completes and is not kept by the queue’s worker leaves its value', async () => {
      const worker = stage.worker(async () => 'value', { removeOnComplete: { count: 0 } });
      const log = new EventLog(worker, ['completed']);
      const { job } = await stage.flowProducer().add(flow({}));
      await log.get('completed');
      expect(await job.getChildrenValues()).toEqual({ [stage.childKey('c')]: 'value' });
      expect(await stage.queue().getJobState('c')).toBe('unknown');
    });

    it('whose value is read again after its retention is still there', async () => {
      const flows = stage.flowProducer();
      const { job } = await flows.add({
        name: 'parent',
        queueName: stage.name('top'),
        children: Array.from({ length: 5 }, (_, i) => ({
          name: 'child',
          queueName: stage.name(),
          opts: { jobId: `c${i}`, removeOnComplete: { count: 1 } },
        })),
      });
      await endChildren(5);
      expect(Object.keys(await job.getChildrenValues())).toHaveLength(5);
      expect(await stage.queue().getCompletedCount()).toBe(1);
      expect(await job.getState()).toBe('waiting');
    });
  });

  describe('queuesOptions', () => {
    it('gives defaults by queue, which the node’s own options override', async () => {
      const flows = stage.flowProducer();
      const { job, children = [] } = await flows.add(flow({ attempts: 5 }, { priority: 3 }), {
        queuesOptions: {
          [stage.name('top')]: { defaultJobOptions: { attempts: 2, keepLogs: 7 } },
          [stage.name()]: { defaultJobOptions: { priority: 9, removeOnComplete: true, attempts: 4 } },
        },
      });
      expect(job.opts).toMatchObject({ attempts: 5, keepLogs: 7 });
      expect(children[0].job.opts).toMatchObject({ priority: 3, removeOnComplete: true, attempts: 4 });
      expect((await fetchJob(stage.queue(), 'c')).opts).toMatchObject({
        priority: 3,
        removeOnComplete: true,
        attempts: 4,
      });
      expect((await fetchJob(stage.queue({}, 'top'), 'p')).opts).toMatchObject({ attempts: 5, keepLogs: 7 });
    });

    it('of other queues changes nothing', async () => {
      const flows = stage.flowProducer();
      const { job } = await flows.add(flow({}), { queuesOptions: { other: { defaultJobOptions: { attempts: 2 } } } });
      expect(job.opts.attempts).toBe(0);
    });

    it('a queue’s own defaults are not used', async () => {
      stage.queue({ defaultJobOptions: { attempts: 9 } }, 'top');
      const { job } = await stage.flowProducer().add(flow({}));
      expect(job.opts.attempts).toBe(0);
      expect((await fetchJob(stage.queue({}, 'top'), 'p')).opts.attempts).toBe(0);
    });
  });

  describe('deduplication', () => {
    it('of a leaf gives the job that is there', async () => {
      const flows = stage.flowProducer();
      const leaf = { name: 'leaf', queueName: stage.name(), opts: { deduplication: { id: 'once' } } };
      const first = await flows.add(leaf);
      const second = await flows.add(leaf);
      expect(second.job.id).toBe(first.job.id);
      expect(await stage.queue().getWaitingCount()).toBe(1);
    });

    it('of a node with children is refused', async () => {
      const error = 'Deduplication options cannot be used on flow nodes with children';
      await expect(stage.flowProducer().add(flow({ deduplication: { id: 'x' } }))).rejects.toThrow(error);
      expect(await stage.queue({}, 'top').getJobCountByTypes()).toBe(0);
      expect(await stage.queue().getJobCountByTypes()).toBe(0);
    });

    it('of a root, by the defaults of its queue, is over when the root ends', async () => {
      const top = stage.queue({}, 'top');
      const defaultJobOptions: JobsOptions = { deduplication: { id: 'once' } };
      const queuesOptions = { [top.name]: { defaultJobOptions } };
      const add = (jobId: string) =>
        stage.flowProducer().add(flow({ jobId }, { jobId: `${jobId}-c` }), { queuesOptions });
      await add('first');
      expect(await top.getDeduplicationJobId('once')).toBe('first');
      await endChildren();
      const worker = stage.worker(async () => 'x'.repeat(100_000), {}, 'top');
      await new EventLog(worker, ['completed']).get('completed');
      expect(await top.getDeduplicationJobId('once')).toBeNull();
      await worker.close();
      expect((await add('second')).job.id).toBe('second');
      expect(await top.getDeduplicationJobId('once')).toBe('second');
    });

    it('of a root that yields to another, by the defaults of its queue, leaves no children', async () => {
      const top = stage.queue({}, 'top');
      const defaultJobOptions: JobsOptions = { deduplication: { id: 'once' } };
      const queuesOptions = { [top.name]: { defaultJobOptions } };
      const add = (jobId: string) =>
        stage.flowProducer().add(
          {
            ...{ name: 'parent', queueName: top.name, opts: { jobId } },
            children: [
              { name: 'named', queueName: stage.name(), opts: { jobId: `${jobId}-c` } },
              { name: 'plain', queueName: stage.name() },
              { name: 'parent', queueName: stage.name(), children: [{ name: 'grandchild', queueName: stage.name() }] },
            ],
          },
          { queuesOptions },
        );
      await add('first');
      for (const jobId of ['second', 'third']) expect((await add(jobId)).job.id).toBe('first');
      expect(await top.getJobCountByTypes()).toBe(1);
      expect(await stage.queue().getJobCounts('waiting', 'waiting-children')).toEqual({
        waiting: 3,
        'waiting-children': 1,
      });
      expect(await stage.queue().getJob('second-c')).toBeUndefined();
    });

    it('of a child is refused', async () => {
      const error = 'Deduplication and parent options cannot be used together';
      await expect(stage.flowProducer().add(flow({}, { deduplication: { id: 'x' } }))).rejects.toThrow(error);
      expect(await stage.queue({}, 'top').getJobCountByTypes()).toBe(0);
    });
  });

  it('children are taken in the order of the array', async () => {
    const order: string[] = [];
    const queueName = stage.name();
    await stage.flowProducer().add({
      name: 'parent',
      queueName: stage.name('top'),
      children: Array.from({ length: 12 }, (_, i) => ({ name: `${i}`, queueName })),
    });
    const worker = stage.worker(async (job: Job) => {
      order.push(job.name);
    });
    await new EventLog(worker, ['completed']).get('completed', 12);
    expect(order).toEqual(Array.from({ length: 12 }, (_, i) => `${i}`));
  });

  it('parents of one queue run in the order of their releases, the latest first', async () => {
    const flows = stage.flowProducer();
    for (const name of ['a', 'b']) await flows.add(flow({ jobId: `p${name}` }, { jobId: `c${name}` }));
    await endChildren(2);
    expect((await stage.queue({}, 'top').getWaiting()).map(({ id }) => id)).toEqual(['pb', 'pa']);
  });
});
