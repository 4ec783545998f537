// Pins the checks of the Worker constructor, their order and texts, and the options it fills in.
import { describe, expect, it } from 'vitest';
import type { Job, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { server } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: worker.options', ({ lib }) => {
  const stage = useStage(lib);

  const CONNECTION = 'Worker requires a connection';
  const NAME = 'Queue name must be provided';
  const COLON = 'Queue name cannot contain :';
  const STALLED = 'maxStalledCount must be greater or equal than 0';
  const STARTED = 'maxStartedAttempts must be greater or equal than 0';
  const INTERVAL = 'stalledInterval must be greater than 0';
  const DRAIN = 'drainDelay must be greater than 0';
  const CONCURRENCY = 'concurrency must be a finite number greater than 0';

  const build = (name: unknown, opts: unknown) => () =>
    new lib.Worker(name as string, async () => undefined, opts as WorkerOptions);
  const connection = { ...server };

  it.each([
    ['no options', undefined],
    ['empty options', {}],
    ['a connection of null', { connection: null }],
    ['a connection of undefined', { connection: undefined }],
  ])('a worker needs a connection: %s', (_, opts) => {
    expect(build('jobs', opts)).toThrow(CONNECTION);
  });

  it.each(['', null, undefined])('a worker needs a name: %j', (name) => {
    expect(build(name, { connection })).toThrow(NAME);
  });

  it('a name must not contain a colon', () => {
    expect(build('a:b', { connection })).toThrow(COLON);
  });

  it.each([
    ['maxStalledCount', -1, STALLED],
    ['maxStalledCount', 'x', STALLED],
    ['maxStalledCount', undefined, STALLED],
    ['maxStalledCount', null, STALLED],
    ['maxStartedAttempts', -1, STARTED],
    ['stalledInterval', 0, INTERVAL],
    ['stalledInterval', -5, INTERVAL],
    ['stalledInterval', undefined, INTERVAL],
    ['stalledInterval', '5000', INTERVAL],
    ['drainDelay', 0, DRAIN],
    ['drainDelay', -1, DRAIN],
    ['drainDelay', undefined, DRAIN],
    ['drainDelay', '5', DRAIN],
    ['concurrency', 0, CONCURRENCY],
    ['concurrency', -1, CONCURRENCY],
    ['concurrency', 0.5, CONCURRENCY],
    ['concurrency', NaN, CONCURRENCY],
    ['concurrency', Infinity, CONCURRENCY],
    ['concurrency', '3', CONCURRENCY],
    ['concurrency', undefined, CONCURRENCY],
  ])('%s must not be %s', (option, value, message) => {
    expect(build('jobs', { connection, autorun: false, [option]: value })).toThrow(message);
  });

  it('are checked in a fixed order', () => {
    const wrong = { maxStalledCount: -1, maxStartedAttempts: -1, stalledInterval: 0, drainDelay: 0, concurrency: 0 };
    const { maxStalledCount: _1, ...noStalled } = wrong;
    const { maxStartedAttempts: _2, ...noStarted } = noStalled;
    const { stalledInterval: _3, ...noInterval } = noStarted;
    const { drainDelay: _4, ...noDrain } = noInterval;
    expect(build('', wrong)).toThrow(CONNECTION);
    expect(build('', { connection, ...wrong })).toThrow(NAME);
    expect(build('jobs', { connection, ...wrong })).toThrow(STALLED);
    expect(build('jobs', { connection, ...noStalled })).toThrow(STARTED);
    expect(build('jobs', { connection, ...noStarted })).toThrow(INTERVAL);
    expect(build('jobs', { connection, ...noInterval })).toThrow(DRAIN);
    expect(build('jobs', { connection, ...noDrain })).toThrow(CONCURRENCY);
  });

  it('may have a maxStalledCount of 0', () => {
    expect(stage.worker(async () => undefined, { maxStalledCount: 0, autorun: false }).opts.maxStalledCount).toBe(0);
  });

  it('that are left out are filled in', () => {
    const worker = stage.worker(async () => undefined, { autorun: false });
    expect(worker.opts).toMatchObject({
      autorun: false,
      concurrency: 1,
      drainDelay: 5,
      lockDuration: 30_000,
      lockRenewTime: 15_000,
      maxStalledCount: 1,
      maximumRateLimitDelay: 30_000,
      runRetryDelay: 15_000,
      stalledInterval: 30_000,
    });
  });

  it.each([
    ['maximumRateLimitDelay', 0],
    ['maximumRateLimitDelay', -1],
    ['maximumRateLimitDelay', '50'],
    ['maxStartedAttempts', '1'],
    ['maxStartedAttempts', null],
    ['runRetryDelay', null],
    ['runRetryDelay', undefined],
  ])('take %s: %j', async (option, value) => {
    const worker = stage.worker(async () => 'done', { limiter: { max: 1, duration: 50 }, [option]: value });
    const log = new EventLog(worker, ['completed']);
    await stage.queue().addBulk([1, 2].map((i) => ({ name: `${i}`, data: {} })));
    const [job, result] = await log.get('completed', 2);
    expect([(job as { name: string }).name, result]).toEqual(['2', 'done']);
  });

  it('halve the lockDuration into a lockRenewTime unless that is given', () => {
    const half = stage.worker(async () => undefined, { autorun: false, lockDuration: 500 });
    const given = stage.worker(async () => undefined, { autorun: false, lockDuration: 500, lockRenewTime: 100 });
    expect([half.opts.lockRenewTime, given.opts.lockRenewTime]).toEqual([250, 100]);
  });

  it('with a name of null record none', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { name: null as never });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    const [job] = await log.get<[Job]>('completed');
    expect(job.processedBy ?? undefined).toBeUndefined();
    expect((await fetchJob(queue, '1')).processedBy).toBeUndefined();
  });

  it('unknown to the worker are kept', () => {
    const worker = stage.worker(async () => undefined, { autorun: false, colour: 'red' } as Partial<WorkerOptions>);
    expect(worker.opts).toMatchObject({ colour: 'red' });
  });

  it('give the worker a name, the name of its queue, and an id of its own', () => {
    const [one, two] = [1, 2].map(() => stage.worker(async () => undefined, { autorun: false }));
    expect([one?.name, two?.name]).toEqual([stage.queueName, stage.queueName]);
    expect(one?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(one?.id).not.toBe(two?.id);
  });
});
