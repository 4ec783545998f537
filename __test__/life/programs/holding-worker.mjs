// A worker whose batch has too few jobs: it says `active` of each job that it holds, and `ran` with the ids of a call.
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LOCK_DURATION, TIMEOUT } = process.env;

const ids = (job) => job.getBatch().map(({ id }) => id);
const worker = new Worker(QUEUE, async (job) => console.log(`ran ${ids(job)}`), {
  connection: JSON.parse(CONNECTION),
  lockDuration: Number(LOCK_DURATION),
  // whoever looks next looks no later than this
  stalledInterval: 100,
  batch: { size: 10, minSize: 10, ...(TIMEOUT && { timeout: Number(TIMEOUT) }) },
});
worker.on('active', ({ id }) => console.log(`active ${id}`));
// what it has lost is told
worker.on('error', () => {});
