// A worker that writes each run of a job to a file before the job can end: QUEUE, LEDGER (path), OWNER (what it signs
// with), REMOVE (true: completed jobs are removed). At run number DIE_AT it kills itself, or with DIE_HOW=told says
// `reached` and goes on, so that its test kills it a moment later.
import { openSync, writeSync } from 'node:fs';
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, LEDGER, OWNER, REMOVE, DIE_AT, DIE_HOW } = process.env;

const ledger = openSync(LEDGER, 'a');
let runs = 0;

new Worker(
  QUEUE,
  async (job) => {
    // Synchronous: it is in the kernel, which outlives this process, before anyone hears that the job was run.
    writeSync(ledger, `${OWNER} ${job.id}\n`);
    if (++runs !== Number(DIE_AT)) return;
    if (DIE_HOW === 'told') console.log('reached');
    else process.kill(process.pid, 'SIGKILL');
  },
  {
    connection: { ...JSON.parse(CONNECTION), connectionName: `${QUEUE}-${OWNER}` },
    concurrency: 50,
    lockDuration: 500,
    stalledInterval: 200,
    drainDelay: 1,
    maxStalledCount: 100,
    ...(REMOVE === 'true' && { removeOnComplete: { count: 0 } }),
  },
);
