// A worker that is a process of its own, for `../worker-process.ts`: the address of its library, the queue and the connection are in the first argument.
// Runs when it is told to, tells what it has done when it is asked, and ends with its parent.
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionTo } from '../adapters/connection.mjs';

const { address, queueName, connection, prefix, concurrency, tells, obeys } = JSON.parse(process.argv[2]);
const { Worker } = await import(address);
const fault = (error) => process.send({ fault: error.message });
// the clock of the machine, which its processes share
const now = () => Number(process.hrtime.bigint()) / 1e6;

let [ran, sum, starts] = [0, 0, []];
const count = ({ id }) => {
  ran += 1;
  sum += Number(id);
};
const counts = async (job) => count(job);
const does = async (job) => {
  const at = now();
  count(job);
  const { i, blocks, waits } = job.data;
  starts.push({ i, at });
  if (blocks) for (const end = at + blocks; now() < end;);
  if (waits) await sleep(waits);
};
const place = { connection: connectionTo(connection), ...(prefix && { prefix }) };
const worker = new Worker(queueName, obeys ? does : counts, { ...place, concurrency, autorun: false });
worker.on('error', fault);
worker.on('failed', (_, error) => fault(error));
if (tells) worker.on('completed', () => process.send({ completedAt: now() }));
await worker.waitUntilReady();
process.on('message', (message) => {
  if (message === 'run') return void worker.run().catch(fault);
  const { user, system } = process.cpuUsage();
  process.send({ account: { ran, sum, cpuMicros: user + system, starts } });
  starts = [];
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
