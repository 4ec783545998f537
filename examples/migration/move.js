// A running system moves from BullMQ to ChasquiMQ: orders keep coming, workers of both run, and each order is handled once.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as bullmq from 'bullmq';
import * as chasquimq from 'chasquimq';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';
const connection = { url };
// it is emptied at first: no queue of yours is called so
const QUEUE = 'chasquimq-example-orders';
const ORDERS = 600;
const DELAY_MS = 1_500;

/** By whom each order was handled. */
const handledBy = new Map(Array.from({ length: ORDERS }, (_, i) => [i, []]));
let allDone;
const done = new Promise((resolve) => (allDone = resolve));

function workerOf(library, name) {
  const handle = async (job) => {
    await sleep(5);
    handledBy.get(job.data.order).push(name);
    if ([...handledBy.values()].every((by) => by.length > 0)) allDone();
  };
  const worker = new library.Worker(QUEUE, handle, { connection, concurrency: 5 });
  worker.on('error', (error) => console.error(name, error.message));
  return worker;
}

/** `npx chasquimq migrate` of the package that is installed here. */
function migrate(...args) {
  const require = createRequire(import.meta.url);
  const { bin } = require('chasquimq/package.json');
  const program = join(dirname(require.resolve('chasquimq/package.json')), bin.chasquimq);
  const command = [program, 'migrate', QUEUE, '--yes', '--url', url, ...args];
  return spawn(process.execPath, command, { stdio: ['ignore', 'inherit', 'inherit'] });
}

/** An empty queue. */
async function emptyQueue(library) {
  const last = new library.Queue(QUEUE, { connection });
  await last.obliterate({ force: true });
  await last.close();
  return new library.Queue(QUEUE, { connection });
}

const [old, moved] = [await emptyQueue(bullmq), await emptyQueue(chasquimq)];
const add = (queue, order) => queue.add('order', { order }, order % 3 === 0 ? { delay: DELAY_MS } : {});

console.log('1. a system on BullMQ: orders come, some of them for later');
const before = workerOf(bullmq, 'bullmq');
for (let order = 0; order < ORDERS / 3; order++) await add(old, order);

console.log('2. a ChasquiMQ worker beside it; migrate moves what waits, and what is still added');
const after = workerOf(chasquimq, 'chasquimq');
await after.waitUntilReady();
const following = migrate('--follow');
const followed = once(following, 'exit');
// from now on ids of new orders begin above those of BullMQ
while ((await moved.getJobCountByTypes('wait', 'delayed', 'active', 'completed')) === 0) await sleep(20);
for (let order = ORDERS / 3; order < (2 * ORDERS) / 3; order++) await add(old, order);

console.log('3. producers are switched, then the BullMQ worker ends what it runs');
for (let order = (2 * ORDERS) / 3; order < ORDERS; order++) await add(moved, order);
await before.close();
following.kill('SIGINT');
await followed;

console.log('4. once more, for what came last');
const [code] = await once(migrate(), 'exit');
if (code !== 0) throw new Error(`migrate ended with exit code ${code}`);
await done;
const all = [...handledBy.values()];
const by = (name) => all.flat().filter((one) => one === name).length;
const twice = all.filter((one) => one.length !== 1).length;
console.log(`moved: ${by('bullmq')} orders by BullMQ, ${by('chasquimq')} by ChasquiMQ, ${twice} not once`);
await Promise.all([after.close(), old.close(), moved.close()]);
