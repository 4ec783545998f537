// Pins what removing a parent, a child or its dependency does to the rest of the flow.
import { describe, expect, it } from 'vitest';
import type { JobsOptions } from 'bullmq';
import { endChildren, familyOf, towerOf } from '../support/flows.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: flow.remove', ({ lib }) => {
  const stage = useStage(lib);
  const key = (id: string) => stage.childKey(id);

  const flow = (kids: Record<string, JobsOptions>, opts: JobsOptions = {}) =>
    familyOf(stage, kids, { jobId: 'p', ...opts });

  const states = async (ids: string[], part = '') => {
    const queue = stage.queue({}, part);
    return Promise.all(ids.map((id) => queue.getJobState(id)));
  };

  const end = (count: number) => endChildren(stage, count);

  describe('a child', () => {
    it('that was the last pending one releases its parent', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {} }));
      await stage.queue().remove('a');
      expect(await job.getState()).toBe('waiting');
      expect(await job.getDependenciesCount()).toMatchObject({ unprocessed: 0 });
    });

    it('that was not the last one does not', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, b: {} }));
      await (await fetchJob(stage.queue(), 'a')).remove();
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependencies()).toMatchObject({ unprocessed: [key('b')] });
    });

    it('that had completed leaves its value', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, later: { delay: 60_000 } }));
      await end(1);
      await stage.queue().remove('a');
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getChildrenValues()).toEqual({ [key('a')]: 'a' });
      expect(await job.getDependenciesCount()).toMatchObject({ processed: 1, unprocessed: 1 });
    });

    it('that had failed without an option releases its parent', async () => {
      const { job } = await stage.flowProducer().add(flow({ bad: {} }));
      await end(1);
      expect(await job.getState()).toBe('waiting-children');
      await stage.queue().remove('bad');
      expect(await job.getState()).toBe('waiting');
    });

    it.each([
      ['priority', { priority: 3 }],
      ['delay', { delay: 60_000 }],
    ])('releases its parent without regard to the parent’s %s', async (_, opts) => {
      const { job } = await stage.flowProducer().add(flow({ a: {} }, opts));
      await stage.queue().remove('a');
      expect(await job.getState()).toBe('waiting');
    });

    it('releases its parent in the same way when its dependency is removed', async () => {
      const flows = stage.flowProducer();
      const nodes = await flows.addBulk([
        { ...flow({ a: {} }, { jobId: 'p1', priority: 3 }) },
        { ...flow({ b: {} }, { jobId: 'p2', delay: 60_000 }) },
      ]);
      for (const { children = [] } of nodes) await children[0].job.removeChildDependency();
      expect(await states(['p1', 'p2'], 'top')).toEqual(['waiting', 'waiting']);
    });

    it('that is delayed releases its parent', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: { delay: 60_000 } }));
      await stage.queue().remove('a');
      expect(await job.getState()).toBe('waiting');
    });

    it('that is active is not removed', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {} }));
      const hand = stage.worker(null);
      await hand.getNextJob('token');
      const error = await rejection((await fetchJob(stage.queue(), 'a')).remove());
      expect(error.message).toBe('Job a could not be removed because it is locked by another worker');
      expect(await job.getState()).toBe('waiting-children');
    });

    it('in the middle takes its own children along', async () => {
      await stage.flowProducer().add(towerOf(stage));
      await stage.queue().remove('mid');
      expect(await states(['root', 'mid', 'leaf'])).toEqual(['waiting', 'unknown', 'unknown']);
    });

    it('in the middle may leave its own children', async () => {
      await stage.flowProducer().add(towerOf(stage));
      await (await fetchJob(stage.queue(), 'mid')).remove({ removeChildren: false });
      expect(await states(['root', 'mid', 'leaf'])).toEqual(['waiting', 'unknown', 'waiting']);
    });

    it('whose parent is gone ends as any other', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, bad: { failParentOnFailure: true } }));
      await job.remove({ removeChildren: false });
      await end(2);
      expect(await states(['a', 'bad'])).toEqual(['completed', 'failed']);
      expect(await stage.queue({}, 'top').getJobCountByTypes()).toBe(0);
    });
  });

  describe('a parent', () => {
    it('takes all its children along', async () => {
      await stage.flowProducer().add(towerOf(stage));
      await stage.queue().remove('root');
      expect(await states(['root', 'mid', 'leaf'])).toEqual(['unknown', 'unknown', 'unknown']);
      expect(await stage.queue().getJobCountByTypes()).toBe(0);
    });

    it('takes those that ended along as well', async () => {
      const { job } = await stage
        .flowProducer()
        .add(flow({ a: {}, bad1: { ignoreDependencyOnFailure: true }, later: { delay: 60_000 } }));
      await end(2);
      await job.remove();
      expect(await states(['a', 'bad1', 'later'])).toEqual(['unknown', 'unknown', 'unknown']);
      expect(await stage.queue().getJobCountByTypes()).toBe(0);
    });

    it('takes those that failed it along', async () => {
      const { job } = await stage
        .flowProducer()
        .add(flow({ bad: { failParentOnFailure: true }, later: { delay: 60_000 } }));
      await end(1);
      expect(await job.getState()).toBe('waiting');
      await job.remove();
      expect(await states(['bad', 'later'])).toEqual(['unknown', 'unknown']);
    });

    it('leaves its children when told to', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, b: {} }));
      await job.remove({ removeChildren: false });
      expect(await states(['a', 'b'])).toEqual(['waiting', 'waiting']);
      expect(await job.getState()).toBe('unknown');
    });

    it('whose child is active stays, and so does the rest', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, b: {} }));
      await stage.worker(null).getNextJob('token');
      const error = await rejection(job.remove());
      expect(error.message).toBe('Job p could not be removed because it is locked by another worker');
      expect(await states(['a', 'b'])).toEqual(['active', 'waiting']);
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependenciesCount()).toMatchObject({ unprocessed: 2 });
    });

    it('whose grandchild is active stays', async () => {
      const { job } = await stage.flowProducer().add(towerOf(stage));
      await stage.worker(null).getNextJob('token');
      expect((await rejection(job.remove())).message).toBe(
        'Job root could not be removed because it is locked by another worker',
      );
      expect(await states(['root', 'mid', 'leaf'])).toEqual(['waiting-children', 'waiting-children', 'active']);
    });

    it('whose child is active may leave it behind', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {} }));
      const hand = stage.worker(null);
      const child = await hand.getNextJob('token');
      await job.remove({ removeChildren: false });
      await child?.moveToCompleted('alone', 'token');
      expect(await states(['a'])).toEqual(['completed']);
      expect(await job.getState()).toBe('unknown');
    });

    it('that completed takes its children along', async () => {
      const top = new EventLog(
        stage.worker(async () => {}, {}, 'top'),
        ['completed'],
      );
      const { job } = await stage.flowProducer().add(flow({ a: {}, b: {} }));
      await end(2);
      await top.get('completed');
      await job.remove();
      expect(await states(['a', 'b'])).toEqual(['unknown', 'unknown']);
    });

    it('with children in three queues takes all of them along', async () => {
      const { job } = await stage.flowProducer().add({
        name: 'parent',
        queueName: stage.name(),
        children: ['x', 'y', 'z'].map((part) => ({ name: part, queueName: stage.name(part), opts: { jobId: part } })),
      });
      await job.remove();
      for (const part of ['x', 'y', 'z']) expect(await states([part], part)).toEqual(['unknown']);
    });
  });

  describe('removeUnprocessedChildren', () => {
    it('removes what is pending and releases the parent', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, b: { delay: 60_000 }, c: { priority: 4 } }));
      expect(await job.removeUnprocessedChildren()).toBeUndefined();
      expect(await states(['a', 'b', 'c'])).toEqual(['unknown', 'unknown', 'unknown']);
      expect(await job.getState()).toBe('waiting');
      expect(await job.getDependencies()).toEqual({ processed: {}, unprocessed: [], ignored: {}, failed: [] });
    });

    it('leaves what completed, and what failed', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, bad: {}, later: { delay: 60_000 } }));
      await end(2);
      await job.removeUnprocessedChildren();
      expect(await states(['a', 'bad', 'later'])).toEqual(['completed', 'failed', 'unknown']);
      expect(await job.getChildrenValues()).toEqual({ [key('a')]: 'a' });
      expect(await job.getDependenciesCount()).toMatchObject({ processed: 1, unprocessed: 1 });
      expect(await job.getState()).toBe('waiting-children');
    });

    it('leaves a child that is active', async () => {
      const { job } = await stage.flowProducer().add(flow({ a: {}, b: {} }));
      await stage.worker(null).getNextJob('token');
      await job.removeUnprocessedChildren();
      expect(await states(['a', 'b'])).toEqual(['active', 'unknown']);
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependencies()).toMatchObject({ unprocessed: [key('a')] });
    });

    it('removes grandchildren as well', async () => {
      const { job } = await stage.flowProducer().add(towerOf(stage));
      await job.removeUnprocessedChildren();
      expect(await states(['root', 'mid', 'leaf'])).toEqual(['waiting', 'unknown', 'unknown']);
    });

    it('of a job without children does nothing', async () => {
      const job = await stage.queue().add('alone', {});
      await job.removeUnprocessedChildren();
      expect(await job.getState()).toBe('waiting');
    });
  });

  it('a parent that was released by a removal runs', async () => {
    const top = new EventLog(
      stage.worker(async (job) => job.getDependenciesCount(), {}, 'top'),
      ['completed'],
    );
    await stage.flowProducer().add(flow({ a: {} }));
    await stage.queue().remove('a');
    expect((await top.get('completed'))[1]).toEqual({ processed: 0, unprocessed: 0, ignored: 0, failed: 0 });
  });

  it('a parent that is released by a removal comes first in the waiting list', async () => {
    const top = stage.queue({}, 'top');
    await top.addBulk(['x', 'y'].map((name) => ({ name, data: {} })));
    await stage.flowProducer().add(flow({ a: {} }));
    await stage.queue().remove('a');
    expect((await top.getWaiting()).map(({ name }) => name)).toEqual(['parent', 'x', 'y']);
  });
});
