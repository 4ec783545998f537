// Pins FlowProducer#getFlow.
import { describe, expect, it } from 'vitest';
import type { FlowJob, Job, JobNode, NodeOpts } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

interface Shape {
  name: string;
  children?: (Shape | undefined)[];
}

/** Names of a tree; children in the order of their names, for that of a set is nobody's. */
function shapeOf({ job, children }: JobNode): Shape {
  const shapes = children?.map((child) => (child ? shapeOf(child) : undefined));
  return {
    name: job.name,
    ...(shapes && { children: shapes.sort((a, b) => (a?.name ?? '').localeCompare(b?.name ?? '')) }),
  };
}

describe.each(libraries)('$name: flow.getFlow', ({ lib }) => {
  const stage = useStage(lib);

  const leaf = (name: string, opts = {}) => ({ name, queueName: stage.name(), opts: { jobId: name, ...opts } });

  function tower(depth: number): FlowJob {
    const node = (level: number): FlowJob => ({
      ...leaf(`level${level}`),
      ...(level < depth && { children: [node(level + 1)] }),
    });
    return node(1);
  }

  it('gives the tree with all its jobs', async () => {
    const flows = stage.flowProducer();
    const { job } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      data: { root: true },
      children: [{ ...leaf('a'), data: { a: 1 }, children: [leaf('aa'), leaf('ab')] }, leaf('b')],
    });
    const tree = await flows.getFlow({ queueName: stage.name('top'), id: job.id as string });
    expect(shapeOf(tree)).toEqual({
      name: 'root',
      children: [{ name: 'a', children: [{ name: 'aa' }, { name: 'ab' }] }, { name: 'b' }],
    });
    expect(tree.job).toBeInstanceOf(lib.Job);
    expect([tree.job.id, tree.job.data, tree.job.queueName]).toEqual([job.id, { root: true }, stage.name('top')]);
    const a = tree.children?.find((child) => child.job.name === 'a') as JobNode;
    expect(a.job.data).toEqual({ a: 1 });
    expect(a.job.queueName).toBe(stage.name());
    expect(a.job.queueQualifiedName).toBe(`bull:${stage.name()}`);
    expect(a.job.parentKey).toBe(stage.childKey(job.id, 'top'));
    expect(await a.job.getState()).toBe('waiting-children');
  });

  it.each([65, 100, 200, 512])('gives %i children that have completed', async (count) => {
    const flows = stage.flowProducer();
    const names = Array.from({ length: count }, (_, i) => `c${i}`);
    const { job } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      children: names.map((name) => ({ name, queueName: stage.name(), opts: { jobId: name } })),
    });
    await new EventLog(
      stage.worker(async () => 1, { concurrency: 100 }),
      ['completed'],
    ).get('completed', count);
    const tree = await flows.getFlow({ queueName: stage.name('top'), id: job.id as string });
    expect(new Set(tree.children?.map((child) => child.job.name))).toEqual(new Set(names));
    const { processed, nextProcessedCursor } = await job.getDependencies({ processed: { count: 10 } });
    expect([Object.keys(processed ?? {}).length, nextProcessedCursor]).toEqual([count, 0]);
  });

  it('of a leaf gives the job alone', async () => {
    const flows = stage.flowProducer();
    await stage.queue().add('alone', {}, { jobId: 'x' });
    const tree = await flows.getFlow({ queueName: stage.name(), id: 'x' });
    expect(tree.job.name).toBe('alone');
    expect(tree.children).toBeUndefined();
  });

  it('of a job that is not there gives nothing', async () => {
    const flows = stage.flowProducer();
    expect(await flows.getFlow({ queueName: stage.name(), id: 'nobody' })).toBeUndefined();
    for (const nothing of [{}, { queueName: 7, id: 7 }, { queueName: null, id: null, prefix: 7 }]) {
      expect(await flows.getFlow(nothing as unknown as NodeOpts)).toBeUndefined();
    }
  });

  it('reads from any level', async () => {
    const flows = stage.flowProducer();
    await flows.add(tower(4));
    const tree = await flows.getFlow({ queueName: stage.name(), id: 'level3' });
    expect(shapeOf(tree)).toEqual({ name: 'level3', children: [{ name: 'level4' }] });
  });

  it.each([
    [1, { name: 'level1' }],
    [2, { name: 'level1', children: [{ name: 'level2' }] }],
    [3, { name: 'level1', children: [{ name: 'level2', children: [{ name: 'level3' }] }] }],
  ])('goes down %i levels when told to', async (depth, shape) => {
    const flows = stage.flowProducer();
    await flows.add(tower(4));
    expect(shapeOf(await flows.getFlow({ queueName: stage.name(), id: 'level1', depth }))).toEqual(shape);
  });

  it.each([
    [0, 12],
    [-3, 12],
    [2.5, 12],
    [Infinity, 12],
    [null, 12],
    [undefined, 1],
    [NaN, 1],
    ['x', 1],
    ['2', 2],
  ])('of a depth of %s gives %i levels', async (depth, levels) => {
    const flows = stage.flowProducer();
    await flows.add(tower(12));
    const tree = await flows.getFlow({ queueName: stage.name(), id: 'level1', depth: depth as number });
    expect(JSON.stringify(shapeOf(tree)).match(/level/g)).toHaveLength(levels);
  });

  it('goes down 10 levels of itself', async () => {
    const flows = stage.flowProducer();
    await flows.add(tower(12));
    let levels = 1;
    let node = await flows.getFlow({ queueName: stage.name(), id: 'level1' });
    while (node.children) {
      node = node.children[0];
      levels++;
    }
    expect(levels).toBe(10);
  });

  it('gives children of each kind: processed, pending, failed, ignored', async () => {
    const flows = stage.flowProducer();
    const worker = stage.worker(async (job) => {
      if (job.name.startsWith('bad')) throw new Error('bad');
      return 1;
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    const { job } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      children: [
        leaf('good'),
        leaf('later', { delay: 60_000 }),
        leaf('bad1', { failParentOnFailure: true }),
        leaf('bad2', { ignoreDependencyOnFailure: true }),
      ],
    });
    await log.when('three to end', () => log.entries.length === 3);
    const tree = await flows.getFlow({ queueName: stage.name('top'), id: job.id as string });
    expect(tree.children?.map((child) => child.job.name)).toEqual(['good', 'later', 'bad1', 'bad2']);
    expect(tree.children?.[0].job.returnvalue).toBe(1);
    expect(tree.children?.[3].job.failedReason).toBe('bad');
  });

  it('shows children that are gone as undefined', async () => {
    const flows = stage.flowProducer();
    const log = new EventLog(
      stage.worker(async () => 1),
      ['completed'],
    );
    const { job } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      children: [leaf('gone', { removeOnComplete: true }), leaf('later', { delay: 60_000 })],
    });
    await log.get('completed');
    const tree = await flows.getFlow({ queueName: stage.name('top'), id: job.id as string });
    expect(tree.children?.map((child: JobNode | undefined) => child?.job.name)).toEqual([undefined, 'later']);
  });

  it('gives at most maxChildren of a kind that is large', async () => {
    const flows = stage.flowProducer();
    const { job } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      children: Array.from({ length: 700 }, (_, i) => leaf(`c${i}`)),
    });
    const read = async (maxChildren?: number) =>
      (await flows.getFlow({ queueName: stage.name('top'), id: job.id as string, maxChildren })).children?.length ?? 0;
    // a page of a scan may be a little longer, or shorter, than was asked for
    expect(await read()).toBeLessThan(60);
    expect(await read()).toBeGreaterThan(0);
    expect(await read(5)).toBeLessThan(20);
    expect(await read(2_000)).toBe(700);
    expect(await read('2000' as unknown as number)).toBe(700);
    expect(await read(null as unknown as number)).toBeLessThan(60);
    for (const none of [0, -1, 1.5, NaN, 'x' as unknown as number]) await rejection(read(none));
  });

  it('finds children in queues with other prefixes', async () => {
    const prefix = `other-${stage.queueName}`;
    const flows = stage.flowProducer();
    const { job } = await flows.add({
      name: 'root',
      queueName: stage.name('top'),
      prefix,
      children: [
        { ...leaf('a'), prefix },
        { ...leaf('b'), prefix: 'bull' },
      ],
    });
    const tree = await flows.getFlow({ queueName: stage.name('top'), id: job.id as string, prefix });
    expect(shapeOf(tree)).toEqual({ name: 'root', children: [{ name: 'a' }, { name: 'b' }] });
    expect(tree.children?.map((child) => child.job.queueQualifiedName).sort()).toEqual(
      [`bull:${stage.name()}`, `${prefix}:${stage.name()}`].sort(),
    );
    expect(await flows.getFlow({ queueName: stage.name('top'), id: job.id as string })).toBeUndefined();
  });

  it('looks under the prefix of the producer', async () => {
    const prefix = `other-${stage.queueName}`;
    const flows = stage.flowProducer({ prefix });
    const { job } = await flows.add({ name: 'root', queueName: stage.name(), children: [leaf('a')] });
    expect(shapeOf(await flows.getFlow({ queueName: stage.name(), id: job.id as string }))).toEqual({
      name: 'root',
      children: [{ name: 'a' }],
    });
    expect(await stage.flowProducer().getFlow({ queueName: stage.name(), id: job.id as string })).toBeUndefined();
  });

  it('gives jobs that can be used', async () => {
    const flows = stage.flowProducer();
    const { job } = await flows.add({ name: 'root', queueName: stage.name('top'), children: [leaf('a')] });
    const tree = await flows.getFlow({ queueName: stage.name('top'), id: job.id as string });
    const child = tree.children?.[0].job as Job;
    await child.updateData({ changed: true });
    expect((await stage.queue().getJob('a'))?.data).toEqual({ changed: true });
    expect(await child.getState()).toBe('waiting');
  });
});
