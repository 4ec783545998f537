/** What our types take beyond BullMQ's: a URL as text in the place of a connection. Compiled, never run. */
import * as plain from '../../src/index.js';
import * as v5 from '../../src/v5/index.js';

const held: plain.QueueOptions<string> = { connection: 'redis://localhost' };
const connection = process.env.REDIS_URL ?? 'redis://localhost';

export const queues: plain.Queue[] = [new plain.Queue('a', { connection }), new plain.Queue('a', held)];
export const worker: plain.Worker = new plain.Worker('a', null, { connection, concurrency: 5 });
export const others = [
  new plain.QueueEvents('a', { connection }),
  new plain.QueueEventsProducer('a', { connection }),
  new plain.FlowProducer({ connection }),
  new v5.Queue('a', { connection }),
  new v5.Worker('a', null, { connection }),
  new v5.QueueEvents('a', { connection }),
  new v5.FlowProducer({ connection }),
];
/** What is read of them is an object. */
export const shown = { ...queues[0].opts.connection, ...worker.opts.connection };

const close: plain.WorkerCloseOptions = { timeout: 8000, force: false };
export const ends: Promise<void>[] = [worker.drain(), worker.close(close), worker.close(true), worker.close()];

// @ts-expect-error -- a number is no connection
export const wrong = new plain.Queue('a', { connection: 6379 });
