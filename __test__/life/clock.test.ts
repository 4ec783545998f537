// Fake clocks, as users' own tests have them: the facade's Date.now() rules what is due and how old something is, and
// no wake-up rests on a JavaScript timer.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const DAY = 24 * 60 * 60 * 1_000;
/** What the clock says when it is set. */
const THEN = Date.UTC(2031, 4, 6);
const LONG_AGO = Date.UTC(2001, 4, 6);

describe('clock', () => {
  const stage = useStage(chasquimq);
  // Runs before the stage ends, which needs the real ones.
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Fakes Date and nothing else, or everything there is. */
  function fakeDate(now: number): void {
    vi.useFakeTimers({ toFake: ['Date'], now });
  }
  function fakeAll(now: number): void {
    vi.useFakeTimers({ now });
  }

  function names(log: EventLog, event: string): string[] {
    return log.all<[Job]>(event).map(([job]) => job.name);
  }

  it.each([
    ['ahead of', THEN],
    ['behind', LONG_AGO],
  ])('a job goes its way while Date is %s the real one, and its times are those of Date', async (_, now) => {
    fakeDate(now);
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => 'done'),
      ['completed'],
    );
    const { id } = await queue.add('job', {});
    await log.get('completed');
    const { timestamp, processedOn, finishedOn } = await fetchJob(queue, id);
    expect([timestamp, processedOn, finishedOn]).toEqual([now, now, now]);
  });

  it.each([
    ['a clock that was fake from the beginning', true],
    ['a clock that turns fake while the worker runs', false],
  ])('a delayed job is due by %s', async (_, atOnce) => {
    if (atOnce) fakeDate(THEN);
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['completed'],
    );
    await queue.add('first', {});
    await log.get('completed');
    if (!atOnce) fakeDate(THEN);
    const later = await queue.add('later', {}, { delay: DAY });
    await queue.add('before', {});
    await log.get('completed', 2);
    expect(await later.getState()).toBe('delayed');

    vi.setSystemTime(THEN + DAY - 1);
    await queue.add('too early', {});
    await log.get('completed', 3);
    expect(await later.getState()).toBe('delayed');

    // The next wake-up is that of the next job.
    vi.setSystemTime(THEN + DAY);
    await queue.add('after', {});
    await log.get('completed', 5);
    expect(names(log, 'completed').slice(0, 3)).toEqual(['first', 'before', 'too early']);
    expect(names(log, 'completed').slice(3).sort()).toEqual(['after', 'later']);
    expect((await fetchJob(queue, later.id)).processedOn).toBe(THEN + DAY);
  });

  it('or of the end of an idle wait', async () => {
    fakeDate(THEN);
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => undefined, { drainDelay: 0.1 }),
      ['completed', 'drained'],
    );
    await queue.add('later', {}, { delay: DAY });
    await log.get('drained');
    vi.setSystemTime(THEN + DAY);
    await log.get('completed');
  });

  it.each([
    ['is far from the real one', THEN],
    ['agrees with the real one', undefined],
  ])('a jump of a clock that %s is noticed, however long was to be waited', async (_, then) => {
    fakeAll(then ?? Date.now());
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => undefined, { drainDelay: 60 }),
      ['completed', 'drained'],
    );
    await queue.add('now', {});
    await log.get('drained');
    for (let day = 1; day <= 3; day++) {
      await queue.add('later', {}, { delay: DAY });
      vi.advanceTimersByTime(DAY);
      await log.get('completed', day + 1);
    }
  });

  it('workers and queues need no timer of JavaScript', async () => {
    fakeAll(Date.now());
    const queue = stage.queue();
    const events = stage.events();
    const worker = stage.worker(async (job) => job.data as unknown, { concurrency: 3 });
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady(), events.waitUntilReady()]);
    const jobs = await queue.addBulk(Array.from({ length: 200 }, (_, i) => ({ name: 'job', data: i })));
    jobs.push(await queue.add('job', 200));
    const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    expect(results).toEqual(Array.from({ length: 201 }, (_, i) => i));
    expect(vi.getTimerCount()).toBe(0);
    await Promise.all([worker.close(), events.close(), queue.close()]);
  });

  it('a retry waits by the fake clock', async () => {
    fakeAll(THEN);
    const queue = stage.queue();
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'flaky' && job.attemptsMade === 0) throw new Error('at first');
      },
      { drainDelay: 0.1 },
    );
    const log = new EventLog(worker, ['failed', 'completed']);
    const flaky = await queue.add('flaky', {}, { attempts: 2, backoff: 60_000 });
    await log.get('failed');
    await queue.add('other', {});
    await log.get('completed');
    expect(await flaky.getState()).toBe('delayed');
    vi.advanceTimersByTime(60_000);
    await log.get('completed', 2);
    expect(names(log, 'completed')).toEqual(['other', 'flaky']);
  });

  it('what is kept for a time grows old by the fake clock', async () => {
    fakeDate(THEN);
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => undefined, { removeOnComplete: { age: 60 } }),
      ['completed'],
    );
    await queue.add('old', {});
    await log.get('completed');
    vi.setSystemTime(THEN + 59_000);
    await queue.add('young', {});
    await log.get('completed', 2);
    expect((await queue.getCompleted()).map(({ name }) => name).sort()).toEqual(['old', 'young']);
    vi.setSystemTime(THEN + 62_000);
    await queue.add('new', {});
    await log.get('completed', 3);
    expect((await queue.getCompleted()).map(({ name }) => name).sort()).toEqual(['new', 'young']);
  });

  it('a lease does not run by the fake clock', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const quick = { lockDuration: 5_000, stalledInterval: 100 };
    const holder = stage.worker(() => gate.opened, quick);
    const log = new EventLog(holder, ['active', 'completed', 'stalled', 'failed']);
    await queue.add('held', {});
    await log.get('active');
    fakeDate(THEN);
    // It looks for lost workers at once, and again while the clock leaps.
    const other = new EventLog(
      stage.worker(async () => undefined, quick),
      ['completed', 'stalled'],
    );
    await queue.add('other', {});
    await other.get('completed');
    vi.setSystemTime(THEN + DAY);
    await queue.add('another', {});
    await other.get('completed', 2);
    gate.open();
    await log.get('completed');
    expect([log.names, other.names]).toEqual([
      ['active', 'completed'],
      ['completed', 'completed'],
    ]);
  });
});
