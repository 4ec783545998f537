// Pins what is left of each class after close().
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { closedPort, connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { rejection } from '../support/waiting.js';

interface Closable {
  waitUntilReady(): Promise<unknown>;
  close(): Promise<unknown>;
  on(event: 'error', listener: () => void): unknown;
}

describe.each(libraries)('$name: connection.closed', ({ lib }) => {
  const stage = useStage(lib);

  const classes = ['Queue', 'Worker', 'QueueEvents', 'QueueEventsProducer', 'FlowProducer'] as const;
  const open = (name: (typeof classes)[number], port = connection.port) => {
    const opts = { connection: { ...connection, port } };
    const openers = {
      Queue: () => new lib.Queue(stage.queueName, opts),
      Worker: () => new lib.Worker(stage.queueName, async () => undefined, opts),
      QueueEvents: () => new lib.QueueEvents(stage.queueName, opts),
      QueueEventsProducer: () => new lib.QueueEventsProducer(stage.queueName, opts),
      FlowProducer: () => new lib.FlowProducer(opts),
    };
    return stage.keep<Closable>(openers[name]());
  };

  it.each(classes)('waitUntilReady of a %s resolves', async (name) => {
    const opened = open(name);
    await opened.waitUntilReady();
    await opened.close();
    expect(await opened.waitUntilReady()).toBeUndefined();
  });

  it.each(classes)('waitUntilReady of a %s resolves when it was closed at once', async (name) => {
    const opened = open(name);
    const waiting = opened.waitUntilReady();
    await opened.close();
    await waiting;
    expect(await opened.waitUntilReady()).toBeUndefined();
  });

  // BullMQ's QueueEvents then waits for ever
  it.each(classes.filter((name) => name !== 'QueueEvents'))(
    'waitUntilReady of a %s resolves when there never was a server',
    async (name) => {
      const opened = open(name, await closedPort());
      opened.on('error', () => {});
      const waiting = opened.waitUntilReady();
      await opened.close();
      await waiting;
    },
  );

  it.each(['getRateLimitTtl', 'removeGlobalConcurrency', 'removeGlobalRateLimit', 'removeRateLimitKey'] as const)(
    '%s of a queue that is closed rejects',
    async (method) => {
      const queue = stage.queue();
      await queue.waitUntilReady();
      await queue.close();
      expect((await rejection(queue[method]())).message).toBe('Connection is closed.');
    },
  );

  it.each(['Queue', 'Worker', 'QueueEvents'] as const)(
    'a %s says to its subclasses when it is closed',
    async (name) => {
      const opened = open(name) as Closable & { closed: boolean; closing?: Promise<void> };
      expect([opened.closed, opened.closing]).toEqual([false, undefined]);
      const closing = opened.close();
      expect([opened.closed, opened.closing]).toEqual([false, expect.any(Promise)]);
      await closing;
      expect(opened.closed).toBe(true);
    },
  );

  it('a queue refuses everything else, and may be closed again', async () => {
    const queue = stage.queue();
    await queue.close();
    expect(await queue.close()).toBeUndefined();
    for (const call of [
      queue.add('job', {}),
      queue.addBulk([{ name: 'job', data: {} }]),
      queue.getJob('1'),
      queue.pause(),
      queue.clean(0, 0),
      queue.upsertJobScheduler('id', { every: 1000 }),
    ]) {
      expect((await rejection(call)).message).toBe('Connection is closed.');
    }
  });

  it('a queue carries out what was not awaited before', async () => {
    const rounds = 12;
    for (let i = 0; i < rounds; i++) {
      const queue = stage.queue({}, `-${i}`);
      await queue.waitUntilReady();
      const calls = [
        queue.pause(),
        queue.setGlobalConcurrency(3),
        queue.getJobCounts('waiting'),
        queue.getJob('1'),
        queue.trimEvents(1_000),
      ];
      await queue.close();
      expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(calls.map(() => 'fulfilled'));
      const after = stage.queue({}, `-${i}`);
      expect([await after.isPaused(), await after.getGlobalConcurrency()]).toEqual([true, 3]);
    }
  });

  it('a FlowProducer gives undefined, but one that was disconnected refuses', async () => {
    const flow = { name: 'job', queueName: stage.queueName };
    const [closed, disconnected] = [stage.flowProducer(), stage.flowProducer()];
    await closed.close();
    expect([await closed.add(flow), await closed.addBulk([flow])]).toEqual([undefined, undefined]);
    await disconnected.waitUntilReady();
    await disconnected.disconnect();
    expect((await rejection(disconnected.add(flow))).message).toBe('Connection is closed.');
  });

  it('a QueueEvents that ran does not run again', async () => {
    const events = stage.events();
    await events.waitUntilReady();
    await events.close();
    expect((await rejection(events.run())).message).toBe('Queue Events is already running.');
  });

  it('a QueueEvents that never ran ends at once, and says that it runs', async () => {
    const events = stage.events({ autorun: false });
    await events.close();
    expect(await events.run()).toBeUndefined();
    expect((await rejection(events.run())).message).toBe('Queue Events is already running.');
  });

  it.each([true, false])('a worker with autorun %s does not run again, and says nothing', async (autorun) => {
    const worker = stage.worker(async () => undefined, { autorun });
    await worker.waitUntilReady();
    await worker.close();
    for (let i = 0; i < 2; i++) expect(await worker.run()).toBeUndefined();
    expect(worker.isRunning()).toBe(false);
    expect(await worker.getNextJob('token')).toBeUndefined();
  });

  it('a worker without a processor says so', async () => {
    const worker = stage.worker(null);
    await worker.close();
    expect((await rejection(worker.run())).message).toBe('No process function is defined.');
  });
});
