/**
 * Jobs of every kind, added and processed as fast as both go, for as long as was asked: what is held must stay what it is.
 * Each round adds a bulk of every kind and waits until most of what was added has ended, so that the producer does not run away.
 */
import type { JobsOptions } from 'bullmq';
import { Queue, QueueEvents, Worker } from '../../src/index.js';
import type { Watchdog } from '../../__test__/support/watchdog.js';
import type { WatchedServer } from './server.js';

const BULK = 1_000;
/** Jobs that may be unfinished at a time. */
const AHEAD = 20_000;
const LOOK_MS = 5_000;

/** Bytes, but for `jobs`. */
export interface Look {
  readonly seconds: number;
  readonly jobs: number;
  readonly heap: number;
  /** Beyond V8's heap: buffers, threads, and all that the addon holds. */
  readonly native: number;
  readonly redis: number;
  /** Epoch ms: while it lasted, this process did nothing else. */
  readonly from: number;
  readonly to: number;
}

/** What an endless run has seen. */
export interface Endless {
  readonly looks: readonly Look[];
  readonly longest: Watchdog['longest'];
}

/** How many of a hundred jobs are of each kind. */
const kinds: [share: number, opts: (n: number) => JobsOptions][] = [
  [60, () => ({})],
  [5, (n) => ({ jobId: `own-${n}` })],
  [5, (n) => ({ priority: 1 + (n % 10) })],
  [10, (n) => ({ delay: n % 50 })],
  [10, () => ({ attempts: 3, backoff: { type: 'exponential', delay: 5 } })],
  [5, () => ({ lifo: true })],
  [5, (n) => ({ deduplication: { id: `d${n % 1_000}`, ttl: 50 } })],
];

export async function endless(server: WatchedServer, queueName: string, minutes: number): Promise<Endless> {
  const connection = { url: server.url };
  const defaultJobOptions = { removeOnComplete: 1_000, removeOnFail: 1_000 };
  const queue = new Queue(queueName, { connection, defaultJobOptions });
  const events = new QueueEvents(queueName, { connection });
  let [ended, heard, added, wake] = [0, 0, 0, () => {}];
  const worker = new Worker(
    queueName,
    async (job) => {
      if (job.opts.attempts === 3 && job.attemptsMade === 0) throw new Error(`not yet: ${job.id}`);
      if (Number(job.id) % 1_000 === 0) {
        await job.updateProgress(50);
        await job.log('half way');
      }
      return { n: job.data as unknown };
    },
    { connection, concurrency: 100 },
  );
  worker.on('completed', () => ++ended % BULK === 0 && wake());
  events.on('completed', () => heard++);
  const looks: Look[] = [];
  // a collection of all garbage at once is this run's own doing
  const isExcused = (from: number, to: number) =>
    looks.some(({ from: begun, to: ended }) => begun <= to && from <= ended);
  const dog = await server.watch({ isExcused });
  const start = performance.now();
  const end = start + minutes * 60_000;
  let nextLook = start + LOOK_MS;
  while (performance.now() < end) {
    const jobs = Array.from({ length: BULK }, (_, i) => {
      let at = i % 100;
      const [, opts] = kinds.find(([share]) => (at -= share) < 0) ?? kinds[0];
      return { name: `kind ${i % 7}`, data: { i, text: `number ${added + i}` }, opts: opts(added + i) };
    });
    const ids = await queue.addBulk(jobs);
    added += new Set(ids.map(({ id }) => id)).size;
    const limit = performance.now() + 10_000;
    // deduplicated jobs may have been another bulk's: the counts are near, and a look every ten seconds makes them exact
    while (added - ended > AHEAD && performance.now() < limit) {
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), pause(1_000)]);
      const left = Object.values(await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized'));
      if (left.reduce((sum, count) => sum + count, 0) < AHEAD / 2) added = ended;
    }
    if (performance.now() >= nextLook) {
      looks.push(await look(server, start, ended));
      nextLook = performance.now() + LOOK_MS;
    }
  }
  const watched = await dog.end().then(() => dog.longest);
  await worker.close();
  await events.close();
  await queue.obliterate({ force: true });
  await queue.close();
  if (heard === 0) throw new Error('no event was heard');
  return { looks, longest: watched };
}

async function look(server: WatchedServer, start: number, jobs: number): Promise<Look> {
  const from = Date.now();
  globalThis.gc?.();
  const { heapUsed, heapTotal, rss } = process.memoryUsage();
  const to = Date.now();
  const redis = await server.memory();
  return {
    seconds: (performance.now() - start) / 1_000,
    jobs,
    heap: heapUsed,
    native: rss - heapTotal,
    redis,
    from,
    to,
  };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Growth over the last three quarters, by least squares: bytes a second. */
export function slope(looks: readonly Look[], what: 'heap' | 'native' | 'redis'): number {
  const some = looks.slice(Math.floor(looks.length / 4));
  const mean = (of: (look: Look) => number) => some.reduce((sum, one) => sum + of(one), 0) / some.length;
  const [x, y] = [mean((one) => one.seconds), mean((one) => one[what])];
  const up = some.reduce((sum, one) => sum + (one.seconds - x) * (one[what] - y), 0);
  return up / some.reduce((sum, one) => sum + (one.seconds - x) ** 2, 0);
}
