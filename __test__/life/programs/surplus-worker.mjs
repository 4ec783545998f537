// A worker of one slot that takes jobs in advance. QUEUE, LOCK_DURATION. Its jobs: `short` ends at once, `brief` after a millisecond,
// `block` stops the event loop for BLOCK_MS. Says: ran <id>, blocking, unblocked. Ends on `close`.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LOCK_DURATION = 30_000, BLOCK_MS = 0 } = process.env;

const worker = new Worker(
  QUEUE,
  async (job) => {
    if (job.name === 'brief') {
      console.log('ran', job.id);
      await sleep(1);
    }
    if (job.name === 'block') {
      console.log('blocking');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(BLOCK_MS));
      console.log('unblocked');
    }
  },
  { connection: JSON.parse(CONNECTION), lockDuration: Number(LOCK_DURATION), skipStalledCheck: true },
);
// ends that came too late
worker.on('error', (error) => console.log('error', error.message));

createInterface(process.stdin).once('line', async () => {
  await worker.close();
  process.stdin.destroy();
});
