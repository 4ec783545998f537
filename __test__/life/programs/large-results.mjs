// Runs JOBS jobs at once, which all end in one tick: with a result, or an error, of SIZE characters. Says how many have ended, and
// the resident memory in MB when they had.
import { Queue, Worker } from 'chasquimq';

const { QUEUE, CONNECTION, JOBS, SIZE, FAILS } = process.env;
const connection = JSON.parse(CONNECTION);
const count = Number(JOBS);
const text = 'x'.repeat(Number(SIZE));

let started = 0;
let release;
const all = new Promise((resolve) => (release = resolve));
const process_ = async (job) => {
  if (++started === count) release();
  await all;
  // a text of its own each
  const own = `${job.id} ${text}`;
  if (FAILS) throw new Error(own);
  return own;
};

const queue = new Queue(QUEUE, { connection });
await queue.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'job', data: i, opts: { stackTraceLimit: 0 } })));
const worker = new Worker(QUEUE, process_, { connection, concurrency: count, lockDuration: 60_000 });
worker.on('error', (error) => console.log('error', error.message));
let ended = 0;
const whole = new Promise((resolve) => {
  const end = () => ++ended === count && resolve();
  worker.on('completed', end);
  worker.on('failed', end);
});
await (process.env.CLOSES ? all : whole);
await worker.close();
console.log('ended', ended);
await queue.close();
