// A worker whose jobs take all kinds of time. LIBRARY (bullmq or chasquimq), QUEUE, CONCURRENCY, and of its options LOCK_MS, SCAN_MS,
// STALLS (`maxStalledCount`). Its jobs, by name: `warm` and `quick` end at once; `async` takes data.ms; `block` keeps the event loop for
// data.ms, and `blockUntil` until the file data.file is there, for data.ms at most; `await` ends when the program is told `go`; `die` kills the
// process, and `dieOnce` does if the file data.file is not there, which it writes. It says, with times of the clock that all processes share (loop.mjs): `started <id> <at>` and `ended <id> <at>` of each job but the
// warm ones, `late <from> <to>` of its event loop, and once `warm` when it has run WARM of these. Told `close`, it closes.
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { block, now, watchLoop } from './loop.mjs';

const { LIBRARY, QUEUE, CONNECTION, CONCURRENCY, LOCK_MS = 30_000, SCAN_MS = 30_000, STALLS = 1, WARM } = process.env;
const { Worker } = await import(LIBRARY);

const orders = createInterface(process.stdin);
const told = (wanted) => new Promise((resolve) => orders.on('line', (line) => line === wanted && resolve()));
const go = told('go');
const close = told('close');

const die = () => process.kill(process.pid, 'SIGKILL');
const kinds = {
  warm() {
    if (++warmed === Number(WARM)) console.log('warm');
  },
  quick() {},
  async: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms)),
  block: ({ ms }) => block(ms),
  blockUntil({ file, ms }) {
    if (!block(ms, () => existsSync(file))) throw new Error(`waited ${ms} ms in vain for ${file}`);
  },
  await: () => go,
  die,
  dieOnce({ file }) {
    if (existsSync(file)) return;
    writeFileSync(file, '');
    die();
  },
};
let warmed = 0;

async function run(job) {
  if (job.name === 'warm') return kinds.warm();
  console.log('started', job.id, now());
  try {
    return await kinds[job.name](job.data);
  } finally {
    console.log('ended', job.id, now());
  }
}

const worker = new Worker(QUEUE, run, {
  connection: JSON.parse(CONNECTION),
  concurrency: Number(CONCURRENCY),
  lockDuration: Number(LOCK_MS),
  stalledInterval: Number(SCAN_MS),
  maxStalledCount: Number(STALLS),
});
// what came too late is refused
worker.on('error', (error) => console.error(error.message));

await worker.waitUntilReady();
watchLoop((from, to) => console.log('late', from, to));
console.log('ready', now());
await close;
await worker.close();
orders.close();
