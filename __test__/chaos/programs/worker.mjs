// A worker of a chaos run: QUEUE, CONNECTION (JSON), NAME, LEDGER, CONCURRENCY, LEASE_MS, SCAN_MS. Commands on stdin: `block <ms>` blocks
// the event loop, `clock <ms>` puts Date that far off (0 = the system's), `close` closes the worker.
import { createInterface } from 'node:readline';
import { Worker } from 'chasquimq';
import { messageOf, note } from './ledger.mjs';

const { QUEUE, CONNECTION, NAME, CONCURRENCY, LEASE_MS, SCAN_MS } = process.env;
const SystemDate = Date;

const worker = new Worker(QUEUE, run, {
  connection: JSON.parse(CONNECTION),
  name: NAME,
  concurrency: Number(CONCURRENCY),
  lockDuration: Number(LEASE_MS),
  stalledInterval: Number(SCAN_MS),
  // a job may be in flight at many crashes of a run
  maxStalledCount: 1_000,
});

async function run(job) {
  const { key = job.id, ms = 0, fails = 0, children = [] } = job.data;
  note('started', `${key} ${job.id} ${job.attemptsMade}`);
  try {
    const result = await work(job, key, ms, fails, children);
    note('ended', `${key} ${job.attemptsMade} returned`);
    return result;
  } catch (error) {
    note('ended', `${key} ${job.attemptsMade} threw`);
    throw error;
  }
}

async function work(job, key, ms, fails, children) {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  if (job.attemptsMade < fails) throw new Error(`fails ${key}`);
  if (children.length > 0) {
    const values = Object.values(await job.getChildrenValues()).sort();
    if (String(values) !== String([...children].sort()))
      note('wrong', `${key} its children returned ${String(values)}`);
  }
  return key;
}

worker.on('completed', (job) => note('completed', job.data.key ?? job.id));
worker.on('failed', (job) => note('failed', job?.data.key ?? job?.id));
worker.on('stalled', (id) => note('stalled', id));
worker.on('lockRenewalFailed', () => note('lease-lost', NAME));
worker.on('error', (error) => note('error', messageOf(error)));

function setClock(offset) {
  if (offset === 0) {
    globalThis.Date = SystemDate;
    return;
  }
  globalThis.Date = class Date extends SystemDate {
    constructor(...args) {
      if (args.length > 0) super(...args);
      else super(SystemDate.now() + offset);
    }
    static now() {
      return SystemDate.now() + offset;
    }
  };
}

createInterface(process.stdin).on('line', async (line) => {
  const [command, ms] = line.split(' ');
  if (command === 'block') {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms));
    console.log('unblocked');
  } else if (command === 'clock') setClock(Number(ms));
  else if (command === 'close') {
    await worker.close();
    process.exit(0);
  }
});

await worker.waitUntilReady();
console.log('ready');
