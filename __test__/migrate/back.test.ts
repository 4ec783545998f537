// Everything returns to BullMQ 6: what came from there, and what was added here.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import type { Queue as OwnQueue } from '../../src/index.js';
import { Returner } from '../../src/tools/migrate/returner.js';
import { Gate, until } from '../support/waiting.js';
import { jobsOf, MAJORS, useBench } from './bench.js';

const HOUR = 3_600_000;

describe('moving back to BullMQ 6', () => {
  const bench = useBench(MAJORS[0]);

  async function moveBack(suffixes: readonly string[] = ['']): Promise<Returner> {
    const returner = new Returner(
      suffixes.map((suffix) => bench.movable(suffix)),
      { compares: true },
    );
    await returner.move();
    for (const { compared, total, differ } of returner.accounts) expect([compared, differ]).toEqual([total, new Map()]);
    return returner;
  }

  /** Adds jobs in all ways in which they can wait, and runs some that complete or fail. */
  async function fill(
    queue: Queue,
    worker: (processor: (job: Job) => Promise<unknown>) => { close(): Promise<void> },
  ): Promise<void> {
    await queue.addBulk(
      Array.from({ length: 70 }, (_, i) => ({ name: i % 9 === 0 ? 'fails' : 'completes', data: { i } })),
    );
    const running = worker(async (job) => {
      if (job.name === 'fails') throw new Error('no');
      if ((job.data as { i: number }).i === 1) await job.log('a row');
      return (job.data as { i: number }).i === 2 ? 'y'.repeat(10_000) : { of: job.id };
    });
    await until('all to end', async () => (await queue.getJobCountByTypes('completed', 'failed')) === 70);
    await running.close();
    await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'waits', data: { i } })));
    await queue.add('named', {}, { jobId: 'x', attempts: 4, backoff: { type: 'fixed', delay: 7 } });
    for (const priority of [3, 1, 3]) await queue.add('ranked', {}, { priority });
    for (const delay of [2 * HOUR, HOUR]) await queue.add('later', {}, { delay });
    await queue.add('owner', {}, { delay: HOUR, deduplication: { id: 'd', ttl: HOUR } });
    await queue.add('large', 'x'.repeat(300_000));
  }

  it('gives back what came, as it was', async () => {
    const queue = bench.queue();
    await fill(queue, (processor) => bench.worker(processor, { name: 'theirs' }));
    await queue.upsertJobScheduler(
      'hourly',
      { pattern: '0 * * * *' },
      { name: 'tick', data: { a: 1 }, opts: { attempts: 2 } },
    );
    const before = await jobsOf(queue);
    const [scheduler] = await queue.getJobSchedulers();
    await bench.move();
    const { accounts } = await moveBack();
    expect(accounts[0]?.stays).toEqual(new Map());
    expect(await jobsOf(bench.target())).toEqual({});
    expect(await jobsOf(queue)).toEqual(before);
    expect((await queue.getJobSchedulers())[0]).toEqual(scheduler);
    expect(await queue.getDeduplicationJobId('d')).toBe(before.delayed?.find(({ name }) => name === 'owner')?.id);
  });

  it('gives what was added and run here', async () => {
    const target = bench.target();
    await fill(target, (processor) => bench.ownWorker(processor, { name: 'ours' }));
    await target.upsertJobScheduler('hourly', { every: HOUR, offset: 60_000 }, { name: 'tick', data: { a: 1 } });
    const before = await jobsOf(target);
    const { accounts } = await moveBack();
    expect(accounts[0]?.total).toBe(Object.values(before).flat().length);
    expect(await jobsOf(target)).toEqual({});
    const queue = bench.queue();
    expect(await jobsOf(queue)).toEqual(before);
    expect((await queue.getJobSchedulers()).map(({ key, name, every }) => [key, name, Number(every)])).toEqual([
      ['hourly', 'tick', HOUR],
    ]);

    const ran: unknown[] = [];
    bench.worker(async (job) => ran.push(job.id));
    const expected = [...(before.waiting ?? []), ...(before.prioritized ?? [])].map(({ id }) => id);
    await until('all to run', () => ran.length === expected.length);
    expect(ran).toEqual(expected);
    const last = Math.max(
      ...Object.values(before)
        .flat()
        .map(({ id }) => Number(id) || 0),
    );
    expect(Number((await queue.add('next', {})).id)).toBeGreaterThan(last);
  });

  it('gives flows back, whose jobs then finish there', async () => {
    const flows = bench.ownFlows();
    const child = (name: string, suffix = ''): object => ({
      name,
      queueName: bench.name + suffix,
      opts: { jobId: name },
    });
    await flows.add({
      ...child('root'),
      children: [child('done'), { ...child('middle', '-b'), children: [child('leaf-1'), child('leaf-2', '-b')] }],
    } as Parameters<typeof flows.add>[0]);
    await flows.add({
      name: 'framed',
      queueName: bench.name,
      opts: { jobId: 'framed' },
      children: Array.from({ length: 20 }, (_, i) => ({ name: 'in-frame', queueName: `${bench.name}-b`, data: { i } })),
    });
    const target = bench.target();
    const worker = bench.ownWorker(async (job) => job.name);
    await until('those of one queue to complete', async () => (await target.getCompletedCount()) === 2);
    await worker.close();
    const { accounts } = await moveBack(['', '-b']);
    expect(accounts.map(({ stays }) => [...stays])).toEqual([[], []]);
    expect([await jobsOf(target), await jobsOf(bench.target('-b'))]).toEqual([{}, {}]);
    const processor = async (job: Job): Promise<unknown> => Object.keys(await job.getChildrenValues()).length;
    bench.worker(processor);
    bench.worker(processor, {}, '-b');
    const queue = bench.queue();
    await until('the roots to complete', async () => (await queue.getCompletedCount()) === 4);
    expect((await queue.getJob('root'))?.returnvalue).toBe(2);
    expect((await queue.getJob('framed'))?.returnvalue).toBe(20);
  });

  it('gives the pause and the limits, as they are by then', async () => {
    const queue = bench.queue();
    await queue.pause();
    await queue.setGlobalConcurrency(3);
    await queue.add('a', {});
    await bench.move();
    const target = bench.target();
    await target.resume();
    await target.setGlobalConcurrency(4);
    await moveBack();
    expect(await queue.isPaused()).toBe(false);
    expect(await queue.getGlobalConcurrency()).toBe(4);
    let ran = false;
    bench.worker(async () => (ran = true));
    await until('it to run', () => ran);
  });

  it('leaves a paused job scheduler here, paused, and gives what it had made', async () => {
    const target = bench.target() as unknown as OwnQueue;
    await target.upsertJobScheduler('off', { every: HOUR }, { name: 'never' });
    await target.pauseJobScheduler('off');
    // its run waits for the next try
    const template = { name: 'tick', opts: { attempts: 2, backoff: HOUR } };
    await target.upsertJobScheduler('failing', { every: HOUR, offset: 1 }, template);
    const [run] = await target.getDelayed();
    await run?.promote();
    const worker = bench.ownWorker(async () => {
      throw new Error('not now');
    });
    await until('it to fail', async () => (await target.getJob(run?.id ?? ''))?.attemptsMade === 1);
    await worker.close();
    await target.pauseJobScheduler('failing');
    const before = await target.getJobSchedulers();
    expect(before.map(({ key, paused }) => [key, paused]).sort()).toEqual([
      ['failing', true],
      ['off', true],
    ]);
    const { accounts } = await moveBack();
    expect([accounts[0]?.schedulers, accounts[0]?.total, accounts[0]?.stays]).toEqual([0, 1, new Map()]);
    expect(await target.getJobSchedulers()).toEqual(before);
    const queue = bench.queue();
    expect(await queue.getJobSchedulers()).toEqual([]);
    const ran: string[] = [];
    await (await queue.getDelayed())[0]?.promote();
    bench.worker(async ({ name }) => ran.push(name));
    await until('it to run', async () => (await queue.getCompletedCount()) === 1);
    expect(ran).toEqual(['tick']);
    expect(await queue.getJobCountByTypes('delayed', 'waiting', 'prioritized')).toBe(0);

    for (const id of ['off', 'failing']) await target.resumeJobScheduler(id);
    await moveBack();
    expect((await queue.getJobSchedulers()).map(({ key }) => key).sort()).toEqual(['failing', 'off']);
    expect(await target.getJobSchedulersCount()).toBe(0);
  });

  it('gives a job with a deadline, which BullMQ runs however late it is, and so do we when it returns', async () => {
    const target = bench.target();
    const opts = { expireAfter: 1 } as object;
    await target.add('late', {}, { ...opts, delay: HOUR });
    await moveBack();
    const queue = bench.queue();
    expect((await queue.getJob('1'))?.opts).toMatchObject(opts);
    await (await queue.getJob('1'))?.promote();
    const ran: string[] = [];
    const worker = bench.worker(async ({ id }) => ran.push(`there ${id}`));
    await until('it to run there', async () => (await queue.getCompletedCount()) === 1);
    await worker.close();
    const { id } = await queue.add('late', {}, opts);
    await bench.move();
    expect((await target.getJob(id as string))?.opts).toMatchObject(opts);
    bench.ownWorker(async (job) => ran.push(`here ${job.id}`));
    await until('it to run here', () => ran.length === 2);
    expect(ran).toEqual(['there 1', `here ${id}`]);
  });

  it('gives what is to be added when the owner of a deduplication id has ended', async () => {
    const target = bench.target();
    const deduplication = { id: 'd', keepLastIfActive: true };
    await target.add('owner', {}, { deduplication, attempts: 2, backoff: { type: 'fixed', delay: 900_000 } });
    const gate = new Gate();
    const worker = bench.ownWorker(async () => {
      await gate.opened;
      throw new Error('not now');
    });
    await until('it to be active', async () => (await target.getActiveCount()) === 1);
    await target.add('next', { n: 7 }, { deduplication, attempts: 5, delay: 40 });
    gate.open();
    await until('it to wait for its second attempt', async () => (await target.getDelayedCount()) === 1);
    await worker.close();
    await moveBack();
    const queue = bench.queue();
    await (await queue.getDelayed())[0]?.promote();
    const ran: unknown[] = [];
    bench.worker(async ({ name, data, opts }) => ran.push([name, data, opts.attempts]));
    await until('both to run', () => ran.length === 2);
    expect(ran).toEqual([
      ['owner', {}, 2],
      ['next', { n: 7 }, 5],
    ]);
    await until('its id to go', async () => (await queue.getDeduplicationJobId('d')) === null);
  });

  it('leaves numbers free for jobs that are still added here', async () => {
    const target = bench.target();
    await target.add('a', {});
    await moveBack();
    const queue = bench.queue();
    // an id that was given twice would make BullMQ drop the second job
    const [theirs, own] = [await queue.add('theirs', {}), await target.add('own', {})];
    expect(theirs.id).not.toBe(own.id);
    await moveBack();
    expect((await queue.getWaiting()).map(({ name }) => name).sort()).toEqual(['a', 'own', 'theirs']);
  });
});

describe('moving back to BullMQ 5', () => {
  const bench = useBench(MAJORS[1]);

  it('gives a paused queue its jobs where it looks for them when it is resumed', async () => {
    const queue = bench.queue();
    await queue.add('first', {});
    await queue.pause();
    await bench.move();
    await queue.add('second', {});
    await new Returner([bench.movable('')]).move();
    expect(await queue.isPaused()).toBe(true);
    await queue.add('third', {});
    await queue.resume();
    const ran: string[] = [];
    bench.worker(async ({ name }) => ran.push(name));
    await until('all to run', () => ran.length === 3);
    expect(ran.sort()).toEqual(['first', 'second', 'third']);
  });

  it('gives a queue that was resumed meanwhile the jobs that it was paused with', async () => {
    const queue = bench.queue();
    await queue.pause();
    await bench.move({ gap: 1_000 });
    await queue.add('there', {});
    const target = bench.target();
    await target.resume();
    await target.add('here', {});
    await new Returner([bench.movable('')]).move();
    const ran: string[] = [];
    bench.worker(async ({ name }) => ran.push(name));
    await until('both to run', () => ran.length === 2);
    expect(ran.sort()).toEqual(['here', 'there']);
  });
});
