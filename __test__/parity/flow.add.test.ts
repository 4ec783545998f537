// Pins FlowProducer#add: what comes back, what is stored, and the order of processing.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe.each(libraries)('$name: flow.add', ({ lib }) => {
  const stage = useStage(lib);

  it('gives back the tree, with ids and links', async () => {
    const flows = stage.flowProducer();
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name('top'),
      data: { of: 2 },
      children: [
        { name: 'first', queueName: stage.name(), data: { i: 1 } },
        { name: 'second', queueName: stage.name(), data: { i: 2 } },
      ],
    });
    expect(job.id).toMatch(UUID);
    expect([job.name, job.data, job.queueName]).toEqual(['parent', { of: 2 }, stage.name('top')]);
    expect(job.queueQualifiedName).toBe(`bull:${stage.name('top')}`);
    expect([job.parent, job.parentKey]).toEqual([undefined, undefined]);
    expect(children.map((child) => child.job.name)).toEqual(['first', 'second']);
    for (const child of children) {
      expect(child.children).toBeUndefined();
      expect(child.job.id).toMatch(UUID);
      expect(child.job.queueName).toBe(stage.name());
      expect(child.job.parentKey).toBe(`bull:${stage.name('top')}:${job.id}`);
      expect(child.job.parent).toEqual({ id: job.id, queueKey: `bull:${stage.name('top')}` });
    }
    expect(new Set([job.id, ...children.map((child) => child.job.id)]).size).toBe(3);
  });

  it('parks the parent and lets the children wait', async () => {
    const flows = stage.flowProducer();
    const [top, kids] = [stage.queue({}, 'top'), stage.queue()];
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name('top'),
      children: [{ name: 'child', queueName: stage.name() }],
    });
    expect(await job.getState()).toBe('waiting-children');
    expect(await job.isWaitingChildren()).toBe(true);
    expect(await job.isWaiting()).toBe(false);
    expect(await children[0].job.getState()).toBe('waiting');
    expect(await children[0].job.isWaitingChildren()).toBe(false);
    expect(await top.getJobCounts()).toMatchObject({ 'waiting-children': 1, waiting: 0 });
    expect(await kids.getJobCounts()).toMatchObject({ 'waiting-children': 0, waiting: 1 });
    expect(await top.getWaitingChildrenCount()).toBe(1);
    expect((await top.getWaitingChildren()).map(({ id, name }) => [id, name])).toEqual([[job.id, 'parent']]);
    expect(await top.getRanges(['waiting-children'])).toEqual([job.id]);
    expect(await top.count()).toBe(1);
    expect(await top.exportPrometheusMetrics()).toContain(
      `bullmq_job_count{queue="${stage.name('top')}", state="waiting-children"} 1`,
    );
  });

  it('stores the link with the child', async () => {
    const flows = stage.flowProducer();
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name('top'),
      children: [{ name: 'child', queueName: stage.name(), opts: { failParentOnFailure: true } }],
    });
    const child = await fetchJob(stage.queue(), children[0].job.id);
    expect(child.parentKey).toBe(stage.childKey(job.id, 'top'));
    expect(child.parent).toEqual({ id: job.id, queueKey: `bull:${stage.name('top')}`, fpof: true });
    expect(child.opts.parent).toEqual({ id: job.id, queue: `bull:${stage.name('top')}` });
    expect(child.opts.failParentOnFailure).toBe(true);
    expect(child.asJSON()).toMatchObject({ parentKey: child.parentKey, parent: child.parent });
    const parent = await fetchJob(stage.queue({}, 'top'), job.id);
    expect([parent.parent, parent.parentKey]).toEqual([undefined, undefined]);
  });

  it.each([
    ['removeDependencyOnFailure', 'rdof'],
    ['ignoreDependencyOnFailure', 'idof'],
    ['continueParentOnFailure', 'cpof'],
    ['failParentOnFailure', 'fpof'],
  ])('shows %s in the link as %s', async (option, flag) => {
    const flows = stage.flowProducer();
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      children: [{ name: 'child', queueName: stage.name(), opts: { [option]: true } }],
    });
    const link = { id: job.id, queueKey: `bull:${stage.name()}`, [flag]: true };
    expect(children[0].job.parent).toEqual(link);
    expect((await fetchJob(stage.queue(), children[0].job.id)).parent).toEqual(link);
  });

  it('runs the children, then the parent, which sees their values', async () => {
    const flows = stage.flowProducer();
    const order: string[] = [];
    stage.worker(async (job) => {
      order.push(job.name);
      return { i: job.data.i };
    });
    const log = new EventLog(
      stage.worker(
        async (job) => {
          order.push(job.name);
          return job.getChildrenValues();
        },
        {},
        'top',
      ),
      ['completed'],
    );
    const { children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name('top'),
      children: [0, 1, 2].map((i) => ({ name: `child${i}`, queueName: stage.name(), data: { i } })),
    });
    const [job, values] = await log.get<[{ name: string }, unknown]>('completed');
    expect(job.name).toBe('parent');
    expect(order).toEqual(['child0', 'child1', 'child2', 'parent']);
    expect(values).toEqual(Object.fromEntries(children.map((child, i) => [stage.childKey(child.job.id), { i }])));
  });

  it('runs a tree of three levels in one queue from the leaves up', async () => {
    const flows = stage.flowProducer();
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(job.name);
      const values = Object.values(await job.getChildrenValues<number>());
      return values.reduce((sum, value) => sum + value, 1);
    });
    const log = new EventLog(worker, ['completed']);
    const queueName = stage.name();
    const leaf = (name: string) => ({ name, queueName });
    const { job } = await flows.add({
      name: 'root',
      queueName,
      children: [
        { name: 'left', queueName, children: [leaf('a'), leaf('b')] },
        { name: 'right', queueName, children: [leaf('c')] },
        leaf('d'),
      ],
    });
    await log.get('completed', 7);
    expect(order).toHaveLength(7);
    expect(order[6]).toBe('root');
    for (const [before, after] of ['a left', 'b left', 'c right', 'd root', 'left root'].map((pair) =>
      pair.split(' '),
    )) {
      expect(order.indexOf(before), `${before} before ${after}`).toBeLessThan(order.indexOf(after));
    }
    expect((await fetchJob(stage.queue(), job.id)).returnvalue).toBe(7);
  });

  it.each([
    ['without children', undefined],
    ['with an empty list of children', []],
  ])('a node %s is a plain job', async (_, children) => {
    const flows = stage.flowProducer();
    const node = await flows.add({
      name: 'alone',
      queueName: stage.name(),
      data: 1,
      ...(children && { children }),
    });
    expect(node.children ?? []).toEqual([]);
    expect(await node.job.getState()).toBe('waiting');
    expect(await node.job.getDependencies()).toEqual({ processed: {}, unprocessed: [], ignored: {}, failed: [] });
    expect(await node.job.getChildrenValues()).toEqual({});
    expect(node.job.id).toMatch(UUID);
  });

  it('takes ids of the caller, at each level', async () => {
    const flows = stage.flowProducer();
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      opts: { jobId: 'p' },
      children: [{ name: 'child', queueName: stage.name(), opts: { jobId: 'c' } }],
    });
    expect([job.id, children[0].job.id]).toEqual(['p', 'c']);
    expect(await stage.queue().getJobState('p')).toBe('waiting-children');
    expect(await job.getDependencies()).toMatchObject({ unprocessed: [stage.childKey('c')] });
  });

  it('overwrites the parent option of a nested node', async () => {
    const flows = stage.flowProducer();
    const other = await stage.queue().add('other', {});
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      children: [
        { name: 'child', queueName: stage.name(), opts: { parent: { id: other.id, queue: other.queueQualifiedName } } },
      ],
    } as never);
    expect(children[0].job.parent?.id).toBe(job.id);
    expect(await other.getDependenciesCount()).toEqual({ processed: 0, unprocessed: 0, ignored: 0, failed: 0 });
  });

  it('hangs a tree under a job that is there', async () => {
    const flows = stage.flowProducer();
    const { job: root } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      children: [{ name: 'child', queueName: stage.name() }],
    });
    const { job: branch } = await flows.add({
      name: 'branch',
      queueName: stage.name('mid'),
      opts: { parent: { id: root.id as string, queue: root.queueQualifiedName } },
      children: [{ name: 'leaf', queueName: stage.name() }],
    });
    expect(branch.parentKey).toBe(stage.childKey(root.id, 'top'));
    expect(branch.parent).toEqual({ id: root.id, queueKey: root.queueQualifiedName });
    const { unprocessed = [] } = await root.getDependencies();
    expect(unprocessed).toHaveLength(2);
    expect(unprocessed).toContain(stage.childKey(branch.id, 'mid'));
  });

  it('hangs a leaf under a job that is there', async () => {
    const flows = stage.flowProducer();
    const parent = await stage.queue({}, 'top').add('parent', {});
    const { job } = await flows.add({
      name: 'leaf',
      queueName: stage.name(),
      opts: { parent: { id: parent.id as string, queue: parent.queueQualifiedName } },
    });
    expect(await parent.getDependencies()).toMatchObject({ unprocessed: [stage.childKey(job.id)] });
    expect(await parent.getState()).toBe('waiting');
  });

  it('shows the options it was given, and no others', () => {
    expect(Object.keys(stage.flowProducer().opts)).toEqual(['connection']);
    expect(stage.flowProducer({ prefix: 'mine' }).opts).toMatchObject({ prefix: 'mine' });
  });

  it.each(['', null])('takes a prefix of %j for none', async (none) => {
    const prefix = none as string;
    const flows = stage.flowProducer({ prefix: 'mine' });
    const queueName = stage.name();
    const { job } = await flows.add({ name: 'p', queueName, prefix, children: [{ name: 'c', queueName, prefix }] });
    expect([job.prefix, job.queueQualifiedName]).toEqual(['mine', `mine:${queueName}`]);
    const found = await flows.getFlow({ id: job.id as string, queueName });
    expect(found.children?.map((child) => child.job.name)).toEqual(['c']);
    const queue = stage.queue({ prefix: 'mine' });
    expect(await queue.getJobCounts('waiting', 'waiting-children')).toEqual({ waiting: 1, 'waiting-children': 1 });
    await queue.obliterate({ force: true });
  });

  it('takes a prefix that is a number', async () => {
    const node = { name: 'p', queueName: stage.name(), prefix: 7 as unknown as string };
    const { job } = await stage.flowProducer().add(node);
    expect(job.queueQualifiedName).toBe(`7:${stage.name()}`);
  });

  it('keeps prefixes apart, each node its own', async () => {
    const flows = stage.flowProducer({ prefix: 'mine' });
    const prefix = `other-${stage.queueName}`;
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      children: [
        { name: 'same', queueName: stage.name() },
        { name: 'other', queueName: stage.name(), prefix },
      ],
    });
    expect(job.queueQualifiedName).toBe(`mine:${stage.name()}`);
    expect(job.prefix).toBe('mine');
    expect(children.map((child) => child.job.queueQualifiedName)).toEqual([
      `mine:${stage.name()}`,
      `${prefix}:${stage.name()}`,
    ]);
    const { unprocessed = [] } = await job.getDependencies();
    expect([...unprocessed].sort()).toEqual(
      [stage.childKey(children[0].job.id, '', 'mine'), stage.childKey(children[1].job.id, '', prefix)].sort(),
    );
    expect(await stage.queue({ prefix }).getWaitingCount()).toBe(1);
    expect(await stage.queue({ prefix: 'mine' }).getWaitingCount()).toBe(1);
    expect(await stage.queue().getJobCounts('waiting', 'waiting-children')).toEqual({
      waiting: 0,
      'waiting-children': 0,
    });
  });

  it('runs a flow over two prefixes', async () => {
    const flows = stage.flowProducer();
    const prefix = `other-${stage.queueName}`;
    stage.worker(async () => 'from afar', { prefix });
    const log = new EventLog(
      stage.worker(async (job) => Object.values(await job.getChildrenValues())),
      ['completed'],
    );
    await flows.add({
      name: 'parent',
      queueName: stage.name(),
      children: [{ name: 'child', queueName: stage.name(), prefix }],
    });
    expect((await log.get('completed'))[1]).toEqual(['from afar']);
  });

  it('gives jobs that can be used as any other', async () => {
    const flows = stage.flowProducer();
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      data: { old: true },
      children: [{ name: 'child', queueName: stage.name() }],
    });
    await job.updateData({ new: true });
    await job.updateProgress(7);
    await job.log('row');
    await children[0].job.updateProgress({ half: true });
    const stored = await fetchJob(stage.queue(), job.id);
    expect([stored.data, stored.progress]).toEqual([{ new: true }, 7]);
    expect((await stage.queue().getJobLogs(job.id as string)).logs).toEqual(['row']);
    expect((await fetchJob(stage.queue(), children[0].job.id)).progress).toEqual({ half: true });
    expect(await job.getState()).toBe('waiting-children');
  });

  it('keeps values of children that are removed when they complete', async () => {
    const flows = stage.flowProducer();
    const queue = stage.queue();
    const values: unknown[] = [undefined, null, 0, '', 'text', [1, { a: 'b' }], { deep: { er: [null] } }];
    stage.worker(async (job) => values[job.data.i]);
    const log = new EventLog(
      stage.worker(async (job) => job.getChildrenValues(), {}, 'top'),
      ['completed'],
    );
    const { job, children = [] } = await flows.add({
      name: 'parent',
      queueName: stage.name('top'),
      children: values.map((_, i) => ({
        name: 'child',
        queueName: stage.name(),
        data: { i },
        opts: { removeOnComplete: true },
      })),
    });
    const seen = (await log.get('completed'))[1] as Record<string, unknown>;
    expect(children.map((child) => seen[stage.childKey(child.job.id)])).toEqual([null, ...values.slice(1)]);
    expect(await job.getChildrenValues()).toEqual(seen);
    expect(await queue.getJobCountByTypes()).toBe(0);
  });

  it('a parent with a job option of its own keeps it', async () => {
    const flows = stage.flowProducer();
    const { job } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      opts: { attempts: 3, backoff: 7, removeOnComplete: { count: 5 }, keepLogs: 3 },
      children: [{ name: 'child', queueName: stage.name() }],
    });
    const { opts } = await fetchJob(stage.queue(), job.id);
    expect(opts).toMatchObject({
      attempts: 3,
      backoff: { type: 'fixed', delay: 7 },
      removeOnComplete: { count: 5 },
      keepLogs: 3,
    });
    expect(job.opts).toMatchObject({ attempts: 3, backoff: { type: 'fixed', delay: 7 } });
  });

  it('data that is left out is an empty object', async () => {
    const flows = stage.flowProducer();
    const { job } = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      children: [{ name: 'child', queueName: stage.name() }],
    });
    expect((await fetchJob(stage.queue(), job.id)).data).toEqual({});
  });

  describe('with an id that is taken', () => {
    it('counts a completed child as processed, and releases the parent', async () => {
      const flows = stage.flowProducer();
      const queue = stage.queue();
      const worker = stage.worker(async () => 'kept');
      const log = new EventLog(worker, ['completed']);
      await queue.add('child', {}, { jobId: 'c' });
      await log.get('completed');
      const { job } = await flows.add({
        name: 'parent',
        queueName: stage.name('top'),
        children: [{ name: 'child', queueName: stage.name(), opts: { jobId: 'c' } }],
      });
      expect(await job.getState()).toBe('waiting');
      expect(await job.getChildrenValues()).toEqual({ [stage.childKey('c')]: 'kept' });
      expect(await job.getDependenciesCount()).toEqual({ processed: 1, unprocessed: 0, ignored: 0, failed: 0 });
    });

    it('waits for the other children', async () => {
      const flows = stage.flowProducer();
      const queue = stage.queue();
      const worker = stage.worker(async () => 'kept');
      const log = new EventLog(worker, ['completed']);
      await queue.add('child', {}, { jobId: 'c' });
      await log.get('completed');
      await worker.close();
      const { job } = await flows.add({
        name: 'parent',
        queueName: stage.name('top'),
        children: ['c', 'd'].map((jobId) => ({ name: 'child', queueName: stage.name(), opts: { jobId } })),
      });
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependencies()).toMatchObject({
        processed: { [stage.childKey('c')]: 'kept' },
        unprocessed: [stage.childKey('d')],
      });
    });

    it('a job that waits becomes the parent’s, with its data and name as they were', async () => {
      const flows = stage.flowProducer();
      const queue = stage.queue();
      await queue.add('old', { old: true }, { jobId: 'c' });
      const { job, children = [] } = await flows.add({
        name: 'parent',
        queueName: stage.name('top'),
        children: [{ name: 'new', queueName: stage.name(), data: { old: false }, opts: { jobId: 'c' } }],
      });
      expect(children[0].job.id).toBe('c');
      const child = await fetchJob(queue, 'c');
      expect([child.name, child.data]).toEqual(['old', { old: true }]);
      expect(child.parentKey).toBe(stage.childKey(job.id, 'top'));
      expect(await job.getDependencies()).toMatchObject({ unprocessed: [stage.childKey('c')] });
      stage.worker(async () => 5);
      const top = new EventLog(
        stage.worker(async (parent) => parent.getChildrenValues(), {}, 'top'),
        ['completed'],
      );
      expect((await top.get('completed'))[1]).toEqual({ [stage.childKey('c')]: 5 });
    });

    it('a child whose parent lives stays with it', async () => {
      const flows = stage.flowProducer();
      const add = (name: string) =>
        flows.add({
          name,
          queueName: stage.name('top'),
          children: [{ name: 'child', queueName: stage.name(), opts: { jobId: 'c' } }],
        });
      const first = await add('first');
      const second = await add('second');
      expect((await fetchJob(stage.queue(), 'c')).parentKey).toBe(stage.childKey(first.job.id, 'top'));
      expect(await first.job.getDependenciesCount()).toMatchObject({ unprocessed: 1 });
      expect(await second.job.getDependenciesCount()).toMatchObject({ unprocessed: 0 });
    });

    it('a child whose parent is gone is given the new one', async () => {
      const flows = stage.flowProducer();
      const add = (name: string) =>
        flows.add({
          name,
          queueName: stage.name('top'),
          children: [{ name: 'child', queueName: stage.name(), opts: { jobId: 'c' } }],
        });
      const first = await add('first');
      await first.job.remove({ removeChildren: false });
      const second = await add('second');
      expect((await fetchJob(stage.queue(), 'c')).parentKey).toBe(stage.childKey(second.job.id, 'top'));
      expect(await second.job.getDependenciesCount()).toMatchObject({ unprocessed: 1 });
    });

    it('the same flow again changes nothing', async () => {
      const flows = stage.flowProducer();
      const add = () =>
        flows.add({
          name: 'parent',
          queueName: stage.name(),
          opts: { jobId: 'p' },
          children: [{ name: 'child', queueName: stage.name(), opts: { jobId: 'c' } }],
        });
      await add();
      const { job, children = [] } = await add();
      expect([job.id, children[0].job.id]).toEqual(['p', 'c']);
      expect(await stage.queue().getJobCounts('waiting', 'waiting-children')).toEqual({
        waiting: 1,
        'waiting-children': 1,
      });
      expect(await job.getDependencies()).toEqual({
        processed: {},
        unprocessed: [stage.childKey('c')],
        ignored: {},
        failed: [],
      });
    });
  });
});
