// Adds and processes JOBS jobs (QUEUE) that leave nothing behind, and looks at the memory ten times on the way. With
// KIND=plain they are added in bulk; with KIND=odd each is added by itself, has an id of its own, fails the first time,
// reports progress and is followed by QueueEvents. Needs --expose-gc.
// Says: memory <jobs so far> <heapUsed> <rss> <external>, in bytes; at the end: done <runs>.
import { Queue, QueueEvents, Worker } from 'chasquimq';

const { QUEUE, CONNECTION, JOBS, KIND } = process.env;
const connection = JSON.parse(CONNECTION);
const jobs = Number(JOBS);
const odd = KIND === 'odd';
/** Jobs that may be unfinished at a time: the producer is faster than the worker. */
const AHEAD = jobs / 50;
const BULK = AHEAD / 20;

let runs = 0;
let completed = 0;
let followed = 0;
let wake = () => {};

const until = async (condition) => {
  while (!condition()) await new Promise((resolve) => (wake = resolve));
};

const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true, attempts: odd ? 2 : 1 } });
const events = odd && new QueueEvents(QUEUE, { connection, lastEventId: '0-0' });
if (events) events.on('completed', () => ++followed % BULK === 0 && wake());

const worker = new Worker(
  QUEUE,
  async (job) => {
    runs++;
    if (odd) {
      await job.updateProgress({ runs });
      if (job.attemptsStarted === 1) throw new Error(`not yet, ${job.id}`);
    }
    return job.data.i;
  },
  { connection, concurrency: 100 },
);
worker.on('completed', () => ++completed % BULK === 0 && wake());

function look() {
  globalThis.gc();
  const { heapUsed, rss, external } = process.memoryUsage();
  console.log('memory', completed, heapUsed, rss, external);
}

for (let added = 0; added < jobs;) {
  const bulk = Array.from({ length: BULK }, (_, i) => ({ name: 'job', data: { i, text: `number ${added + i}` } }));
  if (odd) await Promise.all(bulk.map(({ name, data }, i) => queue.add(name, data, { jobId: `own-${added + i}` })));
  else await queue.addBulk(bulk);
  added += BULK;
  await until(() => added - completed < AHEAD);
  if (added % (jobs / 10) === 0) {
    await until(() => completed === added && (!events || followed === added));
    look();
  }
}
await worker.close();
if (events) await events.close();
await queue.close();
console.log('done', runs);
