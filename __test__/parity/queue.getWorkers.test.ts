// Pins Queue#getWorkers, #getWorkersCount and #getQueueEvents.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { redisClient, server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

describe.each(libraries)('$name: queue.getWorkers', ({ lib }) => {
  const stage = useStage(lib);
  const encoded = () => `bull:${Buffer.from(stage.queueName).toString('base64')}`;

  it('is empty without workers', async () => {
    const queue = stage.queue();
    expect(await queue.getWorkers()).toEqual([]);
    expect(await queue.getWorkersCount()).toBe(0);
    expect(await queue.getQueueEvents()).toEqual([]);
  });

  it('has an entry for each worker, named or not, running or not', async () => {
    const queue = stage.queue();
    const workers = [
      stage.worker(async () => {}),
      stage.worker(async () => {}, { name: 'painter' }),
      stage.worker(async () => {}, { autorun: false, concurrency: 10 }),
    ];
    for (const worker of workers) await worker.waitUntilReady();
    await until('three workers', async () => (await queue.getWorkersCount()) === 3);
    const found = await queue.getWorkers();
    expect(found.map((worker) => worker.rawname).sort()).toEqual([encoded(), encoded(), `${encoded()}:w:painter`]);
    for (const worker of found) {
      expect(worker.name).toBe(stage.queueName);
      expect(worker.id).toMatch(/^\d+$/);
      expect(worker.addr).toMatch(/^\S+:\d+$/);
      expect(worker.age).toMatch(/^\d+$/);
      expect(worker.db).toBe(String(server.db));
    }
  });

  it('has the fields in the order of the server, and rawname at the end', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {});
    await worker.waitUntilReady();
    await until('the worker', async () => (await queue.getWorkersCount()) === 1);
    const redis = redisClient();
    const line = String(await redis.client('LIST')).split('\n')[0];
    await redis.quit();
    const [found] = await queue.getWorkers();
    const names = line.split(' ').map((field) => field.slice(0, field.indexOf('=')));
    expect(Object.keys(found)).toEqual([...names, 'rawname']);
  });

  it('sees workers of this queue and prefix only', async () => {
    const queue = stage.queue();
    const other = stage.watch(new lib.Worker(`${stage.queueName}-2`, async () => {}, { connection: { ...server } }));
    const elsewhere = stage.worker(async () => {}, { prefix: 'other' });
    await other.waitUntilReady();
    await elsewhere.waitUntilReady();
    expect(await queue.getWorkers()).toEqual([]);
    const there = stage.queue({ prefix: 'other' });
    await until('its worker', async () => (await there.getWorkersCount()) === 1);
  });

  it('does not see a worker that was closed', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {});
    await worker.waitUntilReady();
    await until('the worker', async () => (await queue.getWorkersCount()) === 1);
    await worker.close();
    await until('its end', async () => (await queue.getWorkersCount()) === 0);
  });

  it('has an entry for each QueueEvents as well', async () => {
    const queue = stage.queue();
    await stage.events().waitUntilReady();
    const found = await until('its reader', async () => {
      const clients = await queue.getQueueEvents();
      return clients.length === 1 ? clients[0] : undefined;
    });
    expect(found).toMatchObject({ name: stage.queueName, rawname: `${encoded()}:qe` });
    expect(await queue.getWorkersCount()).toBe(0);
  });

  it('goes by the same names when the connection has one of its own', async () => {
    const connection = { ...server, connectionName: 'mine' };
    const queue = stage.queue({ connection });
    await stage.worker(async () => {}, { connection }).waitUntilReady();
    await until('the worker', async () => (await queue.getWorkersCount()) === 1);
  });
});
