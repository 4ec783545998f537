// A producer of a chaos run: QUEUE, CONNECTION (JSON), NAME, LEDGER, SEED, PAUSE_MS (mean time between two calls). It notes each job
// before it is sent and when it hears that it was added. UNTOLD, a JSON array, holds jobs with ids of their own that a killed predecessor
// sent and never heard of: they are sent again first. `stop` on stdin: it ends once all calls have settled.
import { createInterface } from 'node:readline';
import { FlowProducer, Queue } from 'chasquimq';
import { messageOf, note } from './ledger.mjs';

const { QUEUE, CONNECTION, NAME, SEED, PAUSE_MS, UNTOLD = '[]' } = process.env;
/** Beyond this many calls that have not settled it waits: the server is away. */
const MOST_CALLS = 200;

const connection = JSON.parse(CONNECTION);
// the whole log of the run is read at its end
const queue = new Queue(QUEUE, { connection, streams: { events: { maxLen: 100_000_000 } } });
const flows = new FlowProducer({ connection });
for (const opened of [queue, flows]) opened.on('error', (error) => note('error', messageOf(error)));

let state = Number(SEED);
/** One of 0 .. n - 1 (mulberry32). */
function random(n) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
}

let made = 0;
let calls = 0;
let stopping = false;

/** A job of one kind, which says in its data what it is to do. */
function make(kind) {
  const key = `${NAME}-${made++}`;
  const [dice, data, opts] = [random(100), { key }, {}];
  if (dice >= 60) data.ms = dice < 84 ? 1 + random(15) : dice < 95 ? 20 + random(40) : 300 + random(500);
  if (random(3) === 0) opts.removeOnComplete = true;
  if (kind === 'delayed') opts.delay = 20 + random(2_000);
  if (kind === 'prioritized') opts.priority = 1 + random(5);
  if (kind === 'own-id') {
    opts.jobId = key;
    // once a job is gone its id is free, and a successor that sends it again adds another job
    delete opts.removeOnComplete;
  }
  if (kind === 'retried') {
    Object.assign(opts, { attempts: 4, backoff: { type: 'exponential', delay: 20 } });
    data.fails = 1 + random(3);
  }
  if (kind === 'failing') {
    Object.assign(opts, { attempts: 2, backoff: 50 });
    data.fails = 9;
  }
  return { name: kind, data, opts };
}

/** Sends jobs by one call, `send`, which gives their ids in order. */
async function call(jobs, send) {
  calls++;
  // what a successor needs to send a job again goes with it
  note(
    'sent',
    ...jobs.map((job) => `${job.data.key} ${job.name} ${job.opts.removeOnComplete ? 'removed' : 'kept'} ${again(job)}`),
  );
  try {
    const ids = await send();
    note('acked', ...jobs.map((job, i) => `${job.data.key} ${ids[i]}`));
  } catch (error) {
    note('rejected', ...jobs.map((job) => `${job.data.key} ${messageOf(error)}`));
  } finally {
    calls--;
  }
}

const again = (job) => (job.opts.jobId ? JSON.stringify(job) : '-');
const add = (job) => call([job], async () => [(await queue.add(job.name, job.data, job.opts)).id]);
const addBulk = (jobs) => call(jobs, async () => (await queue.addBulk(jobs)).map(({ id }) => id));
const many = (kind, n) => Array.from({ length: n }, () => make(kind));

function addFlow() {
  const [parent, children] = [make('parent'), many('child', 1 + random(4))];
  parent.data.children = children.map(({ data }) => data.key);
  return call([parent, ...children], async () => {
    const node = await flows.add({
      ...parent,
      queueName: QUEUE,
      children: children.map((child) => ({ ...child, queueName: QUEUE })),
    });
    return [node.job.id, ...node.children.map(({ job }) => job.id)];
  });
}

function something() {
  const dice = random(100);
  if (dice < 30) return many('plain', 1 + random(10)).map(add);
  if (dice < 50) return addBulk(many('plain', 2 + random(60)));
  if (dice < 60) return many('delayed', 1 + random(10)).map(add);
  if (dice < 65) return addBulk(many('delayed', 1 + random(20)));
  if (dice < 75) return addBulk(many('prioritized', 1 + random(20)));
  if (dice < 85) return addBulk(many('retried', 1 + random(10)));
  if (dice < 87) return add(make('failing'));
  if (dice < 95) return many('own-id', 1 + random(5)).map(add);
  return addFlow();
}

createInterface(process.stdin).on('line', (line) => (stopping ||= line === 'stop'));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

await queue.waitUntilReady();
console.log('ready');
for (const job of JSON.parse(UNTOLD)) void add(job);
while (!stopping) {
  if (calls < MOST_CALLS) something();
  await pause(1 + random(2 * Number(PAUSE_MS)));
}
while (calls > 0) await pause(10);
await Promise.all([queue.close(), flows.close()]);
process.exit(0);
