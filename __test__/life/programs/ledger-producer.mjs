// A producer that never stops: QUEUE, OWNER (part of the jobs' data), LEDGER (path of a file that gets the id and the
// data of each job that was acknowledged). At acknowledgement number DIE_AT it kills itself, or with DIE_HOW=told says
// `reached` and goes on, so that its test kills it a moment later.
import { openSync, writeSync } from 'node:fs';
import { Queue } from 'chasquimq';

const { QUEUE, CONNECTION, LEDGER, OWNER, DIE_AT, DIE_HOW } = process.env;

const ledger = openSync(LEDGER, 'a');
const queue = new Queue(QUEUE, { connection: JSON.parse(CONNECTION) });
let made = 0;
let acknowledged = 0;

function acknowledge(job) {
  writeSync(ledger, `${job.id} ${job.data}\n`);
  if (++acknowledged !== Number(DIE_AT)) return;
  if (DIE_HOW === 'told') console.log('reached');
  else process.kill(process.pid, 'SIGKILL');
}

async function addSingly() {
  for (;;) {
    const number = `${OWNER}-${made++}`;
    acknowledge(await queue.add('job', number, made % 10 === 0 ? { jobId: `own-${number}` } : undefined));
  }
}

async function addInBulk() {
  for (;;) {
    const jobs = Array.from({ length: 37 }, () => ({ name: 'job', data: `${OWNER}-${made++}` }));
    for (const job of await queue.addBulk(jobs)) acknowledge(job);
  }
}

for (let i = 0; i < 20; i++) addSingly();
for (let i = 0; i < 3; i++) addInBulk();
