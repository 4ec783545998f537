// Clients of each major of ioredis, in the ways that programs pass them on.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Redis } from 'ioredis';
import type { ConnectionOptions } from 'bullmq';
import { drivers } from '../support/drivers.js';
import { libraries } from '../support/libraries.js';
import { server, serverUrl } from '../support/redis.js';
import { useStage } from '../support/stage.js';

const cases = libraries.flatMap((library) => drivers.map((driver) => ({ ...library, ...driver })));

describe.each(cases)('$name on $driver', ({ lib, Redis: Client }) => {
  const stage = useStage(lib);
  const clients: Redis[] = [];
  const warnings: string[] = [];
  const hear = (warning: Error) => warnings.push(String(warning));

  beforeEach(() => void process.on('warning', hear));
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    // a warning is emitted in the next turn
    await new Promise(setImmediate);
    process.off('warning', hear);
    expect(warnings.splice(0)).toEqual([]);
  });

  function keep(client: Redis): Redis {
    clients.push(client);
    return client;
  }

  /** A job's way through a queue, a worker, its events and a flow. */
  async function serves(forQueues: ConnectionOptions, forWorkers = forQueues): Promise<void> {
    const queue = stage.queue({ connection: forQueues });
    const flows = stage.flowProducer({ connection: forQueues });
    const events = stage.events({ connection: forWorkers });
    const worker = stage.worker(async (job) => job.name, { connection: forWorkers });
    const job = await queue.add('single', {});
    expect(await job.waitUntilFinished(events, 60_000)).toBe('single');
    const child = { name: 'child', queueName: stage.queueName };
    const flow = await flows.add({ name: 'parent', queueName: stage.queueName, children: [child] });
    expect(await flow.job.waitUntilFinished(events, 60_000)).toBe('parent');
    for (const opened of [worker, events, flows, queue]) await opened.close();
  }

  it('new Redis(port, host), with what it needs for workers', async () => {
    const { port, host, ...rest } = server;
    const forWorkers = keep(new Client(port, host, { ...rest, maxRetriesPerRequest: null }));
    await serves(keep(new Client(port, host, rest)), forWorkers);
    expect(await forWorkers.ping()).toBe('PONG');
  });

  it('new Redis(url), and what it duplicates', async () => {
    const first = keep(new Client(serverUrl(), { maxRetriesPerRequest: null }));
    await serves(keep(first.duplicate()), keep(first.duplicate({ lazyConnect: true })));
  });

  it('the options of a client', async () => {
    const { options } = keep(new Client({ ...server, lazyConnect: true, maxRetriesPerRequest: null }));
    await serves({ ...(options as object), lazyConnect: false });
  });
});
