// No call, however many jobs it reaches, keeps the server from all others for long: what is great goes in steps.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FlowJob } from 'bullmq';
import { FlowProducer, Queue, Worker } from '../../src/index.js';
import { useOwnServer } from '../support/use-own-server.js';
import { watchdog, type Watchdog } from '../support/watchdog.js';

const MANY = 20_000;
const FORMS = ['in frames', 'with records'];

describe('calls that reach very many jobs', () => {
  const own = useOwnServer();
  let dog: Watchdog | undefined;
  let queue: Queue;
  let flows: FlowProducer;
  let count = 0;

  beforeEach(async () => {
    queue = new Queue(`q${count++}`, { connection: own.connection });
    flows = new FlowProducer({ connection: own.connection });
    dog = undefined;
  });
  afterEach(async () => {
    await flows.close();
    await queue.close();
    await dog?.end();
  });

  /** From here on no script may take long; many jobs in one call are work for this process, too. */
  const watch = async () => void (dog = await watchdog(own.redis, { mostPause: Infinity }));

  const parentOf = (size: number, opts = {}): FlowJob => ({
    name: 'parent',
    queueName: queue.name,
    opts: { jobId: 'p' },
    children: Array.from({ length: size }, (_, i) => ({ name: 'c', queueName: queue.name, data: i, opts })),
  });

  /** Calls of the library's functions so far. */
  async function calls(): Promise<number> {
    const stats = await own.redis.info('commandstats');
    const of = (command: string) => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    return of('fcall');
  }

  /** Lets a worker end so many jobs. */
  async function work(size: number, fails = false, opts = {}): Promise<void> {
    let ended = 0;
    const run = async () => {
      if (fails) throw new Error('no');
    };
    const worker = new Worker(queue.name, run, { connection: own.connection, concurrency: 200, ...opts });
    await new Promise<void>((resolve) => {
      worker.on(fails ? 'failed' : 'completed', () => ++ended >= size && resolve());
    });
    await worker.close();
  }

  // remove-large-families: a wanted difference (docs/differences.md)
  it('remove a parent of very many, of whom half have ended', async () => {
    await flows.add(parentOf(MANY));
    await watch();
    await work(MANY / 2);
    const before = await calls();
    await queue.remove('p');
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, completed: 0, 'waiting-children': 0 });
    expect(await calls()).toBeGreaterThan(before + MANY / 200);
  });

  it('remove what a parent waits for, and start it', async () => {
    await watch();
    const { job } = await flows.add(parentOf(MANY));
    await job.removeUnprocessedChildren();
    expect(await job.getState()).toBe('waiting');
    expect(await queue.getWaitingCount()).toBe(1);
  });

  it('refuse to remove a great family of whom somebody holds one', async () => {
    await watch();
    const { job } = await flows.add(parentOf(MANY));
    const worker = new Worker(queue.name, null, { connection: own.connection });
    await worker.getNextJob('token');
    await expect(job.remove()).rejects.toThrow('could not be removed because it is locked');
    expect(await queue.getJobCounts()).toMatchObject({ waiting: MANY - 1, active: 1, 'waiting-children': 1 });
    await worker.close();
  });

  it('remove a chain of flows that is very deep', async () => {
    let flow: FlowJob = { name: 'leaf', queueName: queue.name };
    for (let i = 1; i < 5_000; i++) flow = { name: 'link', queueName: queue.name, children: [flow] };
    // a flow is added at once, as in BullMQ
    const { job } = await flows.add(flow);
    await watch();
    await job.remove();
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, 'waiting-children': 0 });
  });

  // retention-count-lowered: a wanted difference (docs/differences.md)
  it.each(['completed', 'failed'] as const)('lower a retention count of %s', async (state) => {
    const fails = state === 'failed';
    await queue.addBulk(Array.from({ length: MANY }, (_, i) => ({ name: 'j', data: i, opts: { jobId: `j${i}` } })));
    await work(MANY, fails);
    await watch();
    const keep = fails ? { removeOnFail: 5 } : { removeOnComplete: 5 };
    await queue.addBulk(Array.from({ length: MANY / 1_000 + 1 }, (_, i) => ({ name: 'j', data: i, opts: keep })));
    await work(MANY / 1_000 + 1, fails, { concurrency: 1 });
    expect(await queue.getJobCountByTypes(state)).toBe(5);
  });

  it('look at a parent of very many', async () => {
    const { job } = await flows.add(parentOf(3_000));
    await queue.add('f', 1, { parent: { id: 'p', queue: queue.qualifiedName }, failParentOnFailure: true });
    await watch();
    await work(1_000);
    const { processed = {}, unprocessed = [] } = await job.getDependencies();
    const count = await job.getDependenciesCount();
    expect([Object.keys(processed).length, unprocessed.length]).toEqual([count.processed, count.unprocessed]);
    expect(Object.keys(await job.getChildrenValues())).toHaveLength(count.processed ?? 0);
    const tree = await flows.getFlow({ id: 'p', queueName: queue.name, maxChildren: 5_000 });
    expect(tree.children).toHaveLength(3_001);
  });

  /** A process with very many active jobs, which never end. */
  async function holdMany(form: string): Promise<Pick<Worker, 'close'>> {
    const job = (i: number) => ({ name: 'j', data: i, opts: form === 'in frames' ? {} : { jobId: `j${i}` } });
    for (let i = 0; i < MANY; i += 1_000) {
      await queue.addBulk(Array.from({ length: 1_000 }, (_, k) => job(i + k)));
    }
    const forever = new Promise<never>(() => undefined);
    const holder = new Worker(queue.name, () => forever, {
      connection: own.connection,
      skipStalledCheck: true,
      concurrency: MANY,
      lockRenewTime: 600_000,
    });
    holder.on('error', () => undefined);
    while ((await queue.getActiveCount()) < MANY) await sleep(20);
    return holder;
  }

  const endLeases = async () => {
    for (const lease of await own.redis.keys(`*${queue.name}*lease:*`)) await own.redis.del(lease);
  };

  it.each(FORMS)('bring back the jobs of a worker that is gone, %s', async (form) => {
    const gone = await holdMany(form);
    const order = await queue.getRanges(['active'], 0, -1, true);
    await endLeases();
    await watch();
    const recoverer = new Worker(queue.name, null, { connection: own.connection, stalledInterval: 50 });
    const stalled: string[] = [];
    const all = new Promise<void>((resolve) => {
      recoverer.on('stalled', (id: string) => stalled.push(id) === MANY && resolve());
    });
    await recoverer.startStalledCheckTimer();
    await all;
    // they are told parcel by parcel, the last of them first
    expect([...stalled].sort()).toEqual([...order].sort());
    expect(await queue.getRanges(['waiting'], 0, -1, true)).toEqual(order);
    await recoverer.close();
    await gone.close(true);
  });

  it.each(FORMS)('list and clean the active jobs of a worker that is gone, %s', async (form) => {
    const gone = await holdMany(form);
    await watch();
    const order = await queue.getRanges(['active'], 0, -1, true);
    expect(new Set(order).size).toBe(MANY);
    const jobs = await queue.getJobs(['active'], 0, -1, true);
    expect(jobs.map(({ id }) => id)).toEqual(order);
    expect(jobs.every(({ processedOn, data }) => processedOn && typeof data === 'number')).toBe(true);
    expect((await queue.getActive(10, 12)).map(({ id }) => id)).toEqual(order.slice(10, 13));
    expect(await queue.clean(0, 0, 'active')).toEqual([]);
    await endLeases();
    expect(await queue.clean(0, 5_000, 'active')).toEqual(order.slice(0, 5_000));
    expect(await queue.clean(0, 0, 'active')).toEqual(order.slice(5_000));
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 0, waiting: 0 });
    await gone.close(true);
  });

  it('list and clean delayed jobs of 100 KB', async () => {
    const data = 'd'.repeat(100_000);
    for (let i = 0; i < 600; i += 50) {
      await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'j', data, opts: { delay: 3_600_000 } })));
    }
    await watch();
    expect((await queue.getJobs(['delayed'])).every((job) => job.data === data)).toBe(true);
    expect(await queue.clean(0, 500, 'delayed')).toHaveLength(500);
    await queue.promoteJobs();
    expect((await queue.getJobs(['waiting'])).every((job) => job.data === data)).toBe(true);
    expect(await queue.clean(0, 0, 'wait')).toHaveLength(100);
  });

  it('add many rows to logs, and read a great flow, without a call for each', async () => {
    const { job } = await flows.add(parentOf(MANY));
    await watch();
    const before = await calls();
    const tree = await flows.getFlow({ id: 'p', queueName: queue.name, maxChildren: MANY });
    expect(tree.children).toHaveLength(MANY);
    const read = await calls();
    expect(read - before).toBeLessThan(MANY / 50);
    const counts = await Promise.all(Array.from({ length: MANY }, (_, i) => job.log(`row ${i}`)));
    expect(counts.every((count, i) => count === i + 1)).toBe(true);
    expect((await calls()) - read).toBeLessThan(MANY / 100);
  });

  it('list thousands of schedulers', async () => {
    const ids = Array.from({ length: 2_000 }, (_, i) => `s${i}`);
    await Promise.all(ids.map((id) => queue.upsertJobScheduler(id, { every: 3_600_000 }, { name: 'x' })));
    await watch();
    const found = await queue.getJobSchedulers(0, -1, true);
    expect(found.map(({ key }) => key).sort()).toEqual(ids.sort());
    expect(await queue.getJobSchedulers(10, 19)).toHaveLength(10);
  });
});
