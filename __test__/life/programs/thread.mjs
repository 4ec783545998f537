// Runs in a worker thread: opens everything and tells its parent once the first job has completed. With `closes` it
// then closes everything; otherwise it goes on adding jobs, for its parent to end it.
import { parentPort, workerData } from 'node:worker_threads';
import { Queue, QueueEvents, Worker } from 'chasquimq';

const { name, connection, closes } = workerData;

const queue = new Queue(name, { connection });
const events = new QueueEvents(name, { connection });
const worker = new Worker(name, async (job) => job.data, { connection, concurrency: 10 });
const first = new Promise((resolve) => worker.once('completed', resolve));
await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'job', data: i })));
await first;
parentPort.postMessage('busy');
if (closes) {
  await worker.close();
  await events.close();
  await queue.close();
} else {
  for (let i = 0; ; i++) await Promise.all([queue.add('job', i), queue.addBulk([{ name: 'job', data: i }])]);
}
