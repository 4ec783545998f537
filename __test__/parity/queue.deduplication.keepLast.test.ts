// Pins keepLastIfActive: the latest add while the owner is active runs after it.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { by, deduplications, story } from '../support/deduplication.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const LONG = 60_000;
const KEEP = { keepLastIfActive: true };

describe.each(libraries)('$name: deduplication that keeps the last add', ({ lib }) => {
  const stage = useStage(lib);

  /** A queue whose job 1 is active until `open` is called; then it fails as often as told. */
  async function activeOwner(opts: JobsOptions = {}, failures = 0) {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = stage.globalLog();
    const started = stage.gate();
    const ran: [string | undefined, unknown][] = [];
    const worker = stage.worker(async (job) => {
      started.open();
      if (job.id === '1') await gate.opened;
      ran.push([job.id, job.data]);
      if (job.id === '1' && job.attemptsMade < failures) throw new Error('boom');
    });
    await queue.add('first', 'first', by('d', KEEP, opts));
    await started.opened;
    return { queue, worker, log, ran, open: gate.open };
  }

  it('runs the latest one, once, after the active one', async () => {
    const { queue, log, ran, open } = await activeOwner();
    const ids = [];
    for (const data of ['a', 'b', 'c']) ids.push((await queue.add(data, data, by('d', KEEP))).id);
    expect(ids).toEqual(['1', '1', '1']);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 0, active: 1 });
    open();
    await log.get('completed', 2);
    expect(ran).toEqual([
      ['1', 'first'],
      ['4', 'c'],
    ]);
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
    expect((await queue.add('next', 'next')).id).toBe('6');
  });

  it.each([
    ['lasts as long as it was to, when whoever yields gives no time', {}, '1'],
    ['lasts until its job has ended, when whoever yields gives one', { ttl: LONG }, null],
  ])('an id that waits %s', async (_, time, owner) => {
    const queue = stage.queue();
    await queue.add('first', 1, by('d', { ttl: LONG }));
    await queue.add('second', 2, by('d', { ...KEEP, extend: true, ...time }));
    await new EventLog(
      stage.worker(async () => undefined),
      ['completed'],
    ).get('completed');
    expect(await queue.getDeduplicationJobId('d')).toBe(owner);
  });

  it('tells of it before it tells that the active one has completed', async () => {
    const { queue, worker, log, open } = await activeOwner();
    await queue.add('second', 2, by('d', KEEP));
    await worker.pause(true);
    open();
    await log.get('completed');
    expect(story(log)).toEqual([
      'added 1',
      'waiting 1',
      'active 1',
      'deduplicated 1',
      'added 2',
      'waiting 2',
      'completed 1',
    ]);
    expect(deduplications(log)).toEqual([['1', 'd', '2']]);
    expect(await queue.getDeduplicationJobId('d')).toBe('2');
  });

  it('keeps name, data and options, and counts time from the moment it is added', async () => {
    const { queue, worker, log, open } = await activeOwner();
    const timestamp = Date.now() - LONG;
    const opts = by('d', KEEP, { jobId: 'mine', delay: LONG, attempts: 4, timestamp });
    expect((await queue.add('second', { n: 2 }, opts)).id).toBe('1');
    expect(await queue.getJob('mine')).toBeUndefined();
    const before = Date.now();
    open();
    await log.get('completed');
    await worker.pause();
    const job = await fetchJob(queue, 'mine');
    expect([job.name, job.data, job.delay, job.opts.attempts, job.deduplicationId]).toEqual([
      'second',
      { n: 2 },
      LONG,
      4,
      'd',
    ]);
    expect(job.opts.deduplication).toEqual({ id: 'd', keepLastIfActive: true });
    expect(job.timestamp).toBeGreaterThanOrEqual(before);
    expect(await job.getState()).toBe('delayed');
    const [delayed] = await log.get<[{ jobId: string; delay: number }]>('delayed');
    expect(delayed).toEqual({ jobId: 'mine', delay: job.timestamp + LONG });
  });

  it('discards an add while the owner is not active', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.add('first', 1, by('d', KEEP));
    expect((await queue.add('second', 2, by('d', KEEP))).id).toBe('1');
    stage.worker(async () => undefined);
    await log.get('drained');
    expect(story(log).filter((event) => event.startsWith('added'))).toEqual(['added 1']);
  });

  it('keeps what addBulk adds, too', async () => {
    const { queue, log, ran, open } = await activeOwner();
    const jobs = await queue.addBulk([
      { name: 'a', data: 'a', opts: by('d', KEEP) },
      { name: 'b', data: 'b', opts: by('e', KEEP) },
      { name: 'c', data: 'c', opts: by('d', KEEP) },
    ]);
    expect(jobs.map((job) => job.id)).toEqual(['1', '3', '1']);
    open();
    await log.get('completed', 3);
    expect(ran.map(([id]) => id)).toEqual(['1', '3', '4']);
  });

  it('goes by the new add: one without the option is discarded, and leaves what was kept', async () => {
    const { queue, log, ran, open } = await activeOwner();
    await queue.add('a', 'a', by('d', KEEP));
    await queue.add('b', 'b', by('d'));
    open();
    await log.get('completed', 2);
    expect(ran).toEqual([
      ['1', 'first'],
      ['2', 'a'],
    ]);
  });

  it('keeps an add for an owner that was added without the option', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = stage.globalLog();
    stage.worker((job) => (job.id === '1' ? gate.opened : Promise.resolve()));
    await queue.add('first', 1, by('d', { ttl: 1_000 }));
    await log.get('active');
    await queue.add('second', 2, by('d', KEEP));
    gate.open();
    await log.get('completed', 2);
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
  });

  it('has no ttl', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.add('first', 1, by('d', { ttl: LONG, ...KEEP }));
    stage.worker(async () => undefined);
    await log.get('completed');
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
  });

  it('makes an id last that would have ended before its owner', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = stage.globalLog();
    stage.worker((job) => (job.id === '1' ? gate.opened : Promise.resolve()), { concurrency: 2 });
    await queue.add('first', 1, by('d', { ttl: 1_500 }));
    await queue.add('timer', 1, by('timer', { ttl: 1_500 }));
    await log.get('active');
    await queue.add('second', 2, by('d', KEEP));
    await until('the end of the time', async () => (await queue.getDeduplicationJobId('timer')) === null);
    expect(await queue.getDeduplicationJobId('d')).toBe('1');
  });

  it('waits for the last try of the active one', async () => {
    const { queue, log, ran, open } = await activeOwner({ attempts: 3 }, 3);
    await queue.add('second', 'second', by('d', KEEP));
    open();
    await log.get('completed');
    expect(ran.map(([id]) => id)).toEqual(['1', '1', '1', '2']);
    const told = story(log);
    const end = ['added 2', 'waiting 2', 'failed 1', 'retries-exhausted 1', 'active 2', 'completed 2'];
    expect(told.slice(told.indexOf('added 2')).slice(0, end.length)).toEqual(end);
  });

  it('keeps it while the owner waits to be tried again, and drops it when that is removed', async () => {
    const { queue, log, open } = await activeOwner({ attempts: 2, backoff: LONG }, 1);
    await queue.add('second', 2, by('d', KEEP));
    open();
    await log.get('delayed');
    expect((await queue.add('third', 3, by('d', KEEP))).id).toBe('1');
    await queue.remove('1');
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
    expect(await queue.getJobCounts('waiting', 'delayed', 'active')).toEqual({ waiting: 0, delayed: 0, active: 0 });
    expect((await queue.add('next', 4, by('d', {}, { delay: LONG }))).id).toBe('4');
  });

  it('drops it when the owner is replaced', async () => {
    const { queue, worker, log, open } = await activeOwner({ attempts: 2, backoff: LONG }, 1);
    await queue.add('second', 2, by('d', KEEP));
    open();
    await log.get('delayed');
    await worker.pause();
    const third = await queue.add('third', 3, by('d', { replace: true }));
    expect(third.id).toBe('3');
    await worker.resume();
    await log.get('completed');
    expect(await queue.getJobCounts('waiting', 'delayed', 'completed')).toEqual({
      waiting: 0,
      delayed: 0,
      completed: 1,
    });
  });

  it('adds it also when the id was freed meanwhile', async () => {
    const { queue, log, ran, open } = await activeOwner();
    await queue.add('second', 'second', by('d', KEEP));
    expect(await queue.removeDeduplicationKey('d')).toBe(1);
    open();
    await log.get('completed', 2);
    expect(ran.map(([id]) => id)).toEqual(['1', '2']);
  });

  it('makes it the owner also when another job is by then', async () => {
    const { queue, log, open } = await activeOwner();
    await queue.add('second', 2, by('d', KEEP, { delay: LONG }));
    await queue.removeDeduplicationKey('d');
    await queue.add('third', 3, by('d', KEEP, { delay: LONG }));
    open();
    await log.get('completed');
    expect(await queue.getDeduplicationJobId('d')).toBe('2');
    expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 2 });
  });

  it('adds it to a paused queue', async () => {
    const { queue, log, open } = await activeOwner();
    await queue.add('second', 2, by('d', KEEP));
    await queue.pause();
    open();
    await log.get('completed');
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
    await queue.resume();
    await log.get('completed', 2);
  });

  it('adds it when the active one is removed by completing', async () => {
    const { queue, log, ran, open } = await activeOwner({ removeOnComplete: true });
    await queue.add('second', 'second', by('d', KEEP));
    open();
    await log.get('completed', 2);
    expect(ran).toEqual([
      ['1', 'first'],
      ['2', 'second'],
    ]);
    expect(await queue.getJob('1')).toBeUndefined();
  });

  it('lets one follow another for as long as there are any', async () => {
    const queue = stage.queue();
    const completed = new EventLog(
      stage.worker(async (job: Job<number>) => {
        if (job.data < 5) await queue.add('job', job.data + 1, by('d', KEEP));
        return job.data;
      }),
      ['completed'],
    );
    await queue.add('job', 1, by('d', KEEP));
    await completed.get('completed', 5);
    expect(completed.all<[Job, number]>('completed').map(([, value]) => value)).toEqual([1, 2, 3, 4, 5]);
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
  });
});
