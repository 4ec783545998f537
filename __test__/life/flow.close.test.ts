// What becomes of flows that are under way when their producer is closed. In BullMQ they reject, and may be added or not.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';

describe('flow.close', () => {
  const stage = useStage(chasquimq);

  // flow-producer-close: a wanted difference (docs/differences.md)
  it.each([
    ['ready', true],
    ['not ready yet', false],
  ])('waits for flows that are being added; the connection is %s', async (_, isReady) => {
    const producer = stage.flowProducer();
    if (isReady) await producer.waitUntilReady();
    const { queueName } = stage;
    const adding = producer.addBulk(
      Array.from({ length: 50 }, () => ({ name: 'p', queueName, children: [{ name: 'c', queueName }] })),
    );
    await producer.close();
    expect(await adding).toHaveLength(50);
    const counts = await stage.queue().getJobCounts('waiting', 'waiting-children');
    expect(counts).toEqual({ waiting: 50, 'waiting-children': 50 });
  });

  it('waits for a child that is being added to a job', async () => {
    const queue = stage.queue();
    const parent = await queue.add('p', {});
    const adding = queue.add('c', {}, { parent: { id: parent.id as string, queue: queue.qualifiedName } });
    await queue.close();
    expect((await adding).id).toBe('2');
  });
});
