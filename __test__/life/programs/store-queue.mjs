// Prints a queue as this release stores it, with jobs in every state and form: what __test__/life/stored/ holds, made once a release by
//   node .ci/redis.mjs node __test__/life/programs/store-queue.mjs > __test__/life/stored/<version>.json
// A key is the DUMP of a Redis 7.0, which every server we support restores. What expires is left out: leases and memos have by then.
import { Redis } from 'ioredis';
import { FlowProducer, Queue, Worker } from 'chasquimq';
import { readFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url)));
const name = 'stored';
const { hostname, port } = new URL(process.env.REDIS_URL);
const connection = { host: hostname, port: Number(port) };
const queue = new Queue(name, { connection });
const flows = new FlowProducer({ connection });
const HOUR_MS = 3_600_000;

const handlers = {
  done: async (job) => job.data,
  fails: async () => {
    throw Object.assign(new Error('it failed'), { stack: 'Error: it failed\n    at handler (program.js:1:1)' });
  },
};

/** Runs jobs one at a time until so many have ended. */
async function run(count) {
  let ended = 0;
  const worker = new Worker(name, (job) => handlers[job.name](job), { connection });
  await new Promise((resolve) => {
    const end = () => ++ended === count && resolve();
    worker.on('completed', end).on('failed', end);
  });
  await worker.close();
}

// ended: plain ones, one of its own id with a log, one with a large result, and one that failed
await queue.addBulk(Array.from({ length: 5 }, (_, i) => ({ name: 'done', data: { ended: i } })));
const own = await queue.add('done', 'own id', { jobId: 'ended-own' });
await own.log('a row');
await queue.add('done', 'x'.repeat(10_000), { jobId: 'ended-large' });
await queue.add('fails', {}, { jobId: 'ended-failed' });
await run(8);

// taken by a worker that is gone
await queue.addBulk(Array.from({ length: 3 }, (_, i) => ({ name: 'done', data: { taken: i } })));
const gone = new Worker(name, null, { connection, lockDuration: 1000 });
await gone.getNextJob('a token');
await gone.close(true);

// a first try that failed, and waits for the second
await queue.add('fails', {}, { jobId: 'retried', attempts: 2, backoff: HOUR_MS });
const tries = new Worker(name, null, { connection });
const taken = [];
while (taken.at(-1)?.id !== 'retried') taken.push(await tries.getNextJob('another'));
await taken.pop().moveToFailed(new Error('the first try'), 'another');
for (const job of taken.reverse()) await job.moveToWait('another');
await tries.close();

// not started: in frames, of their own ids, delayed, with priorities, deduplicated, of a scheduler, and trees
await queue.addBulk(Array.from({ length: 70 }, (_, i) => ({ name: 'done', data: { waits: i } })));
const waits = await queue.add('done', 'own id', { jobId: 'own' });
await waits.updateProgress({ part: 1 });
await queue.add('done', 'y'.repeat(300_000), { jobId: 'large' });
await queue.add('done', 'last in', { lifo: true });
for (const delay of [HOUR_MS, 2 * HOUR_MS]) await queue.add('done', { delay }, { delay });
for (const priority of [3, 1]) await queue.add('done', { priority }, { priority });
await queue.add('done', 'first', { jobId: 'dedup', deduplication: { id: 'once' } });
await queue.upsertJobScheduler('hourly', { every: HOUR_MS }, { name: 'done', data: 'scheduled' });
const child = (data, opts) => ({ name: 'done', queueName: name, data, opts });
await flows.add({
  ...child('parent'),
  opts: { jobId: 'parent' },
  children: [...Array.from({ length: 4 }, (_, i) => child({ child: i })), child('with an id', { jobId: 'child' })],
});

// settings
await queue.setGlobalConcurrency(50);
await queue.setMaxLength(1_000_000);

const redis = new Redis(connection);
// texts of one letter become short
await redis.config('SET', 'rdbcompression', 'yes');
const keys = {};
const base = `{bull:${name}}:`;
for (const key of (await redis.keys('*')).sort()) {
  const lasts = (await redis.pttl(key)) < 0 && key !== `${base}wake`;
  if (lasts) keys[key.slice(base.length)] = (await redis.dumpBuffer(key)).toString('base64');
}
console.log(JSON.stringify({ release: version, name, keys }, null, 2));
await Promise.all([queue.close(), flows.close(), redis.quit()]);
