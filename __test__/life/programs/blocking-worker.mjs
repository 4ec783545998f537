// A worker with one slow handler: QUEUE, LOCK_DURATION (ms), BLOCK_MS, HOW (sleep or spin: blocks the event loop for
// BLOCK_MS; await: until it is told `go`; run: not at all). Told `block`, it says `blocking` and blocks the event loop.
// Says: running, ended (of the handler); completed, stalled, error (of the worker). Closes when it is told `close`.
import { createInterface } from 'node:readline';
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LOCK_DURATION, BLOCK_MS, HOW } = process.env;

const orders = createInterface(process.stdin);
const order = (wanted) => new Promise((resolve) => orders.on('line', (line) => line === wanted && resolve()));

const ways = {
  sleep: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(BLOCK_MS)),
  spin() {
    for (const since = performance.now(); performance.now() - since < Number(BLOCK_MS););
  },
  await: () => order('go'),
  run() {},
};

void order('block').then(() => {
  console.log('blocking');
  ways.sleep();
});

const worker = new Worker(
  QUEUE,
  async (job) => {
    console.log('running', job.id);
    await ways[HOW]();
    console.log('ended', job.id);
    return 'first';
  },
  {
    connection: JSON.parse(CONNECTION),
    lockDuration: Number(LOCK_DURATION),
    // a starved thread has time to do it
    lockRenewTime: Number(LOCK_DURATION) / 10,
    stalledInterval: 100,
  },
);
worker.on('completed', (job) => console.log('completed', job.id));
worker.on('stalled', (id) => console.log('stalled', id));
worker.on('error', (error) => console.log('error', error.message));

await order('close');
await worker.close();
orders.close();
