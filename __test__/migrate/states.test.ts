// Jobs in every state, as BullMQ wrote them, are the same jobs here.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { COMMANDS } from '../../src/connection/members.js';
import { QueueAccount } from '../../src/tools/migrate/account.js';
import { Comparer } from '../../src/tools/migrate/comparer.js';
import { Gate, until } from '../support/waiting.js';
import { jobsOf, MAJORS, useBench, type Bench } from './bench.js';

const BACKOFF = { type: 'exponential', delay: 60_000, jitter: 0.5 };

/** Adds jobs that wait, in all ways in which they can. */
async function addWaiting(queue: Queue): Promise<void> {
  await queue.addBulk(Array.from({ length: 20 }, (_, i) => ({ name: `plain-${i}`, data: { i, text: 'ñandú "\\' } })));
  await queue.add('options', [1, { two: null }], {
    attempts: 7,
    backoff: BACKOFF,
    removeOnComplete: { age: 3600, count: 10 },
    removeOnFail: 5,
    keepLogs: 3,
    sizeLimit: 10_000,
    stackTraceLimit: 2,
    timestamp: 1_700_000_000_123,
  });
  await queue.add('named', 'text', { jobId: 'order-17' });
  await queue.add('head', {}, { lifo: true });
  for (const priority of [5, 1, 3, 5, 1]) await queue.add('ranked', { priority }, { priority });
  for (const delay of [3_600_000, 60_000, 3_600_000])
    await queue.add('later', { delay }, { delay, priority: delay === 60_000 ? 2 : 0 });
  await queue.add('owner', {}, { delay: 900_000, deduplication: { id: 'kept', ttl: 600_000 } });
  await queue.add('simple', {}, { deduplication: { id: 'until-it-ends' } });
  await queue.add('large', { text: 'x'.repeat(300_000) });
}

/** Runs jobs that complete, fail for good, or are to be tried again, and one that stays active. */
async function runSome(bench: Bench, queue: Queue): Promise<void> {
  for (const value of [undefined, null, 0, 'ok', { deep: [1, 2] }, 'y'.repeat(10_000)]) {
    await queue.add('completes', { value });
  }
  await queue.add('fails', {}, { attempts: 1 });
  await queue.add('again', {}, { attempts: 3, backoff: { type: 'fixed', delay: 500_000 } });
  const worker = bench.worker(
    async (job: Job) => {
      await job.log(`row of ${job.name}`);
      await job.updateProgress(job.name === 'fails' ? 42 : { half: true });
      if (job.name === 'completes') return (job.data as { value: unknown }).value;
      throw new Error(`no: ${job.name}`);
    },
    { name: 'their-worker' },
  );
  await until('all to end', async () => {
    const counts = await queue.getJobCounts('completed', 'failed', 'delayed');
    return counts.completed === 6 && counts.failed === 1 && counts.delayed === 1;
  });
  await worker.close();
}

describe.each(MAJORS)('moving from $name', (major) => {
  const bench = useBench(major);

  it('keeps each job, with all that is known of it, in its state and in its order', async () => {
    const queue = bench.queue();
    await runSome(bench, queue);
    await addWaiting(queue);
    const before = await jobsOf(queue);
    expect(Object.keys(before)).toEqual(['waiting', 'prioritized', 'delayed', 'completed', 'failed']);

    const { accounts } = await bench.move({ compares: true });
    const target = bench.target();
    expect(await jobsOf(target)).toEqual(before);
    const [account] = accounts;
    expect(account?.total).toBe(Object.values(before).flat().length);
    expect(account?.stays).toEqual(new Map());
    expect([account?.compared, account?.wentOn, account?.differ]).toEqual([account?.total, 0, new Map()]);
    expect(await bench.jobKeys()).toEqual([]);
  });

  it('runs each of them once, in the order in which BullMQ would have', async () => {
    const queue = bench.queue();
    await addWaiting(queue);
    const expected = [...(await queue.getWaiting()), ...(await queue.getPrioritized())].map(({ id }) => id);
    await bench.move();
    const ran: unknown[] = [];
    bench.ownWorker(async (job) => ran.push(job.id));
    await until('all to run', () => ran.length >= expected.length);
    expect(ran).toEqual(expected);
  });

  it('gives new jobs numbers above all that were given', async () => {
    const queue = bench.queue();
    await queue.addBulk(Array.from({ length: 7 }, () => ({ name: 'a', data: {} })));
    const last = (await queue.add('b', {})).id as string;
    await bench.move();
    expect((await bench.target().add('c', {})).id).toBe(String(Number(last) + 1));
  });

  it('keeps deduplication ids for the job that owns them, and for the time that is left', async () => {
    const queue = bench.queue();
    await queue.add('a', {}, { jobId: 'x', delay: 900_000, deduplication: { id: 'timed', ttl: 600_000 } });
    await queue.add('a', {}, { jobId: 'y', deduplication: { id: 'untimed' } });
    await bench.move();
    const target = bench.target();
    expect(await target.getDeduplicationJobId('timed')).toBe('x');
    expect((await target.add('a', {}, { deduplication: { id: 'untimed' } })).id).toBe('y');
    const left = await bench.redis.pttl(`${bench.base()}de:timed`);
    expect(left).toBeGreaterThan(500_000);
    expect(left).toBeLessThanOrEqual(600_000);
  });

  it('keeps what is to be added when the owner of a deduplication id has ended', async () => {
    const queue = bench.queue();
    const deduplication = { id: 'd', keepLastIfActive: true };
    await queue.add('owner', {}, { deduplication, attempts: 2, backoff: { type: 'fixed', delay: 900_000 } });
    const gate = new Gate();
    const worker = bench.worker(async () => {
      await gate.opened;
      throw new Error('not now');
    });
    await until('it to be active', async () => (await queue.getActiveCount()) === 1);
    await queue.add('next', { n: 7 }, { deduplication, attempts: 5, priority: 3 });
    gate.open();
    await until('it to wait for its second attempt', async () => (await queue.getDelayedCount()) === 1);
    await worker.close();
    const { accounts } = await bench.move();
    expect(accounts[0]?.stays).toEqual(new Map());
    expect(await bench.jobKeys()).toEqual([]);

    const target = bench.target();
    await (await target.getDelayed())[0]?.promote();
    const ran: unknown[] = [];
    bench.ownWorker(async ({ name, data, opts }) => ran.push([name, data, opts.attempts, opts.priority ?? 0]));
    await until('both to run', () => ran.length === 2);
    expect(ran).toEqual([
      ['owner', {}, 2, 0],
      ['next', { n: 7 }, 5, 3],
    ]);
  });

  it('takes over the pause and the limits before there is a job', async () => {
    const queue = bench.queue();
    await queue.setGlobalConcurrency(3);
    await queue.setGlobalRateLimit(10, 60_000);
    await queue.pause();
    await queue.add('a', {});
    const mover = await bench.move();
    const target = bench.target();
    expect(await target.isPaused()).toBe(true);
    expect(await target.getGlobalConcurrency()).toBe(3);
    expect(await target.getGlobalRateLimit()).toEqual({ max: 10, duration: 60_000 });
    expect((await target.getWaiting()).map(({ name }) => name)).toEqual(['a']);
    expect(mover.accounts[0]?.settings).toMatchObject({ paused: '1', concurrency: '3', max: '10', duration: '60000' });
    // who resumes is not paused again by the next move
    await target.resume();
    await bench.move();
    expect(await target.isPaused()).toBe(false);
  });

  it('leaves active jobs to their worker, and moves what they become', async () => {
    const queue = bench.queue();
    await queue.addBulk(['slow', 'next'].map((name) => ({ name, data: {} })));
    let finish = (): void => {};
    const worker = bench.worker(() => new Promise<void>((resolve) => (finish = resolve)));
    await until('one to be active', async () => (await queue.getActiveCount()) === 1);
    await worker.pause(true);
    await bench.move();
    expect(await queue.getActiveCount()).toBe(1);
    finish();
    await until('it to complete', async () => (await queue.getCompletedCount()) === 1);
    await bench.move();
    const after = await jobsOf(bench.target());
    expect(Object.entries(after).map(([state, jobs]) => [state, jobs.map(({ name }) => name)])).toEqual([
      ['waiting', ['next']],
      ['completed', ['slow']],
    ]);
  });

  it('leaves a job whose id is taken here, and says so', async () => {
    const target = bench.target();
    await target.add('ours', {}, { jobId: 'same' });
    const queue = bench.queue();
    await queue.add('theirs', {}, { jobId: 'same' });
    await queue.add('theirs', {}, { jobId: 'other' });
    const { accounts } = await bench.move();
    expect(accounts[0]?.stays).toEqual(new Map([['exists', ['same']]]));
    expect((await queue.getJob('same'))?.name).toBe('theirs');
    expect((await target.getJob('same'))?.name).toBe('ours');
    expect((await target.getJob('other'))?.name).toBe('theirs');
  });

  it('tells in what a job differs from what it was', async () => {
    const queue = bench.queue();
    await queue.addBulk(['same', 'other'].map((jobId) => ({ name: 'n', data: { a: 1 }, opts: { jobId } })));
    const { native } = bench.movable('')[COMMANDS];
    const account = new QueueAccount(bench.name);
    const source = `bull:${bench.name}:`;
    await new Comparer(native, account).toHere('wait', 0, async () => {
      await native.adoptJobs('wait', 0, [source], false, Date.now());
      await native.updateData('other', '{"a":2}');
      await native.addLogs(['other'], ['row'], new Float64Array([0]));
    });
    expect([account.compared, account.wentOn]).toEqual([2, 0]);
    // a log is looked at where there was one
    expect(account.differ).toEqual(new Map([['other', ['data']]]));
  });

  it('compares what lasts of a job that a worker had meanwhile', async () => {
    const queue = bench.queue();
    await queue.add('n', { a: 1 }, { jobId: 'ran' });
    const target = bench.target();
    const { native } = bench.movable('')[COMMANDS];
    const account = new QueueAccount(bench.name);
    await new Comparer(native, account).toHere('wait', 0, async () => {
      await native.adoptJobs('wait', 0, [`bull:${bench.name}:`], false, Date.now());
      const worker = bench.ownWorker(async (job) => job.updateData({ a: 2 }));
      await until('it to complete', async () => (await target.getCompletedCount()) === 1);
      await worker.close();
    });
    expect([account.compared, account.wentOn, account.differ]).toEqual([1, 1, new Map()]);
  });

  it('moves nothing when it only tries, and tells the same', async () => {
    const queue = bench.queue();
    await addWaiting(queue);
    const before = await jobsOf(queue);
    const { accounts } = await bench.move({ tries: true });
    expect(await jobsOf(queue)).toEqual(before);
    expect(await jobsOf(bench.target())).toEqual({});
    const [tried] = accounts;
    const [moved] = (await bench.move()).accounts;
    expect(Object.fromEntries(tried?.moved ?? [])).toEqual(Object.fromEntries(moved?.moved ?? []));
  });
});
