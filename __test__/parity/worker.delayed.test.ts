// Pins delayed jobs: when they are due, in which order they start, what tells of them.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

/** Idle workers look by themselves after so many seconds. */
const DRAIN_DELAY = 60;
/** Later than this a due job is too late: nobody has woken who was to take it. The rest is for slow machines. */
const LATE_MS = 20_000;

describe.each(libraries)('$name: worker.delayed', ({ lib }) => {
  const stage = useStage(lib);

  /** A worker that notes when each job started, by the clock the delay is counted in. */
  function startTimes() {
    const started = new Map<string, number>();
    const note = async (job: Job) => void started.set(job.name, Date.now());
    const worker = stage.worker(note, { drainDelay: DRAIN_DELAY });
    return { worker, started, log: new EventLog(worker, ['completed']) };
  }

  it('a job with a delay enters delayed and shows it', async () => {
    const queue = stage.queue();
    const job = await queue.add('later', {}, { delay: 60_000 });
    expect([job.delay, await job.getState()]).toEqual([60_000, 'delayed']);
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 1 });
    const stored = await fetchJob(queue, job.id);
    expect([stored.delay, stored.opts.delay]).toEqual([60_000, 60_000]);
  });

  it('a delay of 0 is none', async () => {
    const queue = stage.queue();
    const job = await queue.add('now', {}, { delay: 0 });
    expect(await job.getState()).toBe('waiting');
    expect((await fetchJob(queue, job.id)).delay).toBe(0);
  });

  it('the global delayed event tells the due time as a number', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const job = await queue.add('later', {}, { delay: 60_000 });
    expect((await log.get('delayed'))[0]).toEqual({ jobId: '1', delay: job.timestamp + 60_000 });
    expect(log.names).toEqual(['added', 'delayed']);
  });

  it('starts when it is due, not before', async () => {
    const queue = stage.queue();
    const { started, log } = startTimes();
    const job = await queue.add('later', {}, { delay: 200 });
    await log.get('completed');
    const due = job.timestamp + 200;
    expect(started.get('later')).toBeGreaterThanOrEqual(due);
    expect(started.get('later')).toBeLessThan(due + LATE_MS);
  });

  it('starts when it is due though the worker was idle before it was added', async () => {
    const queue = stage.queue();
    const { worker, started, log } = startTimes();
    await new EventLog(worker, ['drained']).get('drained');
    const job = await queue.add('later', {}, { delay: 100 });
    await log.get('completed');
    expect(started.get('later')).toBeGreaterThanOrEqual(job.timestamp + 100);
    expect(started.get('later')).toBeLessThan(job.timestamp + 100 + LATE_MS);
  });

  it('is overtaken by one that is due sooner but was added later', async () => {
    const queue = stage.queue();
    const { log } = startTimes();
    await queue.add('far', {}, { delay: 400 });
    await queue.add('near', {}, { delay: 100 });
    await log.get('completed', 2);
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['near', 'far']);
  });

  it('starts in the order of due times, and of adding where these are equal', async () => {
    const queue = stage.queue();
    const timestamp = Date.now();
    const due = { c: 150, a: 50, b: 100, a2: 50, c2: 150, b2: 100 };
    await queue.addBulk(Object.entries(due).map(([name, delay]) => ({ name, data: {}, opts: { delay, timestamp } })));
    const { log } = startTimes();
    await log.get('completed', 6);
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['a', 'a2', 'b', 'b2', 'c', 'c2']);
  });

  it('goes behind what waits when it becomes due', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(job.name);
      if (job.name === 'held') await gate.opened;
    });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.add('held', {});
    await log.get('active');
    const delayed = await queue.add('delayed', {}, { delay: 50 });
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    // The delayed job has to be due before the worker looks for its next.
    await sleep(delayed.timestamp + 60 - Date.now());
    gate.open();
    await log.get('completed', 4);
    expect(order).toEqual(['held', 'a', 'b', 'delayed']);
  });

  it('does not hold up jobs without a delay', async () => {
    const queue = stage.queue();
    await queue.add('later', {}, { delay: 60_000 });
    const { log } = startTimes();
    await queue.add('now', {});
    const [job] = await log.get<[Job]>('completed');
    expect(job.name).toBe('now');
    expect(await queue.getJobCounts('delayed', 'completed')).toEqual({ delayed: 1, completed: 1 });
  });

  it('counts from the timestamp option: one in the past makes it due at once', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const timestamp = Date.now() - 10_000;
    await queue.add('past', {}, { delay: 5_000, timestamp });
    stage.worker(async () => undefined);
    await log.get('completed');
    expect(log.names.slice(0, 4)).toEqual(['added', 'delayed', 'waiting', 'active']);
    expect(log.all('delayed')[0]?.[0]).toEqual({ jobId: '1', delay: timestamp + 5_000 });
  });

  it('counts from the timestamp option: one in the future adds to the delay', async () => {
    const queue = stage.queue();
    const { started, log } = startTimes();
    const timestamp = Date.now() + 150;
    await queue.add('future', {}, { delay: 50, timestamp });
    await log.get('completed');
    expect(started.get('future')).toBeGreaterThanOrEqual(timestamp + 50);
    expect(started.get('future')).toBeLessThan(timestamp + 50 + LATE_MS);
  });

  it('needs the delay: a timestamp in the future alone does not delay', async () => {
    const queue = stage.queue();
    const job = await queue.add('now', {}, { timestamp: Date.now() + 60_000 });
    expect(await job.getState()).toBe('waiting');
  });

  it('shows a delay of 0 once it was due, and keeps the option', async () => {
    const queue = stage.queue();
    const { log } = startTimes();
    await queue.add('later', {}, { delay: 20 });
    const [job] = await log.get<[Job]>('completed');
    expect([job.delay, job.opts.delay]).toEqual([0, 20]);
    const stored = await fetchJob(queue, '1');
    expect([stored.delay, stored.opts.delay]).toEqual([0, 20]);
  });

  it('runs through the global events added, delayed, waiting, active and completed', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    stage.worker(async () => 'done');
    const job = await queue.add('later', {}, { delay: 30 });
    await log.get('drained');
    expect(log.entries.filter(({ event }) => event !== 'drained').map(({ event, args }) => [event, args[0]])).toEqual([
      ['added', { jobId: '1', name: 'later' }],
      ['delayed', { jobId: '1', delay: job.timestamp + 30 }],
      ['waiting', { jobId: '1', prev: 'delayed' }],
      ['active', { jobId: '1', prev: 'waiting' }],
      ['completed', { jobId: '1', returnvalue: 'done', prev: 'active' }],
    ]);
  });

  it('keeps data, name, options and attempts', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.attemptsStarted === 1) throw new Error('first');
      return job.data as unknown;
    });
    const log = new EventLog(worker, ['completed']);
    await queue.add('carry', { a: [1, '日本'] }, { delay: 20, attempts: 2, jobId: 'mine' });
    const [job, result] = await log.get<[Job, unknown]>('completed');
    expect([job.id, job.name, result, job.attemptsMade]).toEqual(['mine', 'carry', { a: [1, '日本'] }, 2]);
  });

  it('starts all of many that are due at once, each once', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { concurrency: 20 });
    const log = new EventLog(worker, ['completed']);
    const timestamp = Date.now();
    await queue.addBulk(
      Array.from({ length: 200 }, () => ({ name: 'later', data: {}, opts: { delay: 100, timestamp } })),
    );
    await log.get('completed', 200);
    const ids = log.all<[Job]>('completed').map(([job]) => Number(job.id));
    expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
    expect(await queue.getJobCounts('delayed', 'waiting', 'active')).toEqual({ delayed: 0, waiting: 0, active: 0 });
  });

  it('that became due while no worker ran starts with the first worker', async () => {
    const queue = stage.queue();
    const job = await queue.add('later', {}, { delay: 20 });
    // Nothing promotes a job without a worker, so nothing signals that it is due.
    await sleep(50);
    expect(await job.getState()).toBe('delayed');
    const { log } = startTimes();
    await log.get('completed');
    expect(await job.getState()).toBe('completed');
  });

  it('is started once by one of two workers', async () => {
    const queue = stage.queue();
    const [one, two] = [startTimes(), startTimes()];
    await queue.addBulk(Array.from({ length: 20 }, (_, i) => ({ name: `n${i}`, data: {}, opts: { delay: 20 + i } })));
    const global = stage.globalLog();
    await global.get('completed', 20);
    await Promise.all([one.worker.close(), two.worker.close()]);
    expect(one.started.size + two.started.size).toBe(20);
    expect(global.all('active')).toHaveLength(20);
  });

  /** Two workers of one slot that found nothing, and look by themselves no sooner than in a minute. The first job holds its worker for good. */
  async function idlePair() {
    const started = new Map<string, number>();
    const gate = stage.gate();
    const process = async (job: Job) => {
      started.set(job.name, Date.now());
      if (job.name === 'held') await gate.opened;
    };
    for (let i = 0; i < 2; i += 1) {
      const worker = stage.worker(process, { drainDelay: DRAIN_DELAY });
      await new EventLog(worker, ['drained']).get('drained');
    }
    return started;
  }

  it('starts beside a worker that took the delayed job before it', async () => {
    const queue = stage.queue();
    const started = await idlePair();
    const log = stage.globalLog();
    await queue.add('held', {}, { delay: 200 });
    const second = await queue.add('second', {}, { delay: 600 });
    await log.get('completed');
    const due = second.timestamp + 600;
    expect(started.get('second')).toBeGreaterThanOrEqual(due);
    expect(started.get('second')).toBeLessThan(due + LATE_MS);
  });

  it.each([
    ['plain', {}],
    ['with a priority', { priority: 5 }],
    ['with an id', { jobId: 'own' }],
  ])('starts beside a worker that knew of it, and took a job %s', async (_, opts) => {
    const queue = stage.queue();
    const started = await idlePair();
    const log = stage.globalLog();
    const second = await queue.add('second', {}, { delay: 800 });
    await sleep(50);
    await queue.add('held', {}, opts);
    await log.get('completed');
    const due = second.timestamp + 800;
    expect(started.get('second')).toBeGreaterThanOrEqual(due);
    expect(started.get('second')).toBeLessThan(due + LATE_MS);
  });

  it('starts beside a worker that took a job as it heard of it', async () => {
    const queue = stage.queue();
    const started = await idlePair();
    const log = stage.globalLog();
    const [second] = await queue.addBulk([
      { name: 'second', data: {}, opts: { delay: 600 } },
      { name: 'held', data: {} },
    ]);
    await log.get('completed');
    expect(started.get('second')).toBeLessThan(second.timestamp + 600 + LATE_MS);
  });
});
