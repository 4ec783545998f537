// Pins flows whose children are given no ids: what is known of them, and what is done to them, by the ids that `add` tells.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const NONE = { processed: 0, unprocessed: 0, ignored: 0, failed: 0 };
const WAIT_MS = 60_000;

describe.each(libraries)('$name: flow.unnamed', { timeout: 2 * WAIT_MS }, ({ lib }) => {
  const stage = useStage(lib);
  const numbers = (to: number) => Array.from({ length: to }, (_, i) => i);

  /** A parent in another queue with that many children, of data `{ i }`. */
  async function family(size: number, own: JobsOptions = {}, part = 'top'): Promise<{ parent: Job; ids: string[] }> {
    const { job, children = [] } = await stage.flowProducer().add({
      name: 'parent',
      queueName: stage.name(part),
      children: numbers(size).map((i) => ({ name: 'child', queueName: stage.name(), data: { i }, opts: { ...own } })),
    });
    return { parent: job, ids: children.map((child) => child.job.id as string) };
  }

  const keys = (ids: string[]) => ids.map((id) => stage.childKey(id));

  it('children in several queues have ids of their own', async () => {
    const flows = stage.flowProducer();
    const child = (part: string) => ({ name: 'child', queueName: stage.name(part) });
    const tree = () => ({
      name: 'parent',
      queueName: stage.name('top'),
      children: [...numbers(3).flatMap((i) => [child('a'), child('b'), child(`c${i}`)]), child('b')],
    });
    const trees = [await flows.add(tree()), ...(await flows.addBulk([tree(), tree()]))];
    const ids = trees.flatMap(({ children = [] }) => children.map(({ job }) => job.id));
    expect([ids.length, new Set(ids).size]).toEqual([30, 30]);
    for (const { job, children = [] } of trees) {
      const { unprocessed = [] } = await job.getDependencies();
      expect(new Set(unprocessed)).toEqual(
        new Set(children.map((node) => `bull:${node.job.queueName}:${node.job.id}`)),
      );
      for (const node of children) expect((await node.job.getState()) as string).toBe('waiting');
    }
  });

  /** Ends `count` children, and starts no more: those of whose data `fails` says so fail on their first start. */
  async function end(count: number, fails: (i: number) => boolean = () => false, concurrency = 1): Promise<void> {
    const queue = stage.queue();
    let started = 0;
    const worker = stage.worker(
      async ({ data: { i }, attemptsStarted }: Job<{ i: number }>) => {
        started += 1;
        if (started === count) await queue.pause();
        if (fails(i) && attemptsStarted === 1) throw new Error(`no. ${i} failed`);
        return { i };
      },
      { concurrency },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.when('all to end', () => log.entries.length === count, WAIT_MS);
    await worker.close();
    await queue.resume();
  }

  it('is the same job to the producer, the worker, the events and the getters', async () => {
    const log = stage.globalLog();
    const { parent, ids } = await family(3);
    expect(new Set(ids).size).toBe(3);
    const queue = stage.queue();
    const waiting = await queue.getJobs(['waiting'], 0, -1, true);
    expect(waiting.map(({ id, data }) => [id, data])).toEqual(ids.map((id, i) => [id, { i }]));
    const seen: unknown[] = [];
    const worker = stage.worker(async (job) => {
      seen.push([job.id, job.parentKey, job.parent, await job.getState(), job.opts.parent]);
    });
    const ended = new EventLog(worker, ['completed']);
    await ended.get('completed', 3, WAIT_MS);
    const parentOf = { id: parent.id, queueKey: parent.queueQualifiedName };
    const opts = { id: parent.id, queue: parent.queueQualifiedName };
    expect(seen).toEqual(ids.map((id) => [id, stage.childKey(parent.id, 'top'), parentOf, 'active', opts]));
    for (const [i, id] of ids.entries()) {
      const job = await fetchJob(queue, id);
      expect(job).toMatchObject({ id, data: { i }, parentKey: stage.childKey(parent.id, 'top'), parent: parentOf });
      expect(await job.getState()).toBe('completed');
    }
    await log.when('the children to complete', () => log.all('completed').length === 3, WAIT_MS);
    for (const event of ['added', 'waiting', 'active', 'completed']) {
      const told = log.all<[{ jobId: string }]>(event).map(([{ jobId }]) => jobId);
      expect([event, told]).toEqual([event, ids]);
    }
  });

  it.each<[string, JobsOptions]>([
    ['at once', { attempts: 3 }],
    ['later', { attempts: 3, backoff: 20 }],
  ])('an only child is tried again %s, and its parent starts with its value', async (_, own) => {
    const { parent, ids } = await family(1, own);
    const [id = ''] = ids;
    const worker = stage.worker(async ({ attemptsStarted }) => {
      if (attemptsStarted < 3) throw new Error('not yet');
      return attemptsStarted;
    });
    const parents = stage.worker(async (job) => job.getChildrenValues(), {}, 'top');
    const log = new EventLog(worker, ['failed', 'completed']);
    const ended = new EventLog(parents, ['completed']);
    const [, values] = await ended.get<[Job, unknown]>('completed');
    expect(values).toEqual({ [stage.childKey(id)]: 3 });
    expect(log.entries.length).toBe(3);
    const child = await fetchJob(stage.queue(), id);
    expect(child).toMatchObject({ attemptsMade: 3, parentKey: stage.childKey(parent.id, 'top') });
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 1 });
  });

  it('an only child that fails for good fails its parent', async () => {
    const { parent, ids } = await family(1, { attempts: 2, backoff: 20, failParentOnFailure: true });
    stage.worker(async () => {
      throw new Error('never');
    });
    const parents = new EventLog(
      stage.worker(async () => 'started', {}, 'top'),
      ['failed', 'completed'],
    );
    const [job, error] = await parents.get<[Job, Error]>('failed');
    expect([job.id, error.message]).toEqual([parent.id, `child ${stage.childKey(ids[0])} failed`]);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, failed: 1 });
  });

  it('parents know their children, whatever became of them', async () => {
    const { parent, ids } = await family(9, { ignoreDependencyOnFailure: true });
    expect((await parent.getDependencies()).unprocessed?.sort()).toEqual(keys(ids).sort());
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 9 });
    await end(5, (i) => i === 1 || i === 3);
    const { processed, ignored, unprocessed = [], failed } = await parent.getDependencies();
    const value = (i: number) => [stage.childKey(ids[i]), { i }];
    expect(processed).toEqual(Object.fromEntries([0, 2, 4].map(value)));
    expect(ignored).toEqual(Object.fromEntries([1, 3].map((i) => [stage.childKey(ids[i]), `no. ${i} failed`])));
    expect([...unprocessed].sort()).toEqual(keys(ids.slice(5)).sort());
    expect(failed).toEqual([]);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 3, ignored: 2, unprocessed: 4 });
    expect(await parent.getState()).toBe('waiting-children');
    await end(4);
    expect(await parent.getState()).toBe('waiting');
    expect(await parent.getChildrenValues()).toEqual(Object.fromEntries([0, 2, 4, 5, 6, 7, 8].map(value)));
  });

  it('children that run are pending, those beside them that have ended are not', async () => {
    const { parent, ids } = await family(9, { ignoreDependencyOnFailure: true });
    const gate = stage.gate();
    const worker = stage.worker(
      async ({ data: { i } }: Job<{ i: number }>) => {
        if (i > 4) await gate.opened;
        if (i === 3) throw new Error('bad');
        return { i };
      },
      { concurrency: 9 },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.when('five to end', () => log.entries.length === 5, WAIT_MS);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 4, ignored: 1, unprocessed: 4 });
    expect((await parent.getDependencies()).unprocessed?.sort()).toEqual(keys(ids.slice(5)).sort());
    gate.open();
    await log.when('all to end', () => log.entries.length === 9, WAIT_MS);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 8, ignored: 1 });
    expect(await parent.getState()).toBe('waiting');
  });

  it.each([1, 100])('many children are paged, at a concurrency of %d', async (concurrency) => {
    const { parent, ids } = await family(700);
    const seen = new Set<string>();
    let [pages, cursor] = [0, 0];
    do {
      const found = await parent.getDependencies({ unprocessed: { cursor, count: 100 } });
      for (const child of found.unprocessed ?? []) seen.add(child);
      cursor = found.nextUnprocessedCursor ?? 0;
      pages++;
    } while (cursor !== 0);
    expect(seen).toEqual(new Set(keys(ids)));
    expect(pages).toBeGreaterThan(2);
    await end(700, undefined, concurrency);
    const values: Record<string, unknown> = {};
    [pages, cursor] = [0, 0];
    do {
      const found = await parent.getDependencies({ processed: { cursor, count: 100 } });
      Object.assign(values, found.processed);
      cursor = found.nextProcessedCursor ?? 0;
      pages++;
    } while (cursor !== 0);
    expect(values).toEqual(Object.fromEntries(ids.map((id, i) => [stage.childKey(id), { i }])));
    expect(pages).toBeGreaterThan(2);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 700 });
    expect(await parent.getState()).toBe('waiting');
  });

  it.each([
    ['failParentOnFailure', 'failed'],
    ['continueParentOnFailure', 'ignored'],
    ['ignoreDependencyOnFailure', 'ignored'],
    ['removeDependencyOnFailure', undefined],
    [undefined, 'unprocessed'],
  ] as const)('a child that fails with %s counts as %s', async (option, kind) => {
    const { parent, ids } = await family(3, option && { [option]: true });
    await end(3, (i) => i === 1);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 2, ...(kind && { [kind]: 1 }) });
    expect(await parent.getState()).toBe(option ? 'waiting' : 'waiting-children');
    if (kind === 'failed') expect((await parent.getDependencies()).failed).toEqual([stage.childKey(ids[1])]);
    expect(await (await fetchJob(stage.queue(), ids[1])).getState()).toBe('failed');
  });

  it('a failed child is tried again, and its parent starts', async () => {
    const { parent, ids } = await family(3, { attempts: 2 });
    await end(4, (i) => i === 1);
    expect(await parent.getChildrenValues()).toEqual(
      Object.fromEntries(ids.map((id, i) => [stage.childKey(id), { i }])),
    );
    expect(await parent.getState()).toBe('waiting');
  });

  it('a completed child that is retried is pending again', async () => {
    const { parent, ids } = await family(4);
    await end(3);
    await (await fetchJob(stage.queue(), ids[1])).retry('completed');
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 2, unprocessed: 2 });
    await end(2);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 4 });
    expect(await parent.getState()).toBe('waiting');
  });

  it('all completed children are retried at once', async () => {
    const { parent, ids } = await family(4, {}, '');
    const queue = stage.queue();
    await end(4);
    await queue.retryJobs({ state: 'completed' });
    expect((await parent.getDependencies()).unprocessed?.sort()).toEqual(keys(ids).sort());
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 0, failed: 0 });
  });

  it('a child that is removed is not waited for', async () => {
    const { parent, ids } = await family(3);
    const queue = stage.queue();
    await (await fetchJob(queue, ids[1])).remove();
    expect(await queue.getJob(ids[1])).toBeUndefined();
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 2 });
    await end(2);
    expect(await parent.getState()).toBe('waiting');
    expect(Object.keys(await parent.getChildrenValues()).sort()).toEqual(keys([ids[0], ids[2]]).sort());
  });

  it('the last pending child that is removed releases its parent', async () => {
    const { parent, ids } = await family(1);
    await stage.queue().remove(ids[0]);
    expect(await parent.getState()).toBe('waiting');
  });

  it('a child that is cut off lives on', async () => {
    const { parent, ids } = await family(2);
    const child = await fetchJob(stage.queue(), ids[0]);
    expect(await child.removeChildDependency()).toBe(true);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 1 });
    expect(await child.getState()).toBe('waiting');
    expect(await (await fetchJob(stage.queue(), ids[1])).removeChildDependency()).toBe(true);
    expect(await parent.getState()).toBe('waiting');
  });

  it('children go with their parent', async () => {
    const { parent, ids } = await family(5);
    await end(2);
    await parent.remove();
    const queue = stage.queue();
    expect(await Promise.all(ids.map((id) => queue.getJob(id)))).toEqual(ids.map(() => undefined));
    expect(await queue.getJobCountByTypes()).toBe(0);
  });

  it('unprocessed children are removed, the others stay', async () => {
    const { parent } = await family(5);
    await end(2);
    await parent.removeUnprocessedChildren();
    expect(await stage.queue().getJobCounts('waiting', 'completed')).toEqual({ waiting: 0, completed: 2 });
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 2 });
    expect(await parent.getState()).toBe('waiting');
  });

  it('a drained queue waits for nothing', async () => {
    const { parent } = await family(70);
    await end(1);
    await stage.queue().drain();
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 1 });
    expect(await parent.getState()).toBe('waiting');
  });

  it('cleaned completed children are told by their ids, and stay with their parent', async () => {
    const { parent, ids } = await family(3);
    await end(3);
    const queue = stage.queue();
    expect((await queue.clean(0, 0, 'completed')).sort()).toEqual([...ids].sort());
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 3 });
    expect(await queue.getJobCountByTypes()).toBe(0);
  });

  it('some waiting children are cleaned', async () => {
    const { parent, ids } = await family(4);
    const gone = await stage.queue().clean(0, 2, 'wait');
    expect(gone).toHaveLength(2);
    expect(ids).toEqual(expect.arrayContaining(gone));
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 2 });
  });

  it('an obliterated queue of children lets their parent go', async () => {
    const { parent } = await family(3);
    await stage.queue().obliterate();
    expect(await stage.queue().getJobCountByTypes()).toBe(0);
    expect(await parent.getDependenciesCount()).toEqual(NONE);
  });

  it('an id that is added again is the same job', async () => {
    const { parent, ids } = await family(3);
    const queue = stage.queue();
    const log = new EventLog(stage.events(), ['duplicated']);
    await queue.add('again', {}, { jobId: ids[0] });
    await queue.addBulk([{ name: 'again', data: {}, opts: { jobId: ids[1] } }]);
    await stage.flowProducer().add({ name: 'again', queueName: stage.name(), opts: { jobId: ids[2] } });
    await log.get('duplicated', 3, WAIT_MS);
    expect(await queue.getJobCountByTypes()).toBe(3);
    expect((await fetchJob(queue, ids[0])).name).toBe('child');
    await end(3);
    expect(await parent.getState()).toBe('waiting');
  });

  it('a child that becomes the child of its own parent again is waited for once', async () => {
    const { parent, ids } = await family(2);
    const opts = { jobId: ids[0], parent: { id: parent.id as string, queue: parent.queueQualifiedName } };
    await stage.queue().add('again', {}, opts);
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 2 });
    await end(2);
    expect(await parent.getState()).toBe('waiting');
    expect(await parent.getDependenciesCount()).toEqual({ ...NONE, processed: 2 });
  });

  it('what is changed about a waiting child is there when it starts', async () => {
    const { parent, ids } = await family(3);
    const child = await fetchJob(stage.queue(), ids[1]);
    await child.updateData({ i: 7 });
    await child.updateProgress(40);
    await child.log('row');
    await end(3);
    expect(await parent.getChildrenValues()).toMatchObject({ [stage.childKey(ids[1])]: { i: 7 } });
    expect(await stage.queue().getJobLogs(ids[1])).toMatchObject({ logs: ['row'] });
    expect((await fetchJob(stage.queue(), ids[1])).progress).toBe(40);
  });

  it('a child becomes urgent, or delayed', async () => {
    const { parent, ids } = await family(3);
    const queue = stage.queue();
    await (await fetchJob(queue, ids[0])).changePriority({ priority: 3 });
    expect(await queue.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 2, prioritized: 1 });
    await end(3);
    expect(await parent.getState()).toBe('waiting');
  });

  it('a parent waits for one of its children that it names', async () => {
    const { ids } = await family(2, {}, '');
    const queue = stage.queue();
    const worker = stage.worker(null);
    const first = await worker.getNextJob('t');
    expect(first?.id).toBe(ids[0]);
    await first?.moveToCompleted(1, 't', false);
    expect((await worker.getNextJob('t'))?.id).toBe(ids[1]);
    expect(await queue.getJobCounts('active', 'waiting-children', 'completed')).toEqual({
      active: 1,
      'waiting-children': 1,
      completed: 1,
    });
  });

  it('flows of several queues and levels end', async () => {
    const { job } = await stage.flowProducer().add({
      name: 'root',
      queueName: stage.name('top'),
      children: numbers(3).map((n) => ({
        name: 'mid',
        queueName: stage.name('mid'),
        children: numbers(4).map((i) => ({
          name: 'leaf',
          queueName: stage.name(i % 2 ? '' : 'other'),
          data: { i: 10 * n + i },
        })),
      })),
    });
    for (const part of ['', 'other', 'mid']) stage.worker(async () => part, { concurrency: 3 }, part);
    const log = new EventLog(
      stage.worker(async (root) => root.getChildrenValues(), {}, 'top'),
      ['completed'],
    );
    const [done, values] = await log.get<[Job, Record<string, unknown>]>('completed', 1, WAIT_MS);
    expect(done.id).toBe(job.id);
    expect(Object.values(values)).toEqual(['mid', 'mid', 'mid']);
  });
});
