// Adds JOBS jobs of SIZE characters in one tick, takes them all at once, and says how many were added, and how many arrived whole.
import { Queue, Worker } from 'chasquimq';

const { QUEUE, CONNECTION, JOBS, SIZE } = process.env;
const connection = JSON.parse(CONNECTION);
const count = Number(JOBS);
const text = 'x'.repeat(Number(SIZE));

const queue = new Queue(QUEUE, { connection });
const added = await Promise.all(Array.from({ length: count }, (_, i) => queue.add(`job ${i}`, `${i} ${text}`)));
console.log('added', added.length);
let [whole, ended] = [0, 0];
const process_ = async ({ name, data }) => {
  if (name === `job ${parseInt(data)}` && data.length === text.length + `${parseInt(data)} `.length) whole++;
};
const worker = new Worker(QUEUE, process_, { connection, concurrency: count, lockDuration: 60_000 });
worker.on('error', (error) => console.log('error', error.message));
await new Promise((resolve) => worker.on('completed', () => ++ended === count && resolve()));
console.log('whole', whole);
await worker.close();
await queue.close();
