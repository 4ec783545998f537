// Starts threads that open queues (QUEUE-0, QUEUE-1, ...) of their own and ends them, while its own queue is in use.
// Says: terminated <code>, ended <code> of each thread, and `closed` when it has nothing more to do.
import { Worker as Thread } from 'node:worker_threads';
import { Queue, Worker } from 'chasquimq';

const { QUEUE, CONNECTION } = process.env;
const connection = JSON.parse(CONNECTION);

async function thread(index, closes) {
  const workerData = { name: `${QUEUE}-${index}`, connection, does: closes ? 'close' : 'add' };
  const started = new Thread(new URL('thread.mjs', import.meta.url), { workerData });
  const ended = new Promise((resolve) => started.once('exit', resolve));
  await new Promise((resolve, reject) => {
    started.once('message', resolve);
    started.once('error', reject);
  });
  if (closes) console.log('ended', await ended);
  else console.log('terminated', await started.terminate());
}

const queue = new Queue(QUEUE, { connection });
let completed = 0;
const worker = new Worker(QUEUE, async () => {}, { connection, concurrency: 10 });
worker.on('completed', () => completed++);
let added = 0;
let busy = true;
const adding = (async () => {
  for (; busy; added++) await queue.add('job', added);
})();

for (let index = 0; index < 6; index++) await thread(index, index % 3 === 2);
// Two at a time: the engine's thread belongs to both.
await Promise.all([thread(6, false), thread(7, false), thread(8, true)]);

busy = false;
await adding;
while (completed < added) await new Promise((resolve) => worker.once('completed', resolve));
await worker.close();
await queue.close();
console.log('closed');
