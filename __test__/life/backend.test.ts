// What is made with the backend of a queue, where BullMQ has no rule: a worker on a backend without a connection that may
// block fails there for good.
import { describe, expect, it } from 'vitest';
import type { BackendFactory } from '../../src/index.js';
import { FlowProducer, NotSupportedError, Queue, QueueEvents, Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';

describe('a backend', () => {
  const stage = useStage(chasquimq);

  // backend-factory: a wanted difference (docs/differences.md)
  it('that is none of ours is refused', () => {
    const factory = (() => ({ addJob() {} })) as unknown as BackendFactory;
    const refusal = new NotSupportedError('a backend other than one that getBackend() gave');
    expect(() => new Queue(stage.queueName, { connection }, factory)).toThrow(refusal);
    expect(() => new FlowProducer({ connection }, factory)).toThrow(refusal);
    expect(() => new Worker(stage.queueName, null, { connection }, factory)).toThrow(refusal);
  });

  it('leads workers and QueueEvents to its queue, by connections of their own', async () => {
    const queue = stage.keep(new Queue(stage.queueName, { connection }));
    const factory = () => queue.getBackend();
    const events = stage.watch(new QueueEvents('any', { connection, lastEventId: '0-0' }, factory));
    const worker = stage.watch(new Worker('any', async (job) => job.data as string, { connection }, factory));
    expect(worker.qualifiedName).toBe(queue.qualifiedName);
    const job = await queue.add('job', 'done');
    expect(await job.waitUntilFinished(events, 60_000)).toBe('done');
    await worker.close();
    await events.close();
    expect((await queue.add('job', 'later')).id).toBe('2');
  });

  it('reaches the queues of a flow wherever they are', async () => {
    const queue = stage.keep(new Queue(stage.queueName, { connection }));
    const flows = stage.watch(new FlowProducer({ connection }, () => queue.getBackend()));
    const [first, second] = [`{${stage.queueName}-1}`, `{${stage.queueName}-2}`];
    for (const queueName of [first, second]) {
      const child = { name: 'child', queueName, data: queueName };
      const { job } = await flows.add({ name: 'parent', queueName, children: [child] });
      const tree = await flows.getFlow({ id: String(job.id), queueName });
      expect(tree.children?.map((node) => node.job.data as string)).toEqual([queueName]);
    }
  });
});
