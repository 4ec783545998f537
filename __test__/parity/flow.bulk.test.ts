// Pins drain, clean, obliterate and promoteJobs where there are flows.
import { describe, expect, it } from 'vitest';
import type { JobsOptions } from 'bullmq';
import { endChildren, familyOf } from '../support/flows.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: flow.bulk', ({ lib }) => {
  const stage = useStage(lib);

  const flow = (part: string, kids: Record<string, JobsOptions>, opts: JobsOptions = {}) =>
    familyOf(stage, kids, { jobId: 'p', ...opts }, part);
  const end = (count: number) => endChildren(stage, count);

  describe('drain', () => {
    it('of the children deletes their parent in the same queue', async () => {
      await stage.flowProducer().add(flow('', { a: {}, b: {} }));
      const queue = stage.queue();
      await queue.drain();
      expect(await queue.getJobCountByTypes()).toBe(0);
    });

    it('of the children releases their parent in another queue, and tells nobody', async () => {
      const told = ['added', 'waiting-children', 'waiting', 'removed', 'resumed'];
      const log = new EventLog(stage.events({}, 'top'), told);
      const { job } = await stage.flowProducer().add(flow('top', { a: {}, b: {} }));
      await stage.queue().drain();
      expect(await job.getState()).toBe('waiting');
      await stage.queue({}, 'top').resume();
      await log.get('resumed');
      expect(log.names).toEqual(['added', 'waiting-children', 'resumed']);
    });

    it.each([
      ['in the waiting list', [{}, { jobId: 'own' }, {}, { lifo: true }, {}], '3 0 1 2 4'],
      ['delayed', [{ delay: 3000 }, { delay: 1000 }, { delay: 2000 }], '0 2 1'],
      ['with priorities', [{ priority: 3 }, { priority: 1 }, { priority: 2 }], '0 2 1'],
      ['of all kinds', [{ delay: 9000 }, { priority: 2 }, {}, { priority: 1 }, {}, { delay: 5000 }], '1 3 0 5 2 4'],
    ] as [string, JobsOptions[], string][])(
      'puts parents in another queue in the waiting list: children %s',
      async (_, kids, order) => {
        const flows = stage.flowProducer();
        for (const [i, opts] of kids.entries()) {
          const children = [{ name: 'child', queueName: stage.name(), opts }];
          await flows.add({ name: `${i}`, queueName: stage.name('top'), children });
        }
        await stage.queue().drain(true);
        const parents = await stage.queue({}, 'top').getJobs('wait', 0, -1, true);
        expect(parents.map(({ name }) => name).join(' ')).toBe(order);
      },
    );

    it('puts a parent of many children in the waiting list where the first of them was', async () => {
      const flows = stage.flowProducer();
      const kid = { name: 'child', queueName: stage.name() };
      const top = { queueName: stage.name('top') };
      await flows.add({ ...top, name: 'a', opts: { jobId: 'a' }, children: [kid] });
      await flows.add({ ...top, name: 'b', children: [kid] });
      const parent = { id: 'a', queue: stage.queue({}, 'top').qualifiedName };
      await stage.queue().add('child', {}, { parent });
      await stage.queue().drain();
      const parents = await stage.queue({}, 'top').getJobs('wait', 0, -1, true);
      expect(parents.map(({ name }) => name)).toEqual(['a', 'b']);
    });

    it('leaves a parent with a child that is left', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: {}, later: { delay: 60_000 } }));
      await stage.queue().drain();
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependencies()).toMatchObject({ unprocessed: [stage.childKey('later')] });
      await stage.queue().drain(true);
      expect(await job.getState()).toBe('waiting');
    });

    it('goes up level by level in one queue', async () => {
      const queueName = stage.name();
      await stage.flowProducer().add({
        name: 'root',
        queueName,
        children: [{ name: 'mid', queueName, children: [{ name: 'leaf', queueName }] }],
      });
      await stage.queue().drain();
      expect(await stage.queue().getJobCountByTypes()).toBe(0);
    });

    it('of the parents’ queue leaves parked parents and their children', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: {} }));
      await stage.queue({}, 'top').add('plain', {});
      await stage.queue({}, 'top').drain(true);
      expect(await job.getState()).toBe('waiting-children');
      expect(await stage.queue({}, 'top').getWaitingCount()).toBe(0);
      await end(1);
      expect(await job.getState()).toBe('waiting');
    });

    it('leaves a parent whose child is active', async () => {
      const { job } = await stage.flowProducer().add(flow('', { a: {}, b: {} }));
      const hand = stage.worker(null);
      const a = await hand.getNextJob('token');
      await stage.queue().drain();
      expect(await job.getState()).toBe('waiting-children');
      await a?.moveToCompleted('value', 'token', false);
      expect(await job.getState()).toBe('waiting');
    });
  });

  describe('clean', () => {
    it('of waiting children deletes their parent in the same queue', async () => {
      await stage.flowProducer().add(flow('', { a: {}, b: {} }));
      const removed = await stage.queue().clean(0, 100, 'wait');
      expect(removed.sort()).toEqual(['a', 'b']);
      expect(await stage.queue().getJobCountByTypes()).toBe(0);
    });

    it('of waiting children releases their parent in another queue', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: {}, b: {} }));
      await stage.queue().clean(0, 100, 'wait');
      expect(await job.getState()).toBe('waiting');
    });

    it('of one child leaves the parent to the others', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: {}, b: {} }));
      await stage.queue().clean(0, 1, 'wait');
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependenciesCount()).toMatchObject({ unprocessed: 1 });
    });

    it('of failed children releases their parent', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { bad: {} }));
      await end(1);
      await stage.queue().clean(0, 100, 'failed');
      expect(await job.getState()).toBe('waiting');
    });

    it('of completed children leaves their values', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: {}, later: { delay: 60_000 } }));
      await end(1);
      await stage.queue().clean(0, 100, 'completed');
      expect(await job.getChildrenValues()).toEqual({ [stage.childKey('a')]: 'a' });
      expect(await job.getState()).toBe('waiting-children');
    });

    it('of delayed children releases their parent', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { later: { delay: 60_000 } }));
      await stage.queue().clean(0, 100, 'delayed');
      expect(await job.getState()).toBe('waiting');
    });

    it('of prioritized children releases their parent', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: { priority: 4 } }));
      await stage.queue().clean(0, 100, 'prioritized');
      expect(await job.getState()).toBe('waiting');
    });

    it('of completed parents leaves their children', async () => {
      const top = new EventLog(
        stage.worker(async () => 1, {}, 'top'),
        ['completed'],
      );
      const { job } = await stage.flowProducer().add(flow('top', { a: {} }));
      await end(1);
      await top.get('completed');
      expect(await stage.queue({}, 'top').clean(0, 100, 'completed')).toEqual([job.id]);
      expect(await stage.queue().getJobState('a')).toBe('completed');
      expect(await job.getChildrenValues()).toEqual({});
    });
  });

  describe('obliterate', () => {
    it('of the parents’ queue leaves the children, which end', async () => {
      await stage.flowProducer().add(flow('top', { a: {}, b: {} }));
      await stage.queue({}, 'top').obliterate();
      await end(2);
      expect(await stage.queue().getCompletedCount()).toBe(2);
    });

    it('of the children’s queue releases their parent', async () => {
      const { job } = await stage.flowProducer().add(flow('top', { a: {}, later: { delay: 60_000 } }));
      await stage.queue().obliterate();
      expect(await job.getState()).toBe('waiting');
    });

    it('of one queue with both removes all of it', async () => {
      const queue = stage.queue();
      await stage
        .flowProducer()
        .addBulk([flow('', { a: {}, bad: { ignoreDependencyOnFailure: true }, later: { delay: 60_000 } })]);
      await end(2);
      await queue.obliterate();
      expect(await queue.getJobCountByTypes()).toBe(0);
      await queue.resume();
      const { job } = await stage.flowProducer().add(flow('', { a: {} }));
      expect(await job.getDependencies()).toEqual({
        processed: {},
        unprocessed: [stage.childKey('a')],
        ignored: {},
        failed: [],
      });
    });
  });

  it('promoteJobs lets delayed children run, and their parent after them', async () => {
    const { job } = await stage.flowProducer().add(flow('top', { a: { delay: 60_000 }, b: { delay: 60_000 } }));
    await stage.queue().promoteJobs();
    await end(2);
    expect(await job.getState()).toBe('waiting');
    expect(await (await fetchJob(stage.queue({}, 'top'), 'p')).getChildrenValues()).toEqual({
      [stage.childKey('a')]: 'a',
      [stage.childKey('b')]: 'b',
    });
  });

  it('counts know parked parents', async () => {
    await stage.flowProducer().addBulk([flow('', { a: {} }), flow('', { b: {} }, { jobId: 'q' })]);
    const queue = stage.queue();
    expect(await queue.getJobCounts()).toEqual({
      active: 0,
      completed: 0,
      delayed: 0,
      failed: 0,
      prioritized: 0,
      waiting: 2,
      'waiting-children': 2,
    });
    expect((await queue.getJobs(['waiting-children'])).map(({ id }) => id)).toEqual(['q', 'p']);
    expect((await queue.getWaitingChildren()).map(({ id }) => id)).toEqual(['p', 'q']);
    expect((await queue.getWaitingChildren(1, 1)).map(({ id }) => id)).toEqual(['q']);
    expect(await queue.count()).toBe(4);
    expect(await queue.getJobCountByTypes('waiting-children')).toBe(2);
  });
});
