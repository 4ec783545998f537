// Runs in a worker thread, whose queue and worker share a connection. Data of its jobs are numbers, from `first` on.
// `does`: `add` (on and on, also jobs that it never ends), `block` (told to, it adds and runs a job, which waits until it is told again) or
// `block first` (at once, behind a thousand): a job that adds some, and then keeps the event loop until `go` is set.
// What has begun, was told to be completed, and was added, is counted by number in shared memory, which is there when the thread is not.
// Says: holds; runs; blocking, and how many jobs it has added by then; then the ids of what it added just before.
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { Queue, Worker } from 'chasquimq';

const { name, connection, does, first, concurrency, locks } = workerData;
const { runs, ended, added, go } = workerData.cells;
/** So many numbers are its own. */
const MOST = 10_000;

let number = first;
const queue = new Queue(name, { connection });
const next = () => number++;
const add = async (kind) => {
  const mine = next();
  const { id } = await queue.add(kind, mine);
  Atomics.add(added, mine, 1);
  return id;
};
const addMany = async (kind, count) => {
  const jobs = Array.from({ length: count }, () => ({ name: kind, data: next() }));
  const all = await queue.addBulk(jobs);
  for (const { data } of all) Atomics.add(added, data, 1);
  return all.map(({ id }) => id);
};

/** A job that blocks, before a thousand that may be taken in advance. */
const earn = () => Promise.all([addMany('block', 1), addMany('short', 1_000)]);

const kinds = {
  short() {},
  async held() {
    parentPort.postMessage('holds');
    await new Promise(() => {});
  },
  async block() {
    if (does === 'block') {
      parentPort.postMessage('runs');
      await once(parentPort, 'message');
    } else if ((await queue.getActiveCount()) <= concurrency) {
      // nothing is in hand: its jobs have still to be known as short ones
      return void earn();
    }
    const adds = [add('short')];
    // each is sent by then, and nothing that it is answered is read
    await new Promise((resolve) => process.nextTick(resolve));
    adds.push(addMany('short', 50), ...Array.from({ length: 19 }, () => add('short')));
    await new Promise((resolve) => process.nextTick(resolve));
    parentPort.postMessage({ blocking: number - first });
    Atomics.wait(go, 0, 0);
    parentPort.postMessage({ ids: (await Promise.all(adds)).flat() });
  },
};

const run = async ({ name: kind, data }) => {
  Atomics.add(runs, data, 1);
  await kinds[kind]();
};
const worker = new Worker(name, run, { connection, concurrency, ...locks, skipStalledCheck: true });
worker.on('completed', ({ data }) => Atomics.add(ended, data, 1));

if (does === 'add') {
  const round = () => [add('short'), addMany('short', 5), add('held'), queue.getJobCounts(), queue.getJob('1')];
  while (number + 10 < first + MOST) await Promise.all(round());
} else {
  // it earns to take many at a time
  const adds = [addMany('short', 1_000)];
  if (does === 'block first') adds.push(earn());
  await Promise.all(adds);
  parentPort.once('message', () => void add('block'));
}
