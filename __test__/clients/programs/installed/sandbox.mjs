// Processors in a process and in a thread of their own: the library finds its own files where it was installed.
import { fileURLToPath } from 'node:url';
import { Queue, QueueEvents, Worker } from 'LIBRARY';

const connection = JSON.parse(process.env.CONNECTION);
const name = process.env.QUEUE;
const queue = new Queue(name, { connection });
const events = new QueueEvents(name, { connection });
await events.waitUntilReady();
const file = fileURLToPath(new URL('processor.cjs', import.meta.url));
const results = [];
for (const useWorkerThreads of [false, true]) {
  const worker = new Worker(name, file, { connection, useWorkerThreads });
  results.push(await (await queue.add('job', useWorkerThreads)).waitUntilFinished(events));
  await worker.close();
}
console.log(JSON.stringify(results));
await events.close();
await queue.close();
