// Runs in a worker thread: opens everything and tells its parent once the first job has completed. It then closes everything (`does` is `close`), or goes on
// adding jobs, asking what there is, or looking at jobs, for its parent to end it.
import { parentPort, workerData } from 'node:worker_threads';
import { Queue, QueueEvents, Worker } from 'chasquimq';

const { name, connection, does } = workerData;

const queue = new Queue(name, { connection });
const events = new QueueEvents(name, { connection });
const worker = new Worker(name, async (job) => job.data, { connection, concurrency: 10 });
const first = new Promise((resolve) => worker.once('completed', resolve));
await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'job', data: i })));
await first;
parentPort.postMessage('busy');
const ways = {
  add: (i) => [queue.add('job', i), queue.addBulk([{ name: 'job', data: i }])],
  ask: (i) => [queue.add('job', i), queue.getJobCounts()],
  look: () => [queue.getJob('1')],
};
if (does === 'close') {
  await worker.close();
  await events.close();
  await queue.close();
} else {
  for (let i = 0; ; i++) await Promise.all(ways[does](i));
}
