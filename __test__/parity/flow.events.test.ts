// Pins the events that flows bring about, in the queues they happen in.
import { describe, expect, it } from 'vitest';
import type { JobsOptions } from 'bullmq';
import { familyOf } from '../support/flows.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: flow.events', ({ lib }) => {
  const stage = useStage(lib);

  const flow = (kids: Record<string, JobsOptions>, opts: JobsOptions = {}, part = 'top') =>
    familyOf(stage, kids, { jobId: 'p', ...opts }, part);

  /** Event, job and `prev` of each entry, but for `drained`. */
  const told = (log: EventLog) =>
    log.entries
      .filter(({ event }) => event !== 'drained')
      .map(({ event, args: [fields] }) => {
        const { jobId, prev } = fields as { jobId: string; prev?: string };
        return prev === undefined ? `${event} ${jobId}` : `${event} ${jobId} ${prev}`;
      });

  it('of adding: the parent is parked before its children wait', async () => {
    const log = stage.globalLog();
    await stage.flowProducer().add(flow({ a: {}, b: { priority: 2 }, c: { delay: 60_000 } }, {}, ''));
    await log.get('delayed');
    expect(told(log)).toEqual([
      'added p',
      'waiting-children p',
      'added a',
      'waiting a',
      'added b',
      'waiting b',
      'added c',
      'delayed c',
    ]);
    expect(log.entries[0].args[0]).toEqual({ jobId: 'p', name: 'parent' });
    expect(log.entries[1].args[0]).toEqual({ jobId: 'p' });
  });

  it('each queue is told of its own jobs', async () => {
    const [top, kids] = [stage.globalLog({}, 'top'), stage.globalLog()];
    await stage.flowProducer().add(flow({ a: {} }));
    await Promise.all([top.get('waiting-children'), kids.get('waiting')]);
    expect(told(top)).toEqual(['added p', 'waiting-children p']);
    expect(told(kids)).toEqual(['added a', 'waiting a']);
  });

  it('of three levels: roots before what is below them', async () => {
    const log = stage.globalLog();
    const queueName = stage.name();
    const leaf = (jobId: string) => ({ name: 'leaf', queueName, opts: { jobId } });
    await stage.flowProducer().add({
      name: 'root',
      queueName,
      opts: { jobId: 'r' },
      children: [{ name: 'mid', queueName, opts: { jobId: 'm' }, children: [leaf('l1')] }, leaf('l2')],
    });
    await log.get('waiting', 2);
    const added = told(log).filter((line) => line.startsWith('added'));
    expect(added[0]).toBe('added r');
    expect(added.indexOf('added m')).toBeLessThan(added.indexOf('added l1'));
    expect([...added].sort()).toEqual(['added l1', 'added l2', 'added m', 'added r']);
  });

  it('of a release: the parent waits before its child is told to have completed', async () => {
    const log = stage.globalLog();
    stage.worker(async () => 1);
    await stage.flowProducer().add(flow({ a: {} }, {}, ''));
    await log.get('completed', 2);
    expect(told(log).slice(4)).toEqual([
      'active a waiting',
      'waiting p waiting-children',
      'completed a active',
      'active p waiting',
      'completed p active',
    ]);
  });

  it('of a release of a parent with a delay', async () => {
    const log = stage.globalLog({}, 'top');
    stage.worker(async () => 1);
    await stage.flowProducer().add(flow({ a: {} }, { delay: 60_000 }));
    await log.get('delayed');
    expect(told(log)).toEqual(['added p', 'waiting-children p', 'delayed p']);
  });

  it('of a release of a parent with a priority', async () => {
    const log = stage.globalLog({}, 'top');
    stage.worker(async () => 1);
    await stage.flowProducer().add(flow({ a: {} }, { priority: 5 }));
    await log.get('waiting');
    expect(told(log)).toEqual(['added p', 'waiting-children p', 'waiting p waiting-children']);
  });

  it('of a child that fails its parent', async () => {
    const log = stage.globalLog();
    stage.worker(async () => {
      throw new Error('bad');
    });
    await stage.flowProducer().add(flow({ a: { failParentOnFailure: true } }, {}, ''));
    await log.get('retries-exhausted', 2);
    expect(told(log).slice(4)).toEqual([
      'active a waiting',
      'waiting p waiting-children',
      'failed a active',
      'retries-exhausted a',
      'active p waiting',
      'failed p active',
      'retries-exhausted p',
    ]);
    expect(log.all('failed').map(([fields]) => fields)).toEqual([
      { jobId: 'a', failedReason: 'bad', prev: 'active' },
      { jobId: 'p', failedReason: `child ${stage.childKey('a')} failed`, prev: 'active' },
    ]);
  });

  it.each(['removeDependencyOnFailure', 'ignoreDependencyOnFailure', 'continueParentOnFailure'])(
    'of a child that fails with %s',
    async (option) => {
      const log = stage.globalLog({}, 'top');
      stage.worker(async () => {
        throw new Error('bad');
      });
      await stage.flowProducer().add(flow({ a: { [option]: true } }));
      await log.get('waiting');
      expect(told(log)).toEqual(['added p', 'waiting-children p', 'waiting p waiting-children']);
    },
  );

  it('nothing while other children are pending', async () => {
    const [top, kids] = [stage.globalLog({}, 'top'), stage.globalLog()];
    stage.worker(async () => 1);
    await stage.flowProducer().add(flow({ a: {}, later: { delay: 60_000 } }));
    await kids.get('completed');
    const marker = await stage.queue({}, 'top').add('marker', {});
    await top.get('waiting');
    expect(told(top)).toEqual(['added p', 'waiting-children p', `added ${marker.id}`, `waiting ${marker.id}`]);
  });

  it('of parking by hand and of the release', async () => {
    const log = stage.globalLog();
    const hand = stage.worker(null);
    const queue = stage.queue();
    await queue.add('parent', {}, { jobId: 'p' });
    const job = await hand.getNextJob('token');
    const link = { id: 'p', queue: queue.qualifiedName };
    await queue.add('child', {}, { jobId: 'c', parent: link });
    await job?.moveToWaitingChildren('token');
    const child = await hand.getNextJob('token');
    await child?.moveToCompleted(1, 'token', false);
    await log.get('completed');
    expect(told(log)).toEqual([
      'added p',
      'waiting p',
      'active p waiting',
      'added c',
      'waiting c',
      'waiting-children p active',
      'active c waiting',
      'waiting p waiting-children',
      'completed c active',
    ]);
  });

  it('of removing a parent: one for each job, with what a child was', async () => {
    const [top, kids] = [stage.globalLog({}, 'top'), stage.globalLog()];
    await stage.flowProducer().add(flow({ a: {}, b: { priority: 3 }, c: { delay: 60_000 } }));
    await stage.queue({}, 'top').remove('p');
    await top.get('removed');
    await kids.get('removed', 3);
    // BullMQ lets it go first, for the last of its children is removed before it
    expect(top.all('removed').map(([fields]) => (fields as { jobId: string }).jobId)).toEqual(['p']);
    expect(told(kids).slice(6).sort()).toEqual(['removed a wait', 'removed b prioritized', 'removed c delayed']);
  });

  it('of removing the last child: the parent is let go first', async () => {
    const log = stage.globalLog();
    await stage.flowProducer().add(flow({ a: {} }, {}, ''));
    await stage.queue().remove('a');
    await log.get('removed');
    expect(told(log).slice(4)).toEqual(['waiting p waiting-children', 'removed a wait']);
  });

  it('of removeUnprocessedChildren', async () => {
    const [top, kids] = [stage.globalLog({}, 'top'), stage.globalLog()];
    const { job } = await stage.flowProducer().add(flow({ a: {}, c: { delay: 60_000 } }));
    await job.removeUnprocessedChildren();
    await top.get('waiting');
    await kids.get('removed', 2);
    expect(told(top).slice(2)).toEqual(['waiting p waiting-children']);
    expect(told(kids).slice(4).sort()).toEqual(['removed a wait', 'removed c delayed']);
  });

  it('of removeChildDependency', async () => {
    const top = stage.globalLog({}, 'top');
    const { children = [] } = await stage.flowProducer().add(flow({ a: {} }));
    await children[0].job.removeChildDependency();
    await top.get('waiting');
    expect(told(top)).toEqual(['added p', 'waiting-children p', 'waiting p waiting-children']);
  });

  it('of ids that are taken', async () => {
    const log = stage.globalLog();
    const flows = stage.flowProducer();
    await flows.add(flow({ a: {} }, {}, ''));
    await flows.add(flow({ a: {} }, {}, ''));
    await log.get('duplicated', 2);
    expect(told(log).slice(4)).toEqual(['duplicated p', 'duplicated a']);
  });

  it('of a child that had completed when it was added again', async () => {
    const top = stage.globalLog({}, 'top');
    const done = new EventLog(
      stage.worker(async () => 1),
      ['completed'],
    );
    await stage.queue().add('a', {}, { jobId: 'a' });
    await done.get('completed');
    await stage.flowProducer().add(flow({ a: {} }));
    await top.get('waiting');
    expect(told(top)).toEqual(['added p', 'waiting-children p', 'waiting p waiting-children']);
  });

  it('a queue object emits nothing for flows', async () => {
    const queue = stage.queue({}, 'top');
    const log = new EventLog(queue, ['waiting', 'removed']);
    await stage.flowProducer().add(flow({ a: {} }));
    const job = await fetchJob(queue, 'p');
    await job.remove();
    expect(log.names).toEqual(['removed']);
  });

  it('of workers: a child in another queue has completed before its parent starts', async () => {
    const order: string[] = [];
    const children = stage.worker(async () => 1);
    const parents = stage.worker(async ({ id }) => void order.push(`run ${id}`), {}, 'top');
    children.on('completed', ({ id }) => order.push(`completed ${id}`));
    const log = new EventLog(parents, ['completed']);
    await Promise.all([children.waitUntilReady(), parents.waitUntilReady()]);
    const flows = stage.flowProducer();
    const numbers = Array.from({ length: 20 }, (_, i) => i + 1);
    for (const i of numbers) {
      await flows.add(flow({ [`k${i}`]: {} }, { jobId: `p${i}` }));
      await log.get('completed', i);
    }
    expect([...order].sort()).toEqual(numbers.flatMap((i) => [`completed k${i}`, `run p${i}`]).sort());
    // a process that was kept waiting reads both answers at once, from two connections: chance orders these
    const late = numbers.filter((i) => order.indexOf(`completed k${i}`) > order.indexOf(`run p${i}`));
    expect(late.length, order.join()).toBeLessThan(5);
  });
});
