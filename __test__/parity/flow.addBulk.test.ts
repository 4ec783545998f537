// Pins FlowProducer#addBulk.
import { describe, expect, it } from 'vitest';
import type { FlowJob, Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: flow.addBulk', ({ lib }) => {
  const stage = useStage(lib);

  const flow = (i: number, children = 2): FlowJob => ({
    name: `parent${i}`,
    queueName: stage.name('top'),
    data: { i },
    children: Array.from({ length: children }, (_, c) => ({
      name: `child${i}.${c}`,
      queueName: stage.name(),
      data: { i, c },
    })),
  });

  it('adds all of them, and gives their trees in their order', async () => {
    const nodes = await stage.flowProducer().addBulk([flow(0), flow(1, 3), { name: 'alone', queueName: stage.name() }]);
    expect(nodes.map(({ job, children }) => [job.name, children?.map((child) => child.job.name)])).toEqual([
      ['parent0', ['child0.0', 'child0.1']],
      ['parent1', ['child1.0', 'child1.1', 'child1.2']],
      ['alone', undefined],
    ]);
    expect(await stage.queue({}, 'top').getWaitingChildrenCount()).toBe(2);
    expect(await stage.queue().getWaitingCount()).toBe(6);
    const ids = nodes.flatMap(({ job, children = [] }) => [job.id, ...children.map((child) => child.job.id)]);
    expect(new Set(ids).size).toBe(8);
    expect(await nodes[1].job.getDependenciesCount()).toMatchObject({ unprocessed: 3 });
    expect(nodes[1].children?.[0].job.parentKey).toBe(stage.childKey(nodes[1].job.id, 'top'));
  });

  it('of nothing adds nothing', async () => {
    expect(await stage.flowProducer().addBulk([])).toEqual([]);
  });

  it('runs each flow by itself', async () => {
    stage.worker(async (job) => job.data.i * 100 + job.data.c, { concurrency: 7 });
    const top = new EventLog(
      stage.worker(
        async (job) => Object.values(await job.getChildrenValues<number>()).sort((a, b) => a - b),
        {},
        'top',
      ),
      ['completed'],
    );
    await stage.flowProducer().addBulk(Array.from({ length: 20 }, (_, i) => flow(i, 3)));
    await top.get('completed', 20);
    const values = top.all<[Job, number[]]>('completed').map(([job, found]) => [job.data.i as number, found] as const);
    expect(values.sort(([a], [b]) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, i) => [i, [i * 100, i * 100 + 1, i * 100 + 2]]),
    );
  });

  it('adds hundreds of jobs in one call, in one queue', async () => {
    const queueName = stage.name();
    let done = 0;
    const worker = stage.worker(
      async () => {
        done++;
      },
      { concurrency: 50 },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await stage.flowProducer().addBulk(
      Array.from({ length: 60 }, (_, i) => ({
        name: `parent${i}`,
        queueName,
        children: Array.from({ length: 10 }, (_, c) => ({ name: `child${c}`, queueName })),
      })),
    );
    await log.get('completed', 660);
    expect(done).toBe(660);
    const names = log.all<[Job]>('completed').map(([job]) => job.name);
    expect(names.filter((name) => name.startsWith('parent'))).toHaveLength(60);
    expect(await stage.queue().getJobCounts('waiting', 'waiting-children', 'completed')).toEqual({
      waiting: 0,
      'waiting-children': 0,
      completed: 660,
    });
  });

  it('adds none of them when one is refused', async () => {
    const bad: FlowJob = { ...flow(1), opts: { jobId: '12' } };
    expect((await rejection(stage.flowProducer().addBulk([flow(0), bad]))).message).toBe(
      'Custom Id cannot be integers',
    );
    expect(await stage.queue({}, 'top').getJobCountByTypes()).toBe(0);
    expect(await stage.queue().getJobCountByTypes()).toBe(0);
  });

  it('does not say that a root’s parent is missing', async () => {
    const parent = { id: 'nobody', queue: `bull:${stage.name('x')}` };
    const [orphan, other] = await stage
      .flowProducer()
      .addBulk([{ name: 'leaf', queueName: stage.name(), opts: { parent } }, flow(1)]);
    expect(orphan.job.name).toBe('leaf');
    expect(await other.job.getState()).toBe('waiting-children');
    expect(await stage.queue().getWaitingCount()).toBe(2);
  });

  it('two flows may share a child that has no parent left', async () => {
    const child = { name: 'child', queueName: stage.name(), opts: { jobId: 'c' } };
    const [first, second] = await stage
      .flowProducer()
      .addBulk(['a', 'b'].map((name) => ({ name, queueName: stage.name('top'), children: [child] })));
    expect(await first.job.getDependenciesCount()).toMatchObject({ unprocessed: 1 });
    expect(await second.job.getDependenciesCount()).toMatchObject({ unprocessed: 0 });
  });
});
