// `client` and the like: what programs for BullMQ 5 do with its connections.
import { describe, expect } from 'vitest';
import { Redis } from 'ioredis';
import { idiom, libraries, useStage5 } from './stage.js';
import { connection } from '../support/redis.js';
import { until } from '../support/waiting.js';

describe.each(libraries)('$name: clients', ({ lib }) => {
  const stage = useStage5(lib);

  idiom('client', async () => {
    const { base } = stage;
    const queue = stage.queue();
    const worker = stage.worker(null);
    const events = stage.events();
    for (const owner of [queue, worker, events, stage.flowProducer()]) {
      const client = await owner.client;
      expect(client.status).toBe('ready');
      const key = `mine:${base.queueName}`;
      await client.set(key, 'x');
      expect(await client.get(key)).toBe('x');
      expect(await client.del(key)).toBe(1);
    }
    expect(await queue.client).toBe(await queue.client);
  });

  idiom('client-shared', async () => {
    const given = new Redis({ ...connection, maxRetriesPerRequest: null });
    try {
      const queue = stage.queue({ connection: given });
      // in BullMQ 5.81 it is within a proxy
      expect(((await queue.client) as unknown as Redis).options).toBe(given.options);
      await queue.add('x', {});
      await queue.close();
      expect(await given.ping()).toBe('PONG');
    } finally {
      await given.quit();
    }
  });

  idiom('client-closes', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {});
    const clients = [await queue.client, await worker.client];
    // BullMQ 5 tells an error of a worker that is closed while its other connection is made
    await worker.waitUntilReady();
    await queue.close();
    await worker.close();
    await until('both to end', () => clients.every(({ status }) => status === 'end'));
  });

  idiom('client-disconnects', async () => {
    for (const owner of [stage.queue(), stage.flowProducer()]) {
      const client = await owner.client;
      await owner.disconnect();
      await until('it to end', () => client.status === 'end');
    }
  });

  idiom('client-ready', async () => {
    for (const owner of [stage.queue(), stage.worker(null), stage.events(), stage.flowProducer()]) {
      const client = await owner.waitUntilReady();
      expect(await (client as unknown as Redis).ping()).toBe('PONG');
    }
  });

  idiom('redis-version', async () => {
    const queue = stage.queue();
    const worker = stage.worker(null);
    await queue.add('job', 1);
    expect(queue.redisVersion).toMatch(/^\d/);
    await queue.waitUntilReady();
    await worker.waitUntilReady();
    const info = await (await queue.client).info();
    const version = /valkey_version:(\S+)/.exec(info)?.[1] ?? /redis_version:(\S+)/.exec(info)?.[1];
    expect([queue.redisVersion, worker.redisVersion]).toEqual([version, version]);
    expect(queue.databaseType).toBe(info.includes('valkey_version') ? 'valkey' : 'redis');
  });

  idiom('worker-resume', async () => {
    const queue = stage.queue();
    const ran: string[] = [];
    const worker = stage.worker(async (job) => void ran.push(job.name));
    await worker.pause();
    await queue.add('x', {});
    expect(worker.isPaused()).toBe(true);
    void worker.resume();
    expect(worker.isPaused()).toBe(false);
    await until('the job to run', () => ran.length === 1);
  });

  idiom('no-backend', async () => {
    expect(typeof (stage.queue() as { getBackend?: unknown }).getBackend).toBe('undefined');
  });
});
