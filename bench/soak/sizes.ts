/** Queues of sizes that nobody should have, and for how long the server was blocked by one command in each part of their lives. */
import { readdirSync } from 'node:fs';
import type { JobsOptions } from 'bullmq';
import { Queue, Worker } from '../../src/index.js';
import { crowds } from './crowds.js';
import type { Blocked, WatchedServer } from './server.js';

const BULK = 10_000;
const HOUR_MS = 3_600_000;

/** One part of a size's life. */
export interface Part {
  readonly what: string;
  readonly seconds: number;
  /** Of the server's main thread. */
  readonly cpuSeconds: number;
  readonly blocked: Blocked;
  readonly notes: string;
}

export interface Size {
  readonly name: string;
  readonly parts: Part[];
}

/** Measures parts one after the other. */
export class Life {
  readonly parts: Part[] = [];

  constructor(
    readonly server: WatchedServer,
    readonly queueName: string,
  ) {}

  async part(what: string, play: () => Promise<unknown>): Promise<void> {
    await this.server.forget();
    const [start, cpu] = [performance.now(), await this.server.cpu()];
    const said = await play();
    const seconds = (performance.now() - start) / 1_000;
    const cpuSeconds = (await this.server.cpu()) - cpu;
    const blocked = await this.server.longest();
    const notes = typeof said === 'string' ? said : '';
    this.parts.push({ what, seconds, cpuSeconds, blocked, notes });
    console.log(`  ${what}: ${seconds.toFixed(1)} s, longest ${blocked.ms.toFixed(1)} ms (${blocked.by}) ${notes}`);
  }

  get connection(): { url: string } {
    return { url: this.server.url };
  }

  queue(): Queue {
    return new Queue(this.queueName, { connection: this.connection });
  }

  async addMany(queue: Queue, count: number, opts: JobsOptions = {}): Promise<string> {
    const before = await this.server.memory();
    for (let at = 0; at < count; at += BULK) {
      const jobs = Array.from({ length: Math.min(BULK, count - at) }, (_, i) => ({
        name: 'job',
        data: { n: at + i },
        opts,
      }));
      await queue.addBulk(jobs);
    }
    return `${Math.round(((await this.server.memory()) - before) / count)} bytes a job in Redis`;
  }

  /** Lets a worker end `count` jobs. */
  async work(count: number, fails = false, concurrency = 100): Promise<void> {
    let ended = 0;
    let done = () => {};
    const all = new Promise<void>((resolve) => (done = resolve));
    const worker = new Worker(
      this.queueName,
      async () => {
        if (fails) throw new Error('no');
      },
      { connection: this.connection, concurrency, limiter: undefined },
    );
    worker.on(fails ? 'failed' : 'completed', () => ++ended >= count && done());
    await all;
    await worker.close();
  }
}

const counts = async (queue: Queue) => JSON.stringify(await queue.getJobCounts());

async function look(life: Life, queue: Queue, state: 'waiting' | 'delayed' | 'failed' | 'completed', count: number) {
  await life.part(`getJobCounts, getJobs of ${state}: the first, the middle and the last hundred`, async () => {
    await queue.getJobCounts();
    for (const from of [0, count / 2, count - 100]) await queue.getJobs([state], from, from + 99);
  });
}

export const sizes: Record<string, (life: Life, scale: number) => Promise<void>> = {
  async 'a million waiting'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(1_000_000 * scale)];
    await life.part('add', () => life.addMany(queue, count));
    await look(life, queue, 'waiting', count);
    await life.part('run a tenth', () => life.work(count / 10));
    await life.part('clean a tenth of those that wait', () => queue.clean(0, count / 10, 'wait'));
    await life.part('drain', () => queue.drain());
    await life.part('add', () => life.addMany(queue, count));
    await life.part('obliterate', () => queue.obliterate({ force: true }));
    await queue.close();
  },

  async 'a million waiting with priorities'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(1_000_000 * scale)];
    await life.part('add', () => life.addMany(queue, count, { priority: 5 }));
    await life.part('run a tenth', () => life.work(count / 10));
    await life.part('drain', () => queue.drain());
    await queue.obliterate({ force: true });
    await queue.close();
  },

  async 'a million delayed'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(1_000_000 * scale)];
    await life.part('add', () => life.addMany(queue, count, { delay: HOUR_MS }));
    await look(life, queue, 'delayed', count);
    await life.part('promoteJobs', () => queue.promoteJobs());
    await life.part('run a tenth', () => life.work(count / 10));
    await life.part('drain', () => queue.drain());
    await life.part('add, all due at once', () => life.addMany(queue, count, { delay: 1 }));
    await life.part('run all', () => life.work(count));
    await life.part('add', () => life.addMany(queue, count, { delay: HOUR_MS }));
    await life.part('clean', () => queue.clean(0, count, 'delayed'));
    await life.part('obliterate', () => queue.obliterate({ force: true }));
    await queue.close();
  },

  async 'a million finished'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(1_000_000 * scale)];
    await life.addMany(queue, count);
    await life.part('run, keeping all', () => life.work(count));
    await look(life, queue, 'completed', count);
    await life.part('retryJobs of completed', async () => {
      await queue.retryJobs({ state: 'completed' });
      return counts(queue);
    });
    await life.part('fail all of them', () => life.work(count, true));
    await look(life, queue, 'failed', count);
    await life.part('countFailedJobs by name and error', async () => {
      const found = await queue.countFailedJobs({ name: 'job', error: 'no' });
      return `${found} found`;
    });
    await life.part('retryJobs of failed', async () => {
      await queue.retryJobs();
      return counts(queue);
    });
    await life.part('fail all of them again', () => life.work(count, true));
    await life.part('clean half of failed', () => queue.clean(0, count / 2, 'failed'));
    await life.part('obliterate', () => queue.obliterate({ force: true }));
    await queue.close();
  },

  async 'a job of 16 MB'(life) {
    const queue = life.queue();
    const data = 'x'.repeat(16 * 2 ** 20);
    await life.part('add', () => queue.add('large', data));
    await life.part('getJob', () => queue.getJob('1'));
    await life.part('run, with a result as large', async () => {
      const worker = new Worker(life.queueName, async (job) => job.data as string, { connection: life.connection });
      await new Promise((resolve) => worker.once('completed', resolve));
      await worker.close();
    });
    await life.part('getCompleted', () => queue.getCompleted());
    await life.part('obliterate', () => queue.obliterate({ force: true }));
    await queue.close();
  },

  async '10,000 queues in one process'(life, scale) {
    const count = Math.round(10_000 * scale);
    await life.server.setting('maxclients', String(count + 500));
    const [rss, files] = [process.memoryUsage.rss(), openFiles()];
    let queues: Queue[] = [];
    await life.part('open, all at once', async () => {
      queues = Array.from({ length: count }, (_, i) => {
        return new Queue(`${life.queueName}-${i}`, { connection: life.connection });
      });
      await Promise.all(queues.map((queue) => queue.waitUntilReady()));
      const [more, kb] = [openFiles() - files, (process.memoryUsage.rss() - rss) / 1_024 / count];
      return `${more} file descriptors, ${kb.toFixed(1)} KB of this process a queue, ${await life.server.connections()} connections`;
    });
    await life.part('add a job to each', () => Promise.all(queues.map((queue) => queue.add('job', 1))));
    await life.part('obliterate each', async () => {
      for (const queue of queues) await queue.obliterate();
    });
    await life.part('close', async () => {
      await Promise.all(queues.map((queue) => queue.close()));
      // sockets are gone a moment after their streams have ended
      for (let looks = 0; looks < 50 && openFiles() > files; looks++) await pause(100);
      return `${openFiles() - files} file descriptors left`;
    });
  },

  async '200 workers on one queue'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(200_000 * scale)];
    const [rss, files] = [process.memoryUsage.rss(), openFiles()];
    const shares = new Map<number, number>();
    let [ended, done] = [0, () => {}];
    let workers: Worker[] = [];
    await life.part('start', async () => {
      workers = Array.from({ length: 200 }, (_, i) => {
        const run = async () => void shares.set(i, (shares.get(i) ?? 0) + 1);
        return new Worker(life.queueName, run, { connection: life.connection, concurrency: 5 });
      });
      for (const worker of workers) worker.on('completed', () => ++ended === count && done());
      await Promise.all(workers.map((worker) => worker.waitUntilReady()));
      const kb = (process.memoryUsage.rss() - rss) / 1_024 / 200;
      return `${openFiles() - files} file descriptors, ${kb.toFixed(0)} KB of this process a worker`;
    });
    await life.part('add and run', async () => {
      const all = new Promise<void>((resolve) => (done = resolve));
      await life.addMany(queue, count);
      await all;
      const least = Math.min(...workers.map((_, i) => shares.get(i) ?? 0));
      return `${shares.size} workers took part, the least busy with ${least} jobs`;
    });
    await life.part('close', () => Promise.all(workers.map((worker) => worker.close())));
    await queue.obliterate({ force: true });
    await queue.close();
  },

  ...crowds,
};

export async function measureSize(server: WatchedServer, name: string, mark: string, scale: number): Promise<Size> {
  const life = new Life(server, `${mark}-${Object.keys(sizes).indexOf(name)}`);
  console.log(name);
  await sizes[name](life, scale);
  return { name, parts: life.parts };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

function openFiles(): number {
  return process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0;
}
