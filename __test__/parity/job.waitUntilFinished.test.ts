// Pins Job#waitUntilFinished: success, failure, time-out, jobs that are done or gone.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: job.waitUntilFinished', ({ lib }) => {
  const stage = useStage(lib);

  it('resolves with the return value', async () => {
    const queue = stage.queue();
    const events = stage.events();
    stage.worker(async (job) => ({ doubled: 2 * (job.data as number) }));
    const job = await queue.add('double', 21);
    expect(await job.waitUntilFinished(events)).toEqual({ doubled: 42 });
  });

  it.each([
    ['undefined', undefined, null],
    ['null', null, null],
    ['zero', 0, 0],
    ['false', false, false],
    ['an empty string', '', ''],
    ['a Date', new Date(5), '1970-01-01T00:00:00.005Z'],
  ])('resolves with the JSON of %s', async (_, value, json) => {
    const queue = stage.queue();
    const events = stage.events();
    const job = await queue.add('job', {}, { delay: 50 });
    const waiting = job.waitUntilFinished(events);
    stage.worker(async () => value);
    expect(await waiting).toStrictEqual(json);
    expect(await job.waitUntilFinished(events)).toStrictEqual(json);
  });

  it('rejects with an Error of the failed reason', async () => {
    const queue = stage.queue();
    const events = stage.events();
    stage.worker(async () => {
      throw new TypeError('no paint');
    });
    const job = await queue.add('job', {}, { delay: 50 });
    expect((await rejection(job.waitUntilFinished(events))).message).toBe('no paint');
  });

  it('outlasts failures that are retried', async () => {
    const queue = stage.queue();
    const events = stage.events();
    stage.worker(async (job) => {
      if (job.attemptsStarted < 3) throw new Error('not yet');
      return 'at last';
    });
    const job = await queue.add('job', {}, { attempts: 3, backoff: 10 });
    expect(await job.waitUntilFinished(events)).toBe('at last');
  });

  it('settles at once for a job that completed or failed before', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.name === 'fails') throw new Error('no');
      return 'done';
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    const [passes, fails] = await queue.addBulk(['passes', 'fails'].map((name) => ({ name, data: {} })));
    await log.when('both to finish', () => log.entries.length === 2);
    // These events start after both ends and see neither; only the stored state can tell.
    const events = stage.events({ lastEventId: '$' });
    expect(await passes?.waitUntilFinished(events)).toBe('done');
    expect((await rejection(fails?.waitUntilFinished(events) ?? Promise.resolve())).message).toBe('no');
  });

  it('works on a job from getJob', async () => {
    const queue = stage.queue();
    const events = stage.events();
    await queue.add('job', {}, { delay: 50 });
    const waiting = (await fetchJob(queue, '1')).waitUntilFinished(events);
    stage.worker(async () => 'done');
    expect(await waiting).toBe('done');
  });

  it('serves many callers of one job', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const job = await queue.add('job', {}, { delay: 50 });
    const waiting = Array.from({ length: 8 }, () => job.waitUntilFinished(events));
    stage.worker(async () => 'done');
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 8 }, () => 'done'));
  });

  it('tells the results of many jobs apart', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const jobs = await queue.addBulk(
      Array.from({ length: 8 }, (_, i) => ({ name: 'job', data: i, opts: { delay: 30 } })),
    );
    const waiting = jobs.map((job) => job.waitUntilFinished(events));
    stage.worker(async (job) => `result ${String(job.data)}`, { concurrency: 5 });
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 8 }, (_, i) => `result ${i}`));
  });

  it('does not change the instance it was called on', async () => {
    const queue = stage.queue();
    const events = stage.events();
    stage.worker(async () => 'done');
    const job = await queue.add('job', {});
    await job.waitUntilFinished(events);
    expect([job.returnvalue, job.finishedOn, job.attemptsMade]).toEqual([null, undefined, 0]);
  });

  it('resolves for a job that is removed as it completes, when it waited by then', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const gate = stage.gate();
    const worker = stage.worker(async () => {
      await gate.opened;
      return 'done';
    });
    const log = new EventLog(worker, ['active']);
    const job = await queue.add('job', {}, { removeOnComplete: true });
    await log.get('active');
    const waiting = job.waitUntilFinished(events);
    // Each round trip on the queue's own connection lies behind the look-up that waitUntilFinished has sent.
    await events.waitUntilReady();
    for (let i = 0; i < 3; i++) await queue.getJobCounts();
    gate.open();
    expect(await waiting).toBe('done');
  });

  describe('with a time-out', () => {
    it('rejects when it is over, and names job and time', async () => {
      const queue = stage.queue();
      const events = stage.events();
      const job = await queue.add('slow', {}, { jobId: 'mine' });
      const start = performance.now();
      const error = await rejection(job.waitUntilFinished(events, 80));
      expect(error.message).toBe(
        'Job wait slow timed out before finishing, no finish notification arrived after 80ms (id=mine)',
      );
      expect(performance.now() - start).toBeGreaterThanOrEqual(75);
    });

    it('resolves when the job ends before', async () => {
      const queue = stage.queue();
      const events = stage.events();
      stage.worker(async () => 'done');
      const job = await queue.add('job', {});
      expect(await job.waitUntilFinished(events, 60_000)).toBe('done');
    });
  });

  it('rejects for a job that is gone', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const job = await queue.add('job', {});
    await job.remove();
    expect((await rejection(job.waitUntilFinished(events))).message).toBe(
      `Missing key for job bull:${stage.queueName}:1. isFinished`,
    );
  });
});
