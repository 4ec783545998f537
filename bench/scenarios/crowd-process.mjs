// Queues with a worker each, and one QueueEvents, in a process of its own, for `../crowd.ts`: the address of their library, their names and the connection are in the first
// argument. Tells when all are open and each queue has added a job that its worker has run, and what the process holds when it is asked; ends with its parent. Each queue of a
// Cluster has a slot of its own.
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { connectionTo } from '../adapters/connection.mjs';

/** Opened at a time: none has to wait for so many others that it gives up. */
const AT_ONCE = 50;

const { address, names, connection, shared } = JSON.parse(process.argv[2]);
const { Queue, QueueEvents, Worker } = await import(address);
const fault = (error) => process.send({ fault: error.message });

const sharedClient = () =>
  connection.nodes ? connectionTo(connection) : new Redis({ ...connection, maxRetriesPerRequest: null });
const client = shared ? sharedClient() : undefined;
// as many as share it
client?.setMaxListeners(0);
const placeOf = (name) => ({
  connection: client ?? connectionTo(connection),
  ...(connection.nodes && { prefix: `{${name}}` }),
});

async function ready(opened) {
  opened.on('error', fault);
  await opened.waitUntilReady();
  return opened;
}

async function open(name) {
  const worker = new Worker(name, async () => undefined, { ...placeOf(name), autorun: false });
  const [queue] = await Promise.all([ready(new Queue(name, placeOf(name))), ready(worker)]);
  worker.run().catch(fault);
  const completed = once(worker, 'completed');
  // what is opened when it is first needed is there then
  await queue.add('job', {}, { removeOnComplete: true });
  await completed;
}

for (let from = 0; from < names.length; from += AT_ONCE) await Promise.all(names.slice(from, from + AT_ONCE).map(open));
await ready(new QueueEvents(names[0], placeOf(names[0])));

process.on('message', (message) => {
  const { user, system } = process.cpuUsage();
  if (message === 'collect') globalThis.gc();
  process.send({ account: { megabytes: process.memoryUsage.rss() / 1e6, cpuMicros: user + system } });
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
