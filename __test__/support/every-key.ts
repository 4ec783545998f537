/** A queue that has every key of the schema, for what concerns each of them. */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { Job, Queue, Worker } from 'bullmq';
import type { Queue as OurQueue } from '../../src/index.js';
import { keysContaining } from './redis.js';
import type { Stage } from './stage.js';
import { until } from './waiting.js';

const SCHEMA = new URL('../../crates/chasquimq/lua/schema.txt', import.meta.url);

/** Names of the keys of a queue, without its base. */
export const keyNames = readFileSync(SCHEMA, 'utf8')
  .split('\n')
  .filter((line) => line && !line.startsWith('#'))
  .map((line) => line.split(/\s/)[0]);

/** The keys of this name that the queue has. */
export async function keysOf(redis: Redis, queue: Queue, name: string): Promise<string[]> {
  const base = `{bull:${queue.name}}:`;
  const form = new RegExp(`^${name.replace(/<\w+>/g, '.+')}$`);
  const keys = await keysContaining(redis, base);
  return keys.filter(
    (key) => form.test(key.slice(base.length)) && !keyNames.some((other) => other !== name && key === base + other),
  );
}

/** What is longer lies apart, as data of a plain job and of a record, and as a result. */
const [APART, LARGE, LONG_RESULT] = [20_000, 300_000, 5_000];
const HOUR_MS = 3_600_000;
/** More than there are jobs at a time, so that frames are taken whole by a worker that did not wait for them. */
const SLOTS = 50;

/** How a job ends, by its name: `held-` jobs when the gate opens. */
function processor(opened: Promise<void>): (job: Job) => Promise<unknown> {
  return async ({ name, attemptsMade }) => {
    if (name.startsWith('held-')) await opened;
    if (name.includes('fails') || (name.includes('flaky') && attemptsMade === 0)) throw new Error('on purpose');
    return name.includes('long') ? 'x'.repeat(LONG_RESULT) : name;
  };
}

export interface EveryKey {
  queue: Queue;
  worker: Worker;
  /** Jobs that are active, wait, or wait for something, by name. Names of those that ended begin with `ended-`. */
  unfinished: string[];
  /** The child that keeps a parent waiting. */
  lastChild: Job;
  /** Names of jobs that completed, one a job. */
  completed: string[];
  /** Jobs that were started after they had ended. */
  again: string[];
  /** Lets the active jobs end. */
  open: () => void;
}

/** Two jobs are active until `open` is called, and the worker takes no other until then. */
export async function fillEveryKey(stage: Stage, redis: Redis, part: string): Promise<EveryKey> {
  const before = stage.queue({}, part);
  await before.add('obliterated', 1);
  await before.obliterate();
  const queue = stage.queue({ streams: { events: { maxLen: 80 } } }, part);
  const gate = stage.gate();
  const { worker, completed, again } = watchedWorker(stage, processor(gate.opened), part);
  await queue.setGlobalRateLimit(100_000, HOUR_MS);
  await worker.pause();
  const lastChild = await addEnded(stage, queue, part);
  await worker.resume();
  await until('what ends first to end', async () => {
    const counts = await queue.getJobCounts('completed', 'failed', 'active', 'waiting');
    return counts.active + counts.waiting === 0 && counts.completed + counts.failed === ENDED;
  });
  await countMinutes(redis, queue);
  await queue.removeGlobalRateLimit();

  await addGrouped(queue, redis);
  await addScheduler(queue, redis);
  worker.concurrency = 3;
  await queue.add('held-plain', 1);
  await queue.add('held-named', 1, { jobId: 'held' });
  await until('held jobs', async () => (await queue.getActiveCount()) === 3);
  await addWaiting(queue);
  const queueName = queue.name;
  const children = ['child-1', 'child-2'].map((name) => ({ name, queueName }));
  await stage.flowProducer().add({ name: 'parent', queueName, children });
  await redis.set(`{bull:${queueName}}:stash:nobody:1:1:1`, 'a frame', 'PX', HOUR_MS);
  for (const key of ['gatherer', 'key-limit:nobody'])
    await redis.set(`{bull:${queueName}}:${key}`, 'nobody', 'PX', HOUR_MS);
  await redis.zadd(`{bull:${queueName}}:key-line:nobody`, 1, 'nothing');
  await redis.hset(`{bull:${queueName}}:cancels:nobody`, '1:1', 'why');
  for (const key of ['latency', 'group-latency:nobody'])
    await redis.hset(`{bull:${queueName}}:${key}`, 'all', 'nothing');
  await redis.zadd(`{bull:${queueName}}:groups-measured`, 1, 'nobody');
  for (const key of ['waiting-workers', 'resting']) await redis.sadd(`{bull:${queueName}}:${key}`, 'nobody');
  return { queue, worker, unfinished: UNFINISHED, lastChild, completed, again, open: gate.open };
}

function watchedWorker(stage: Stage, run: (job: Job) => Promise<unknown>, part: string) {
  const [completed, again, ended] = [[] as string[], [] as string[], new Set<string>()];
  const key = ({ name, id }: Job) => `${name} ${id}`;
  const opts = { concurrency: SLOTS, stalledInterval: 300, metrics: { maxDataPoints: 10 }, drainDelay: 1 };
  const worker = stage.worker(
    (job) => {
      if (ended.has(key(job))) again.push(key(job));
      return run(job);
    },
    opts,
    part,
  );
  worker.on('completed', (job: Job) => {
    completed.push(job.name);
    ended.add(key(job));
  });
  worker.on('failed', (job?: Job) => {
    if (job && job.attemptsMade >= (job.opts.attempts ?? 1)) ended.add(key(job));
  });
  return { worker, completed, again };
}

/** Completed and failed jobs of `addEnded`. */
const ENDED = 19;

const UNFINISHED = [
  ...[
    'held-plain',
    'held-named',
    'in-frame',
    'in-frame',
    'in-frame',
    'apart',
    'named',
    'front',
    'ranked',
    'later',
    'large',
  ],
  ...['child-1', 'child-2', 'parent', 'ended-parent', 'last-child', 'single'],
  ...['held-grouped', 'maxed', 'limited', 'paused', 'strict-flaky', 'strict', 'grouped', 'grouped-later'],
];

/** Jobs that end in every way, and parents in all that they know of their children. Gives a child that does not end. */
async function addEnded(stage: Stage, queue: Queue, part: string): Promise<Job> {
  const queueName = stage.name(part);
  await queue.addBulk(['ended-a', 'ended-b', 'ended-fails', 'ended-c'].map((name) => ({ name, data: 1 })));
  await queue.addBulk(Array.from({ length: 6 }, () => ({ name: 'ended-plain', data: 1 })));
  await queue.add('ended-long', 1, { jobId: 'long' });
  const logged = await queue.add('ended-logged', 1, { jobId: 'logged' });
  await logged.log('a row');
  const child = (name: string, opts: object = {}) => ({ name, queueName, opts });
  const { children = [] } = await stage.flowProducer().add({
    ...{ name: 'ended-parent', queueName },
    children: [
      ...[child('ended-child'), child('ended-child')],
      ...[
        child('ended-own', { jobId: 'own' }),
        child('ended-fails', { jobId: 'ignored', ignoreDependencyOnFailure: true }),
      ],
      child('last-child', { jobId: 'last', delay: HOUR_MS }),
    ],
  });
  await stage.flowProducer().add({
    ...{ name: 'ended-failed-parent', queueName },
    children: [
      child('ended-fails', { jobId: 'fault', failParentOnFailure: true }),
      child('ended-child', { jobId: 'other' }),
    ],
  });
  return children[4].job;
}

/** The first job of a minute has ended long ago, so that the next one fills the list of minutes. */
async function countMinutes(redis: Redis, queue: Queue): Promise<void> {
  const base = `{bull:${queue.name}}:metrics:`;
  for (const state of ['completed', 'failed']) await redis.hset(base + state, 'prevTS', Date.now() - 120_000);
  await queue.addBulk(['ended-minute', 'ended-minute-fails'].map((name) => ({ name, data: 1 })));
  await until('minutes', async () => (await keysOf(redis, queue, 'metrics:failed:data')).length === 1);
}

/** Groups of every status, and one of which a job waits for its next try. */
async function addGrouped(queue: Queue, redis: Redis): Promise<void> {
  const groups = queue as unknown as OurQueue;
  await groups.setGroupConcurrency('maxed', 1);
  await groups.rateLimitGroup('limited', 3_000);
  await groups.pauseGroup('paused');
  await groups.addBulk([
    { name: 'held-grouped', data: 1, opts: { group: { id: 'maxed' } } },
    { name: 'maxed', data: 1, opts: { group: { id: 'maxed' } } },
    { name: 'limited', data: 1, opts: { group: { id: 'limited' } } },
    { name: 'paused', data: 1, opts: { group: { id: 'paused' } } },
    { name: 'strict-flaky', data: 1, opts: { group: { id: 'strict', order: 'strict' }, attempts: 2, backoff: 3_000 } },
    { name: 'strict', data: 1, opts: { group: { id: 'strict' } } },
  ]);
  await until(
    'a job that waits for its next try',
    async () => (await keysOf(redis, queue, 'group-holds:<group>')).length === 1,
  );
}

/** A scheduler, one run of which has ended. */
async function addScheduler(queue: Queue, redis: Redis): Promise<void> {
  const repeat = { every: 1_000, overlap: 'skip' } as const;
  await (queue as unknown as OurQueue).upsertJobScheduler('often', repeat, { name: 'iteration', data: 1 });
  await until('a run', async () => (await keysOf(redis, queue, 'scheduler-runs')).length === 1);
}

/** Jobs that wait in every way. */
async function addWaiting(queue: Queue): Promise<void> {
  const bulk = await queue.addBulk(Array.from({ length: 4 }, () => ({ name: 'in-frame', data: 1 })));
  await bulk[1].remove();
  await queue.add('apart', 'x'.repeat(APART));
  const stale = await queue.add('stale', 1, { jobId: 'stale' });
  await queue.add('named', 1, { jobId: 'named' });
  await stale.remove();
  await queue.add('front', 1, { lifo: true, jobId: 'front' });
  await queue.add('ranked', 1, { priority: 3 });
  await queue.add('later', 1, { delay: 10, expireAfter: HOUR_MS } as object);
  await queue.add('large', 'x'.repeat(LARGE), { jobId: 'large' });
  await queue.add('single', 1, { deduplication: { id: 'single' } });
  const groups = queue as unknown as OurQueue;
  await groups.add('grouped', 1, { group: { id: 'waiting' } });
  await groups.add('grouped-later', 1, { delay: 10, group: { id: 'waiting', maxSize: 100 } });
}
