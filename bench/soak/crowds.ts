/** Calls that reach a great many jobs at once: each part is one call of a user, or what a worker does behind it. */
import type { Queue } from '../../src/index.js';
import { FlowProducer, Worker } from '../../src/index.js';
import type { Life } from './sizes.js';

const HOUR_MS = 3_600_000;

type Crowd = (life: Life, scale: number) => Promise<void>;

async function withFlows(life: Life, play: (flows: FlowProducer, queue: Queue) => Promise<void>): Promise<void> {
  const [flows, queue] = [new FlowProducer({ connection: life.connection }), life.queue()];
  await play(flows, queue);
  await queue.obliterate({ force: true });
  await flows.close();
  await queue.close();
}

const parentOf = (life: Life, count: number, opts = {}) => ({
  name: 'parent',
  queueName: life.queueName,
  opts: { jobId: 'p' },
  children: Array.from({ length: count }, (_, i) => ({ name: 'c', queueName: life.queueName, data: i, opts })),
});

/** Lets a worker end one more job, which is kept as `keep` says. */
async function endOne(life: Life, queue: Queue, keep: object, fails = false): Promise<void> {
  await queue.add('one', 1, keep);
  await life.work(1, fails, 1);
}

export const crowds: Record<string, Crowd> = {
  async 'retention that is lowered'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(100_000 * scale)];
    for (const fails of [false, true]) {
      const what = fails ? 'failed' : 'completed';
      await life.addMany(queue, count);
      await life.work(count, fails);
      const keep = fails ? { removeOnFail: 5 } : { removeOnComplete: 5 };
      await life.part(`one job that keeps 5 of ${count} ${what}`, async () => {
        await endOne(life, queue, keep, fails);
        return JSON.stringify(await queue.getJobCounts(what));
      });
      for (let i = 0; i < 3; i++) await endOne(life, queue, keep, fails);
      await life.part(`and its followers`, () => life.addMany(queue, 1_000, keep).then(() => life.work(1_000, fails)));
      await queue.obliterate({ force: true });
    }
    await queue.close();
  },

  async 'retried jobs'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(100_000 * scale)];
    for (const state of ['failed', 'completed'] as const) {
      for (const concurrency of [1, 100, 2_000]) {
        await life.addMany(queue, count);
        await life.work(count, state === 'failed');
        await life.part(`retryJobs of ${count} ${state}`, () => queue.retryJobs({ state }));
        await life.part(`a worker of ${concurrency} takes them`, () => life.work(20_000 * scale, false, concurrency));
        await queue.obliterate({ force: true });
      }
    }
    await queue.close();
  },

  async 'a parent of very many'(life, scale) {
    await withFlows(life, async (flows, queue) => {
      const count = Math.round(100_000 * scale);
      await life.part(`add ${count} children`, () => flows.add(parentOf(life, count)));
      await life.part('getDependencies, getDependenciesCount', async () => {
        const parent = (await queue.getJob('p'))!;
        await parent.getDependencies({ unprocessed: { count: 1_000 } });
        return JSON.stringify(await parent.getDependenciesCount());
      });
      await life.part('all of getDependencies', async () => {
        const { unprocessed } = await (await queue.getJob('p'))!.getDependencies();
        return `${unprocessed?.length} unprocessed`;
      });
      await life.part('getFlow', () => flows.getFlow({ id: 'p', queueName: life.queueName, maxChildren: count }));
      await life.part('run half of them', () => life.work(count / 2));
      await life.part('getChildrenValues', async () => (await queue.getJob('p'))!.getChildrenValues());
      await life.part('remove, with its children', () => queue.remove('p'));
      await flows.add(parentOf(life, count));
      await life.part('removeUnprocessedChildren', async () => (await queue.getJob('p'))!.removeUnprocessedChildren());
      await queue.obliterate({ force: true });
      await flows.add(parentOf(life, count));
      await life.part('remove without its children', () => queue.remove('p', { removeChildren: false }));
      await queue.obliterate({ force: true });
      await flows.add(parentOf(life, count));
      await life.part('obliterate', () => queue.obliterate({ force: true }));
    });
  },

  async 'a parent of delayed children'(life, scale) {
    await withFlows(life, async (flows, queue) => {
      const count = Math.round(100_000 * scale);
      await life.part(`add ${count} of them`, () => flows.add(parentOf(life, count, { delay: HOUR_MS })));
      await life.part('remove, with its children', () => queue.remove('p'));
      await life.part(`add ${count} with priorities`, () => flows.add(parentOf(life, count, { priority: 3 })));
      await life.part('drain', () => queue.drain());
    });
  },

  async 'a deep chain of flows'(life, scale) {
    await withFlows(life, async (flows, queue) => {
      let flow = { name: 'leaf', queueName: life.queueName, children: [] as unknown[], opts: {} as object };
      const depth = Math.round(5_000 * scale);
      for (let i = 1; i < depth; i++) flow = { name: 'link', queueName: life.queueName, children: [flow], opts: {} };
      let id = '';
      await life.part(`add ${depth} levels`, async () => {
        id = (await flows.add(flow as Parameters<FlowProducer['add']>[0])).job.id!;
      });
      await life.part('remove, with its children', () => queue.remove(id));
      await life.part('add it again', async () => {
        id = (await flows.add(flow as Parameters<FlowProducer['add']>[0])).job.id!;
      });
      await life.part('removeUnprocessedChildren', async () => (await queue.getJob(id))!.removeUnprocessedChildren());
    });
  },

  async 'looks and sweeps'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(100_000 * scale)];
    await life.part(`addBulk of ${count} in one call`, () => {
      return queue.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'job', data: { n: i } })));
    });
    await life.part('getJobs of all', () => queue.getJobs(['waiting'], 0, -1));
    await life.part('clean all that wait', () => queue.clean(0, count, 'wait'));
    await life.part(`addBulk of ${count} delayed ones`, () => {
      return queue.addBulk(
        Array.from({ length: count }, (_, i) => ({ name: 'job', data: { n: i }, opts: { delay: HOUR_MS } })),
      );
    });
    await life.part('getJobs of all', () => queue.getJobs(['delayed'], 0, -1));
    await life.part('clean all that are delayed', () => queue.clean(0, count, 'delayed'));
    await life.addMany(queue, count);
    await life.part('clean all that wait, by age', () => queue.clean(1, count, 'wait'));
    await life.addMany(queue, count, { jobId: undefined, attempts: 2, lifo: true });
    await life.part('clean the front list by age', () => queue.clean(1, count, 'wait'));
    await queue.obliterate({ force: true });
    await life.addMany(queue, count);
    await life.work(count);
    await life.part('getJobs of all completed', () => queue.getJobs(['completed'], 0, -1));
    await life.part('clean them', () => queue.clean(0, count, 'completed'));
    await queue.close();
  },

  async 'dead workers'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(10_000 * scale)];
    for (const opts of [{}, { priority: 1 }]) {
      await life.addMany(queue, count, opts);
      const holder = new Worker(life.queueName, null, { connection: life.connection, lockDuration: 1_000 });
      await holder.waitUntilReady();
      for (let i = 0; i < count; i++) await holder.getNextJob('token');
      await life.part(`getJobs of ${count} active`, () => queue.getJobs(['active'], 0, -1));
      await pause(1_500);
      await life.part(`${count} stalled jobs`, async () => {
        await holder.startStalledCheckTimer();
        const waiting = async () => (await queue.getWaitingCount()) + (await queue.getPrioritizedCount());
        for (let looks = 0; looks < 100 && (await waiting()) < count; looks++) await pause(100);
        return JSON.stringify(await queue.getJobCounts('active', 'waiting', 'prioritized'));
      });
      await holder.close();
      await queue.obliterate({ force: true });
    }
    await queue.close();
  },

  async 'many schedulers'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(20_000 * scale)];
    await life.part(`add ${count}`, async () => {
      for (let at = 0; at < count; at += 500) {
        const some = Array.from({ length: Math.min(500, count - at) }, (_, i) => at + i);
        await Promise.all(some.map((i) => queue.upsertJobScheduler(`s${i}`, { every: HOUR_MS + i }, { name: 'x' })));
      }
    });
    await life.part('getJobSchedulers', async () => `${(await queue.getJobSchedulers(0, -1)).length} found`);
    await life.part('remove one', () => queue.removeJobScheduler('s7'));
    await queue.obliterate({ force: true });
    await queue.close();
  },

  async 'a long log'(life, scale) {
    const [queue, count] = [life.queue(), Math.round(100_000 * scale)];
    const job = await queue.add('job', 1);
    await life.part(`${count} rows, a thousand at a time`, async () => {
      for (let at = 0; at < count; at += 1_000) {
        await Promise.all(Array.from({ length: 1_000 }, (_, i) => job.log(`row ${at + i}`)));
      }
    });
    await life.part('getJobLogs', async () => `${(await queue.getJobLogs(job.id!)).count} rows`);
    await queue.obliterate({ force: true });
    await queue.close();
  },
};

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
