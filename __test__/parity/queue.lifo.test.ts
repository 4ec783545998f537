// Pins the job option lifo.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

describe.each(libraries)('$name: queue.lifo', ({ lib }) => {
  const stage = useStage(lib);

  async function line(queue: Queue): Promise<string> {
    return (await queue.getWaiting()).map((job) => job.name).join(' ');
  }

  function bulk(queue: Queue, jobs: Record<string, JobsOptions>): Promise<Job[]> {
    return queue.addBulk(Object.entries(jobs).map(([name, opts]) => ({ name, data: {}, opts })));
  }

  /** The names in the order in which one worker starts them. */
  async function order(jobs: number): Promise<string> {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('completed', jobs);
    return log
      .all<[Job]>('active')
      .map(([job]) => job.name)
      .join(' ');
  }

  it('the last added starts first', async () => {
    const queue = stage.queue();
    for (const name of ['a', 'b', 'c']) await queue.add(name, {}, { lifo: true });
    expect(await line(queue)).toBe('c b a');
    expect(await order(3)).toBe('c b a');
  });

  it('goes before jobs without it, which keep their order', async () => {
    const queue = stage.queue();
    await bulk(queue, { a: {}, b: { lifo: true }, c: {}, d: { lifo: true }, e: { lifo: false } });
    expect(await line(queue)).toBe('d b a c e');
    expect((await queue.getJobs(['waiting'])).map((job) => job.name).join(' ')).toBe('e c a b d');
    expect(await order(5)).toBe('d b a c e');
  });

  it('is waiting, and shows the option', async () => {
    const queue = stage.queue();
    const job = await queue.add('a', {}, { lifo: true });
    expect([await job.getState(), job.opts.lifo, (await fetchJob(queue, job.id)).opts.lifo]).toEqual([
      'waiting',
      true,
      true,
    ]);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
  });

  it('tells added and waiting like any job', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await bulk(queue, { a: { lifo: true }, b: { lifo: true } });
    await log.get('waiting', 2);
    expect(log.entries.map(({ event, args }) => [event, args[0]])).toEqual([
      ['added', { jobId: '1', name: 'a' }],
      ['waiting', { jobId: '1' }],
      ['added', { jobId: '2', name: 'b' }],
      ['waiting', { jobId: '2' }],
    ]);
  });

  it('takes custom ids', async () => {
    const queue = stage.queue();
    await bulk(queue, { a: { jobId: 'x' }, b: { jobId: 'y', lifo: true }, c: { jobId: 'x', lifo: true } });
    expect(await line(queue)).toBe('b a');
  });

  it('a delayed job ignores it: it goes to the end when it is due or promoted', async () => {
    const queue = stage.queue();
    const [d] = await bulk(queue, { d: { lifo: true, delay: 60_000 }, e: { lifo: true, delay: 1 }, a: {} });
    await d.promote();
    expect(await line(queue)).toBe('a d');
    // Nothing promotes a job without a worker, so nothing signals that it is due.
    await sleep(10);
    expect(await order(3)).toBe('a d e');
  });

  it('a job tried again at once is next', async () => {
    const queue = stage.queue();
    await bulk(queue, { a: {}, l: { lifo: true, attempts: 3 }, p: { attempts: 2 } });
    const started: string[] = [];
    const worker = stage.worker(async (job) => {
      started.push(job.name);
      if (job.attemptsMade + 1 < (job.opts.attempts || 1)) throw new Error('again');
    });
    await new EventLog(worker, ['completed']).get('completed', 3);
    expect(started.join(' ')).toBe('l l l a p p');
  });

  it('of jobs that are tried again at one time the last to fail is next', async () => {
    const queue = stage.queue();
    const names = ['a', 'b', 'c', 'd'];
    await bulk(queue, Object.fromEntries(names.map((name) => [name, { lifo: true, attempts: 2 }])));
    const gate = stage.gate();
    const fail = async () => {
      await gate.opened;
      throw new Error('again');
    };
    const worker = stage.worker(fail, { concurrency: names.length });
    const log = new EventLog(worker, ['active', 'failed']);
    await log.get('active', names.length);
    await worker.pause(true);
    gate.open();
    await log.get('failed', names.length);
    const failed = log.all<[Job]>('failed').map(([job]) => job.name);
    expect(failed).toEqual(names.toReversed());
    expect(await line(queue)).toBe(names.join(' '));
  });

  it('a job tried again after a pause goes to the end', async () => {
    const queue = stage.queue();
    await bulk(queue, { l: { lifo: true, attempts: 2, backoff: 1 } });
    const gate = stage.gate();
    const started: string[] = [];
    const worker = stage.worker(async (job) => {
      started.push(job.name);
      if (job.name === 'held') await gate.opened;
      if (job.name === 'l' && job.attemptsMade === 0) {
        await bulk(queue, { held: {}, b: {} });
        throw new Error('again');
      }
    });
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('active', 2);
    // The retried job has to be due while the second one is held.
    await sleep(10);
    gate.open();
    await log.get('completed', 3);
    expect(started.join(' ')).toBe('l held b l');
  });

  it('retried by hand it is first again', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.attemptsStarted === 1) throw new Error('first');
    });
    const log = new EventLog(worker, ['failed', 'completed']);
    await bulk(queue, { l: { lifo: true } });
    await log.get('failed');
    await worker.pause();
    await bulk(queue, { a: {}, b: { lifo: true } });
    await (await fetchJob(queue, '1')).retry();
    expect(await line(queue)).toBe('l b a');
  });

  it('waits while the queue is paused', async () => {
    const queue = stage.queue();
    await queue.pause();
    await bulk(queue, { a: {}, b: { lifo: true } });
    expect(await line(queue)).toBe('b a');
    await queue.resume();
    expect(await order(2)).toBe('b a');
  });

  it('wakes an idle worker', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['drained', 'completed']);
    await log.get('drained');
    await queue.add('a', {}, { lifo: true });
    await log.get('completed');
  });

  it('of several hundred in one bulk the last starts first', async () => {
    const queue = stage.queue();
    const jobs = Array.from({ length: 300 }, (_, i) => ({ name: `${i}`, data: {}, opts: { lifo: true } }));
    await queue.addBulk(jobs);
    expect(await line(queue)).toBe(
      jobs
        .map((job) => job.name)
        .reverse()
        .join(' '),
    );
    expect(await order(300)).toBe(
      jobs
        .map((job) => job.name)
        .reverse()
        .join(' '),
    );
  });
});
