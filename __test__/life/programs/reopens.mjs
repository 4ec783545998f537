// Opens a queue (QUEUE) with all that belongs to it, uses it and closes it, again and again. Needs --expose-gc.
// Says: counts <open files> <threads> after a few rounds and after many (0 where the system does not show them), and
// `kept <n>`: how many of the closed objects are still in memory.
import { existsSync, readdirSync } from 'node:fs';
import { Queue, QueueEvents, Worker } from 'chasquimq';

const { QUEUE, CONNECTION } = process.env;
const connection = JSON.parse(CONNECTION);
const closed = [];

async function round() {
  const queue = new Queue(QUEUE, { connection });
  const events = new QueueEvents(QUEUE, { connection });
  const worker = new Worker(QUEUE, (job) => job.updateProgress(50), { connection });
  const job = await queue.add('job', {});
  await job.waitUntilFinished(events);
  await worker.close();
  await events.close();
  await queue.close();
  closed.push(new WeakRef(queue), new WeakRef(events), new WeakRef(worker));
}

/** What is closed goes a moment later: threads end, and the collector has to run more than once. */
async function settle() {
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    globalThis.gc();
  }
}

async function count() {
  await settle();
  const entries = (folder) => (existsSync(folder) ? readdirSync(folder).length : 0);
  console.log('counts', entries('/proc/self/fd'), entries('/proc/self/task'));
}

for (let i = 0; i < 5; i++) await round();
await count();
for (let i = 0; i < 40; i++) await round();
await count();
console.log('kept', closed.filter((reference) => reference.deref()).length);
console.log('closed');
