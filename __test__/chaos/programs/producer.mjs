// A producer of a chaos run: QUEUE, CONNECTION (JSON), NAME, LEDGER, SEED, PAUSE_MS (mean time between two calls). It notes each job
// before it is sent and when it hears that it was added. UNTOLD, a JSON array, holds jobs with ids of their own that a killed predecessor
// sent and never heard of: they are sent again first. Commands on stdin: `mixed` (as at first, but with MIX=anything: short jobs, and
// few that are not) and `anything` say what it adds from then on; `stop`: it ends once all calls have settled.
import { createInterface } from 'node:readline';
import { FlowProducer, Queue } from 'chasquimq';
import { messageOf, note } from './ledger.mjs';
import { make, randomOf } from './plans.mjs';

const { QUEUE, CONNECTION, NAME, SEED, PAUSE_MS, UNTOLD = '[]', MIX = 'mixed' } = process.env;
/** Beyond this many calls that have not settled it waits: the server is away. */
const MOST_CALLS = 200;

const connection = JSON.parse(CONNECTION);
// the whole log of the run is read at its end
const queue = new Queue(QUEUE, { connection, streams: { events: { maxLen: 100_000_000 } } });
const flows = new FlowProducer({ connection });
for (const opened of [queue, flows]) opened.on('error', (error) => note('error', messageOf(error)));

const random = randomOf(Number(SEED));
let made = 0;
let calls = 0;
let stopping = false;
let mix = MIX;

/** Sends jobs by one call, `send`, which gives their ids in order, as this does unless it fails. */
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
    return ids;
  } catch (error) {
    note('rejected', ...jobs.map((job) => `${job.data.key} ${messageOf(error)}`));
  } finally {
    calls--;
  }
}

const again = (job) => (job.opts.jobId ? JSON.stringify(job) : '-');
const add = (job) => call([job], async () => [(await queue.add(job.name, job.data, job.opts)).id]);
const addBulk = (jobs) => call(jobs, async () => (await queue.addBulk(jobs)).map(({ id }) => id));
const one = (kind) => make(kind, `${NAME}-${made++}`, random);
const many = (kind, n) => Array.from({ length: n }, () => one(kind));

/** Cancels them in their places, or as they run, and notes what became of them. */
async function addAndCancel() {
  const jobs = many('cancelled', 1 + random(10));
  const ids = (await addBulk(jobs)) ?? [];
  await pause(random(100));
  calls++;
  const cancel = async ({ data: { key } }, at) => {
    if (ids[at]) note('cancelled', `${key} ${await queue.cancelJob(ids[at], { reason: key })}`);
  };
  await Promise.allSettled(jobs.map(cancel));
  calls--;
}

function addFlow() {
  const [parent, children] = [one('parent'), many('child', 1 + random(4))];
  parent.data.children = children.map(({ data }) => data.key);
  return addTree(parent, children);
}

function addTree(parent, children) {
  return call([parent, ...children], async () => {
    const node = await flows.add({
      ...parent,
      queueName: QUEUE,
      children: children.map((child) => ({ ...child, queueName: QUEUE })),
    });
    return [node.job.id, ...node.children.map(({ job }) => job.id)];
  });
}

/** What a child's failure does to its parent. */
const POLICIES = [
  ['doomed', 'failParentOnFailure'],
  ['hasty', 'continueParentOnFailure'],
  ['lenient', 'ignoreDependencyOnFailure'],
  ['lenient', 'removeDependencyOnFailure'],
];

/** A flow of whose children one or two fail for good. */
function addFailingFlow() {
  const [kind, policy] = POLICIES[random(POLICIES.length)];
  const [parent, children, culprits] = [one(kind), many('child', random(3)), many('failing', 1 + random(2))];
  for (const { opts } of culprits) opts[policy] = true;
  // which of them have ended is a question of luck once it starts early
  if (kind === 'lenient') parent.data.children = children.map(({ data }) => data.key);
  if (policy === 'ignoreDependencyOnFailure') parent.data.ignored = culprits.length;
  return addTree(parent, random(2) === 0 ? [...culprits, ...children] : [...children, ...culprits]);
}

/** Few at a time, and many. */
function somethingMixed() {
  return random(2) === 0 ? many('mixed', 1 + random(10)).map(add) : addBulk(many('mixed', 2 + random(60)));
}

function something() {
  if (mix === 'mixed') return somethingMixed();
  const dice = random(100);
  if (dice < 10) return many('plain', 1 + random(10)).map(add);
  if (dice < 12) return addBulk(['expired', 'brief'].flatMap((kind) => many(kind, 1 + random(5))));
  if (dice < 16) return addAndCancel();
  if (dice < 30) return addBulk(many('plain', 2 + random(60)));
  if (dice < 36) return many('delayed', 1 + random(10)).map(add);
  if (dice < 40) return addBulk(many('delayed', 1 + random(20)));
  if (dice < 46) return addBulk(many('prioritized', 1 + random(20)));
  if (dice < 54) return addBulk(many('retried', 1 + random(10)));
  if (dice < 56) return addBulk([one('failing'), one('hopeless')]);
  if (dice < 61) return many('own-id', 1 + random(5)).map(add);
  if (dice < 73) return addBulk(many('moved', 1 + random(20)));
  if (dice < 79) return addBulk(many('steps', 1 + random(10)));
  if (dice < 81) return addBulk(many(`meter-${random(2)}`, 1 + random(10)));
  if (dice < 83) return addBulk(many(`tenant-${random(3)}`, 1 + random(10)));
  if (dice < 88) return many('family', 1 + random(3)).map(add);
  if (dice < 92) return addBulk(many('talking', 1 + random(5)));
  if (dice < 93) return add(one('limited'));
  if (dice < 96) return addFailingFlow();
  return addFlow();
}

createInterface(process.stdin).on('line', (line) => {
  if (line === 'stop') stopping = true;
  else mix = line;
});
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
