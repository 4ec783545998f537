// A worker of a chaos run: QUEUE, CONNECTION (JSON), NAME, LEDGER, CONCURRENCY, LEASE_MS, SCAN_MS, SANDBOX (process or thread: where its
// handlers run; here by default), BATCH (most jobs of a call; one by default). Commands on stdin: `block <ms>` blocks
// the event loop, `clock <ms>` puts Date that far off (0 = the system's), `running` says which jobs' handlers run, `close` closes the worker.
import { createInterface } from 'node:readline';
import { Queue, Worker } from 'chasquimq';
import { watchLoop } from '../../life/programs/loop.mjs';
import { messageOf, note, now, runningBy } from './ledger.mjs';
import { runNoted } from './runs.mjs';

const { QUEUE, CONNECTION, NAME, CONCURRENCY, LEASE_MS, SCAN_MS, SANDBOX, BATCH } = process.env;
const SystemDate = Date;

const connection = JSON.parse(CONNECTION);
/** To which handlers add children. The whole log of the run is read at its end. */
const queue = new Queue(QUEUE, { connection, streams: { events: { maxLen: 100_000_000 } } });
const worker = new Worker(QUEUE, SANDBOX ? new URL('./sandboxed.mjs', import.meta.url) : BATCH ? runBatch : run, {
  connection,
  batch: BATCH && { size: Number(BATCH) },
  group: { concurrency: 2 },
  useWorkerThreads: SANDBOX === 'thread',
  name: NAME,
  concurrency: Number(CONCURRENCY),
  lockDuration: Number(LEASE_MS),
  stalledInterval: Number(SCAN_MS),
  // a job may be in flight at many crashes of a run
  maxStalledCount: 1_000,
});

/** Ids of the jobs whose handlers run here, once for each of them. */
const running = [];

async function run(job, token) {
  running.push(job.id);
  try {
    return await runNoted(job, token, { queue, limit: (ms) => worker.rateLimit(ms) });
  } finally {
    running.splice(running.indexOf(job.id), 1);
  }
}

/** Each of them as if it were alone. */
async function runBatch(first) {
  const runEach = async (job) => {
    try {
      job.setResult(await run(job, job.token));
    } catch (error) {
      job.setAsFailed(error);
    }
  };
  await Promise.all(first.getBatch().map(runEach));
}

worker.on('completed', (job) => note('completed', job.data.key ?? job.id));
worker.on('failed', (job) => note('failed', job?.data.key ?? job?.id));
worker.on('stalled', (id) => note('stalled', id));
worker.on('lockRenewalFailed', () => note('lease-lost', NAME));
for (const opened of [queue, worker]) opened.on('error', (error) => note('error', messageOf(error)));

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
  else if (command === 'running') console.log(`running ${JSON.stringify(SANDBOX ? runningBy() : running)}`);
  else if (command === 'close') {
    await worker.close();
    await queue.close();
    process.exit(0);
  }
});

await worker.waitUntilReady();
watchLoop((from, to) => note('late', `${from} ${to}`), now);
console.log('ready');
