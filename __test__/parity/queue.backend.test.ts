// Pins the third argument of the constructors, where it gives the backend of another queue, as bull-board does for its
// flow tree (BullMQ 6.7 QueueBase and FlowProducer).
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { FlowProducer, Queue, QueueBaseOptions, QueueOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { closedPort, connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';

describe.each(libraries)('$name: queue.backend', ({ lib }) => {
  const stage = useStage(lib);
  type Factory = (...args: unknown[]) => ReturnType<Queue['getBackend']>;

  function queueOn(factory: Factory, name: string, opts: Partial<QueueOptions> = {}): Queue {
    return stage.watch(new lib.Queue(name, { connection: { ...connection }, ...opts }, factory));
  }

  function flowsOn(factory: Factory, opts: Partial<QueueBaseOptions & { prefix: string }> = {}): FlowProducer {
    return stage.watch(new lib.FlowProducer({ connection: { ...connection }, ...opts }, factory));
  }

  it('is the one that another queue has', async () => {
    const queue = stage.queue();
    const calls: unknown[][] = [];
    const sharing = queueOn((...args) => {
      calls.push(args);
      return queue.getBackend();
    }, stage.name('other'));
    expect(sharing.getBackend()).toBe(queue.getBackend());
    expect(flowsOn(() => queue.getBackend()).getBackend()).toBe(queue.getBackend());
    expect(calls).toEqual([[stage.name('other'), { connection }, { blocking: false }]]);
    await queue.waitUntilReady();
  });

  it('decides whose jobs the queue has', async () => {
    const queue = stage.queue();
    const sharing = queueOn(() => queue.getBackend(), stage.name('other'));
    const job = await sharing.add('job', { a: 1 });
    expect(sharing.name).toBe(stage.name('other'));
    expect(sharing.qualifiedName).toBe(queue.qualifiedName);
    expect(sharing.toKey('x')).toBe(queue.toKey('x'));
    expect(queue.getBackend().toKey('x')).toBe(queue.toKey('x'));
    expect((await queue.getJob(String(job.id)))?.data).toEqual({ a: 1 });
    expect(await sharing.getJobCounts('waiting')).toEqual({ waiting: 1 });
  });

  it('lets a flow producer add to any queue and read from it', async () => {
    const queue = stage.queue();
    const flows = flowsOn(() => queue.getBackend());
    const child = { name: 'child', queueName: stage.name('children'), data: 2 };
    const { job } = await flows.add({ name: 'parent', queueName: stage.queueName, data: 1, children: [child] });
    expect((await queue.getJob(String(job.id)))?.data).toBe(1);
    const tree = await flows.getFlow({ id: String(job.id), queueName: stage.queueName });
    expect(tree.job.data).toBe(1);
    expect(tree.children?.map((node) => [node.job.queueName, node.job.data])).toEqual([[stage.name('children'), 2]]);
    expect(await tree.children?.[0]?.job.getState()).toBe('waiting');
  });

  it('has the prefix of the flow producer for its flows', async () => {
    const queue = stage.queue();
    const flows = flowsOn(() => queue.getBackend(), { prefix: 'own' });
    const { job } = await flows.add({ name: 'job', queueName: stage.queueName });
    expect(job.queueQualifiedName).toBe(`own:${stage.queueName}`);
    expect(await queue.getJob(String(job.id))).toBeUndefined();
  });

  it('is closed for all by the one who closes it', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    await flowsOn(() => queue.getBackend()).close();
    await expect(queue.add('job', {})).rejects.toThrow('Connection is closed.');
  });

  it('tells all who share it that the connection fails', async () => {
    const queue = stage.queue({ connection: { host: '127.0.0.1', port: await closedPort(), retryStrategy: () => 20 } });
    const sharing = [queueOn(() => queue.getBackend(), stage.name('other')), flowsOn(() => queue.getBackend())];
    const errors = await Promise.all([queue, ...sharing].map((each) => once(each, 'error')));
    for (const [error] of errors) expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    await queue.close();
    stage.takeErrors();
  });

  it('tells its client: status, info and ping', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    const client = (await queue.getBackend().client) as unknown as {
      readonly status: string;
      readonly isCluster: boolean;
      info(): Promise<string>;
      ping(): Promise<string>;
    };
    expect(client.status).toBe('ready');
    expect(Boolean(client.isCluster)).toBe(false);
    expect(await client.ping()).toBe('PONG');
    expect(await client.info()).toMatch(/redis_version:/);
    await queue.close();
    expect(client.status).toBe('end');
  });
});
