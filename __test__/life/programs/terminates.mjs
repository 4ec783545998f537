// The way of docs/production.md to end within a time limit. QUEUE, LIMIT_MS. Its jobs: `soon` ends 100 ms after SIGTERM, `never` does not end.
// Says: started <n>, terminating, given back <n>, closed.
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LIMIT_MS } = process.env;

const running = new Set();
let asked;
const terminating = new Promise((resolve) => (asked = resolve));

const worker = new Worker(
  QUEUE,
  async (job) => {
    running.add(job);
    console.log('started', running.size);
    try {
      await terminating;
      await new Promise((resolve) => job.name === 'soon' && setTimeout(resolve, 100));
    } finally {
      running.delete(job);
    }
  },
  // no scan, and a lease that outlasts the test: what is not given back does not start again
  { connection: JSON.parse(CONNECTION), concurrency: 4, lockDuration: 600_000, skipStalledCheck: true },
);

process.once('SIGTERM', async () => {
  console.log('terminating');
  asked();
  const late = setTimeout(async () => {
    await Promise.all([...running].map((job) => job.moveToWait(job.token)));
    console.log('given', 'back', running.size);
    process.exit();
  }, Number(LIMIT_MS));
  await worker.close();
  late.unref();
  console.log('closed');
});
