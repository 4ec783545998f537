// A worker that writes each run of a job to a file before the job can end: QUEUE, LEDGER (path), OWNER (what it signs
// with), REMOVE (true: completed jobs are removed). At run number DIE_AT it kills itself, or with DIE_HOW=told says
// `reached` and goes on, so that its test kills it a moment later. With TAKES (ms) a handler first takes up to
// that time, and the worker kills itself while the end of that run waits to be sent together with those of others.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LEDGER, OWNER, REMOVE, DIE_AT, DIE_HOW, TAKES } = process.env;

const ledger = openSync(LEDGER, 'a');
let runs = 0;
const dieNow = () => process.kill(process.pid, 'SIGKILL');

new Worker(
  QUEUE,
  async (job) => {
    if (TAKES) await sleep(Math.random() * Number(TAKES));
    // Synchronous: it is in the kernel, which outlives this process, before anyone hears that the job was run.
    writeSync(ledger, `${OWNER} ${job.id}\n`);
    if (++runs !== Number(DIE_AT)) return;
    if (DIE_HOW === 'told') console.log('reached');
    else if (TAKES) setTimeout(dieNow, 4);
    else dieNow();
  },
  {
    connection: { ...JSON.parse(CONNECTION), connectionName: `${QUEUE}-${OWNER}` },
    concurrency: 50,
    lockDuration: 500,
    // a starved thread has time to do it
    lockRenewTime: 100,
    stalledInterval: 200,
    drainDelay: 1,
    maxStalledCount: 100,
    ...(REMOVE === 'true' && { removeOnComplete: { count: 0 } }),
  },
);
