// Pins what becomes of calls that are followed by disconnect() and not awaited: they are carried out and answered, if the server answers.
import { describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { rejection } from '../support/waiting.js';

describe.each(libraries)('$name: connection.disconnect', ({ lib }) => {
  const stage = useStage(lib);

  async function connected(): Promise<Queue> {
    const queue = stage.queue();
    await queue.add('first', {});
    return queue;
  }

  it('adds of the same tick are carried out', async () => {
    const queue = await connected();
    const adding = Promise.all([
      queue.add('plain', {}),
      queue.add('delayed', {}, { delay: 60_000 }),
      queue.addBulk([{ name: 'bulk', data: {} }]),
    ]);
    const disconnecting = queue.disconnect();
    const [plain, delayed, [bulk]] = await adding;
    expect([plain.id, delayed.id, bulk.id]).toEqual(['2', '3', '4']);
    expect(await disconnecting).toBeUndefined();
    expect(await stage.queue().getJobCounts('waiting', 'delayed')).toEqual({ waiting: 3, delayed: 1 });
  });

  it('an add and a disconnect that are awaited together', async () => {
    const queue = await connected();
    const [job, nothing] = await Promise.all([queue.add('job', {}), queue.disconnect()]);
    expect([job.id, nothing]).toEqual(['2', undefined]);
    expect(await stage.queue().getWaitingCount()).toBe(2);
  });

  it('an add that is on its way already', async () => {
    const queue = await connected();
    const adding = queue.add('job', {});
    await new Promise(setImmediate);
    await queue.disconnect();
    expect((await adding).id).toBe('2');
  });

  it('reads, log rows and progress', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    const calls = [queue.count(), job.log('row'), job.updateProgress(5)];
    await queue.disconnect();
    expect(await Promise.all(calls)).toEqual([1, 1, undefined]);
  });

  it('an add before the connection is there', async () => {
    const queue = stage.queue();
    const adding = queue.add('job', {});
    await queue.disconnect();
    expect((await adding).id).toBe('1');
  });

  // BullMQ has not sent it yet, and refuses it
  it('a flow is added, or refused', async () => {
    const flows = stage.flowProducer();
    await flows.waitUntilReady();
    const child = { name: 'child', queueName: stage.queueName };
    const added = flows.add({ name: 'parent', queueName: stage.queueName, children: [child] }).then(
      () => 1,
      () => 0,
    );
    await flows.disconnect();
    const count = await added;
    const counts = await stage.queue().getJobCounts('waiting', 'waiting-children');
    expect(counts).toEqual({ waiting: count, 'waiting-children': count });
  });

  it('what is called behind it is refused', async () => {
    const queue = await connected();
    const disconnecting = queue.disconnect();
    const calls = [queue.add('job', {}), queue.count()];
    for (const call of calls) expect((await rejection(call)).message).toBe('Connection is closed.');
    await disconnecting;
    expect(await stage.queue().count()).toBe(1);
  });

  it('a server that answers nothing keeps it waiting for two seconds', async () => {
    const server = stage.keep(await OwnServer.start());
    const queue = stage.queue({ connection: server.connection });
    await queue.add('first', {});
    server.freeze();
    const adding = rejection(queue.add('job', {}));
    const before = performance.now();
    await queue.disconnect();
    const took = performance.now() - before;
    expect((await adding).message).toBe('Connection is closed.');
    expect([took > 1_900, took < 9_000]).toEqual([true, true]);
  });
});
