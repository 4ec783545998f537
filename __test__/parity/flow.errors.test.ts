// Pins what FlowProducer refuses, and that nothing is added then.
import { describe, expect, it } from 'vitest';
import type { FlowJob, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { closedPort } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

describe.each(libraries)('$name: flow.errors', ({ lib }) => {
  const stage = useStage(lib);

  function flow(parent: JobsOptions, child: JobsOptions = {}): FlowJob {
    return {
      name: 'parent',
      queueName: stage.name('top'),
      opts: parent,
      children: [{ name: 'child', queueName: stage.name(), opts: child }],
    };
  }

  async function nothingIsThere(): Promise<void> {
    expect(await stage.queue({}, 'top').getJobCountByTypes()).toBe(0);
    expect(await stage.queue().getJobCountByTypes()).toBe(0);
  }

  const REFUSED: [string, JobsOptions, string][] = [
    [
      'two failure options',
      { failParentOnFailure: true, removeDependencyOnFailure: true },
      'The following options cannot be used together: removeDependencyOnFailure, failParentOnFailure',
    ],
    [
      'all failure options',
      {
        ignoreDependencyOnFailure: true,
        continueParentOnFailure: true,
        failParentOnFailure: true,
        removeDependencyOnFailure: true,
      },
      'The following options cannot be used together: removeDependencyOnFailure, failParentOnFailure, continueParentOnFailure, ignoreDependencyOnFailure',
    ],
    ['an id that is a number', { jobId: '12' }, 'Custom Id cannot be integers'],
    ['an id with a colon', { jobId: 'a:b' }, 'Custom Id cannot contain :'],
    ['a priority that is too high', { priority: 2_097_153 }, 'Priority should be between 0 and 2097152'],
    ['a priority that is no whole number', { priority: 1.5 }, 'Priority should not be float'],
    ['a jitter out of range', { backoff: { type: 'fixed', delay: 1, jitter: 2 } }, 'Jitter should be between 0 and 1'],
    [
      'debounce',
      { debounce: { id: 'x' } } as JobsOptions,
      'Debounce option has been removed. Use deduplication option instead',
    ],
    ['data above the limit', { sizeLimit: 1 }, 'exceeds the limit 1 bytes'],
  ];

  it.each(REFUSED)('refuses a parent with %s', async (_, opts, text) => {
    const message = (await rejection(stage.flowProducer().add(flow(opts)))).message;
    expect(message.replace('2097151', '2097152')).toContain(text);
    await nothingIsThere();
  });

  it.each(REFUSED)('refuses a child with %s', async (_, opts, text) => {
    const message = (await rejection(stage.flowProducer().add(flow({}, opts)))).message;
    expect(message.replace('2097151', '2097152')).toContain(text);
    await nothingIsThere();
  });

  it('names the job whose data is too large', async () => {
    const error = await rejection(stage.flowProducer().add(flow({}, { sizeLimit: 1 })));
    expect(error.message).toBe('The size of job child exceeds the limit 1 bytes');
  });

  it('refuses a root whose parent is not there, and adds none of the flow’s jobs', async () => {
    const parent = { id: 'nobody', queue: `bull:${stage.name('x')}` };
    const error = await rejection(
      stage.flowProducer().add({ name: 'leaf', queueName: stage.name(), opts: { parent } }),
    );
    expect([error.message, error.code]).toEqual([
      `Missing key for parent job bull:${stage.name('x')}:nobody. addJob`,
      -5,
    ]);
    await nothingIsThere();
  });

  it.each([
    [{ id: '1' }, 'undefined:1'],
    [{ queue: 'bull:q' }, 'bull:q:undefined'],
    [1, 'undefined:undefined'],
    ['text', 'undefined:undefined'],
    [true, 'undefined:undefined'],
  ])('refuses a parent that is told by half, or is none: %j', async (parent, key) => {
    const opts = { parent: parent as { id: string; queue: string } };
    const leaf = { name: 'leaf', queueName: stage.name(), opts };
    const errors = [stage.queue().add('leaf', {}, opts), stage.flowProducer().add(leaf)].map(rejection);
    for (const error of await Promise.all(errors)) {
      expect([error.message, error.code]).toEqual([`Missing key for parent job ${key}. addJob`, -5]);
    }
    await nothingIsThere();
  });

  it('a number is not the place of a job in a bulk, and null is no parent', async () => {
    const queue = stage.queue();
    const parent = { id: (await queue.add('top', {})).id ?? '', queue: queue.qualifiedName };
    const opts = (parent: unknown) => ({ parent: parent as { id: string; queue: string } });
    await queue
      .addBulk([
        { name: 'first', data: {} },
        { name: 'second', data: {}, opts: opts(0) },
        { name: 'third', data: {}, opts: opts(null) },
        { name: 'child', data: {}, opts: opts(parent) },
        { name: 'none', data: {}, opts: opts(1) },
      ])
      .catch((error: Error) => error);
    const jobs = await queue.getJobs();
    expect(jobs.map((job) => [job.name, job.parentKey]).sort()).toEqual([
      ['child', `${parent.queue}:${parent.id}`],
      ['first', undefined],
      ['second', undefined],
      ['third', undefined],
      ['top', undefined],
    ]);
  });

  it('refuses a root that another parent has', async () => {
    const [first, second] = await stage.queue({}, 'top').addBulk([1, 2].map(() => ({ name: 'parent', data: {} })));
    const flows = stage.flowProducer();
    const hang = (id: string | undefined) =>
      flows.add({
        name: 'leaf',
        queueName: stage.name(),
        opts: { jobId: 'c', parent: { id: id as string, queue: `bull:${stage.name('top')}` } },
      });
    await hang(first.id);
    const error = await rejection(hang(second.id));
    expect([error.message, error.code]).toEqual([
      `The parent job ${stage.childKey(second.id, 'top')} cannot be replaced. addJob`,
      -7,
    ]);
  });

  it('a parent does not run without a child that another parent has', async () => {
    const flows = stage.flowProducer();
    const node = (jobId: string, children?: FlowJob[]): FlowJob => ({
      name: jobId,
      queueName: stage.name(children ? 'top' : undefined),
      opts: { jobId },
      children,
    });
    const queueEvents = stage.events();
    await queueEvents.waitUntilReady();
    const events = new EventLog(queueEvents, ['added', 'duplicated', 'completed']);
    await flows.add(node('first', [node('x')]));
    await flows.add(node('alone', [node('x')]));
    await flows.add(node('second', [node('x'), node('y')]));
    const top = stage.queue({}, 'top');
    const states = () => Promise.all(['first', 'alone', 'second'].map((id) => top.getJobState(id)));
    expect(await states()).toEqual(['waiting-children', 'waiting-children', 'waiting-children']);

    stage.worker(async () => undefined);
    await events.get('completed', 2);
    await until('the parents to start', async () => (await states())[2] === 'waiting');
    expect(await states()).toEqual(['waiting', 'waiting-children', 'waiting']);
    expect(events.names.filter((name) => name !== 'completed')).toEqual(['added', 'added']);
    expect(await fetchJob(top, 'alone').then((job) => job.getDependenciesCount())).toMatchObject({ unprocessed: 0 });
  });

  it.each([
    ['the root', 'leaf', 'top', 'leaf'],
    ['the parents', 'top', 'leaf', 'leaf'],
    ['both', 'leaf', 'leaf', 'leaf'],
    ['neither', 'root', 'top', 'leaf'],
    ['neither, which lie together', 'top', 'top', 'leaf'],
  ])('a child of two parents of one flow stays with the first: beside %s', async (_, root, parents, leaves) => {
    const node = (jobId: string, queue: string, children?: FlowJob[]): FlowJob => ({
      name: jobId,
      queueName: stage.name(queue),
      opts: { jobId },
      children,
    });
    const tops = ['a', 'b'].map((id) => node(id, parents, [node('twice', leaves), node(`only-${id}`, leaves)]));
    await stage.flowProducer().add(node('root', root, tops));
    const twice = await fetchJob(stage.queue({}, leaves), 'twice');
    expect(twice.parentKey).toBe(stage.childKey('a', parents));
    const pending = ['a', 'b'].map(async (id) => {
      const job = await fetchJob(stage.queue({}, parents), id);
      return (await job.getDependencies()).unprocessed?.sort();
    });
    expect(await Promise.all(pending)).toEqual([
      [stage.childKey('only-a', leaves), stage.childKey('twice', leaves)],
      [stage.childKey('only-b', leaves)],
    ]);
  });

  it('refuses keepLastIfActive below a parent', async () => {
    const parent = await stage.queue({}, 'top').add('parent', {});
    const error = await rejection(
      stage.flowProducer().add({
        name: 'leaf',
        queueName: stage.name(),
        opts: {
          deduplication: { id: 'x', keepLastIfActive: true },
          parent: { id: parent.id as string, queue: parent.queueQualifiedName },
        },
      }),
    );
    expect(error.message).toBe('keepLastIfActive deduplication cannot be used on flow nodes with a parent');
  });

  it('refuses deduplication below a parent', async () => {
    const parent = await stage.queue({}, 'top').add('parent', {});
    const error = await rejection(
      stage.flowProducer().add({
        name: 'leaf',
        queueName: stage.name(),
        opts: { deduplication: { id: 'x' }, parent: { id: parent.id as string, queue: parent.queueQualifiedName } },
      }),
    );
    expect(error.message).toBe('Deduplication and parent options cannot be used together');
  });

  it.each([undefined, null])('rejects a queueName of %s, of a child as well', async (queueName) => {
    const nowhere = { name: 'child', queueName: queueName as unknown as string };
    const flows = stage.flowProducer();
    expect(await rejection(flows.add(nowhere))).toBeInstanceOf(TypeError);
    const parent = { name: 'parent', queueName: stage.name('top'), children: [nowhere] };
    expect(await rejection(flows.addBulk([parent]))).toBeInstanceOf(TypeError);
    await nothingIsThere();
  });

  it('rejects data that has no JSON form, and adds nothing', async () => {
    const data: Record<string, unknown> = {};
    data.self = data;
    const error = await rejection(
      stage.flowProducer().add({
        name: 'parent',
        queueName: stage.name('top'),
        children: [{ name: 'child', queueName: stage.name(), data }],
      }),
    );
    expect(error).toBeInstanceOf(TypeError);
    await nothingIsThere();
  });

  it('does nothing once it is closed', async () => {
    const flows = stage.flowProducer();
    await flows.close();
    expect(await flows.add(flow({}))).toBeUndefined();
    expect(await flows.addBulk([flow({})])).toBeUndefined();
    expect(await flows.getFlow({ queueName: stage.name(), id: '1' })).toBeUndefined();
    await nothingIsThere();
  });

  it('may be closed twice, and while nothing was ever done', async () => {
    const flows = stage.flowProducer();
    await Promise.all([flows.close(), flows.close()]);
    expect(flows.closing).toBeInstanceOf(Promise);
    await flows.disconnect();
  });

  it('sends what was added before it closes', async () => {
    const flows = stage.flowProducer();
    await flows.waitUntilReady();
    const adding = flows.add(flow({}));
    const { job } = await adding;
    await flows.close();
    expect(await stage.queue({}, 'top').getJobState(job.id as string)).toBe('waiting-children');
  });

  it('emits what its connection meets', async () => {
    const flows = stage.keep(
      new lib.FlowProducer({ connection: { host: '127.0.0.1', port: await closedPort(), maxRetriesPerRequest: 0 } }),
    );
    const [error] = await new EventLog(flows, ['error']).get<[Error & { code?: string }]>('error');
    expect(error.code).toBe('ECONNREFUSED');
  });

  it('shows its options, and a backend', async () => {
    const flows = stage.flowProducer({ prefix: 'mine' });
    expect(flows.opts).toMatchObject({ prefix: 'mine' });
    await flows.waitUntilReady();
    expect(flows.getBackend()).toBeDefined();
    expect(flows.closing).toBeUndefined();
  });
});
