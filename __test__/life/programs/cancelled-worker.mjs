// A worker whose handler waits until its signal is aborted; that of a job whose name is `deaf`, until it is told `go`. LOCK_DURATION in ms.
// With BY_HAND it takes one job by itself, and looks at `job.signal`.
// Says: running <id>; aborted <id> <reason>. Told `block`, it says `blocking`, blocks the event loop for BLOCK_MS, and says `turning`. Closes on `close`.
import { createInterface } from 'node:readline';
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LOCK_DURATION, BLOCK_MS, BY_HAND } = process.env;

const orders = createInterface(process.stdin);
const order = (wanted) => new Promise((resolve) => orders.on('line', (line) => line === wanted && resolve()));

void order('block').then(() => {
  console.log('blocking');
  for (const since = performance.now(); performance.now() - since < Number(BLOCK_MS););
  console.log('turning');
});

const run = async (job, token, signal) => {
  console.log('running', job.id);
  if (job.name === 'deaf') return order('go');
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  console.log('aborted', job.id, signal.reason.reason);
  throw new Error(`ended for ${signal.reason.name}`);
};

const worker = new Worker(QUEUE, BY_HAND ? null : run, {
  connection: JSON.parse(CONNECTION),
  lockDuration: Number(LOCK_DURATION),
});
worker.on('error', (error) => console.log('error', error.message));

if (BY_HAND) {
  const job = await worker.getNextJob('mine');
  await run(job, 'mine', job.signal).catch((error) => job.moveToFailed(error, 'mine'));
}

await order('close');
await worker.close();
orders.close();
