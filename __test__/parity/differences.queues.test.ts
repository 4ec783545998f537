// Pins wanted differences in the calls of a queue, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { describe, expect, it } from 'vitest';
import type { Queue, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { sideOf, thrown } from '../support/sides.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, sleep } from '../support/waiting.js';

describe.each(libraries)('$name: differences, queues', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);
  /** The name of the error, or what was given. */
  const told = (promise: Promise<unknown>) =>
    promise.then(
      () => 'done',
      (error: Error) => error.name,
    );

  it('counts-per-priority-numbers', async () => {
    const error = await rejection(stage.queue().getCountsPerPriority(['x' as unknown as number]));
    expect(error.name === 'RangeError').toBe(of({ bullmq: false, chasquimq: true }));
  });

  it.each<[string, (queue: Queue) => Promise<unknown>]>([
    ...['x', '', ' ', true, {}, [5]].flatMap((limit): [string, (queue: Queue) => Promise<unknown>][] => [
      [`setGlobalConcurrency ${JSON.stringify(limit)}`, (queue) => queue.setGlobalConcurrency(limit as number)],
      [`setGlobalRateLimit ${JSON.stringify(limit)}`, (queue) => queue.setGlobalRateLimit(limit as number, 1000)],
    ]),
  ])('limits-are-numbers: %s', async (_, call) => {
    expect(await told(call(stage.queue()))).toBe(of({ bullmq: 'done', chasquimq: 'TypeError' }));
  });

  it('limits-are-numbers: a limiter without a duration', () => {
    const limiter = { max: 5 } as WorkerOptions['limiter'];
    const build = () => stage.worker(null, { limiter, autorun: false });
    expect(thrown(build)?.name).toBe(of({ bullmq: undefined, chasquimq: 'TypeError' }));
  });

  it('obliterate-ends-the-window', async () => {
    const queue = stage.queue();
    await queue.rateLimit(60_000);
    await queue.obliterate();
    expect((await queue.getRateLimitTtl()) > 0).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('clean-limit-is-exact', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await told(queue.clean(NaN, 10, 'wait'))).toBe(of({ bullmq: 'done', chasquimq: 'RangeError' }));
    expect(await queue.getWaitingCount()).toBe(of({ bullmq: 0, chasquimq: 1 }));
  });

  it('drain-and-obliterate-flows', async () => {
    const [parents, children] = [stage.queue({}, 'parents'), stage.queue({}, 'children')];
    const leaves = [{ name: 'child', queueName: children.name }];
    await stage.flowProducer().add({ name: 'parent', queueName: parents.name, children: leaves });
    await parents.obliterate();
    await children.drain();
    expect(await parents.count()).toBe(of({ bullmq: 1, chasquimq: 0 }));
  });

  it('get-flow-max-children', async () => {
    const { id = '' } = await stage.queue().add('alone', {});
    const found = stage.flowProducer().getFlow({ queueName: stage.queueName, id, maxChildren: 0.5 });
    expect(await told(found)).toBe(of({ bullmq: 'done', chasquimq: 'RangeError' }));
  });

  it('get-dependencies-jobs', async () => {
    const queue = stage.queue();
    const children = [{ name: 'child', queueName: stage.queueName }];
    const flow = await stage.flowProducer().add({ name: 'parent', queueName: stage.queueName, children });
    const { jobs } = await queue.getDependencies(flow.job.id ?? '', 'pending', 0, -1);
    expect(jobs.map(({ id }) => id)).toEqual(of({ bullmq: [undefined], chasquimq: [flow.children?.[0]?.job.id] }));
  });

  it('delay-after-promote-jobs', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { delay: 60_000 });
    await queue.promoteJobs();
    expect((await fetchJob(queue, id)).delay).toBe(of({ bullmq: 60_000, chasquimq: 0 }));
  });

  it('no-orphans', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const redis = redisClient();
    if (name === 'bullmq') await redis.hset(`bull:${stage.queueName}:77`, { name: 'left over', data: '{}' });
    else await redis.hset(`{bull:${stage.queueName}}:jobs`, '77', 'left over');
    await redis.set(`${of({ bullmq: `bull:${stage.queueName}`, chasquimq: `{bull:${stage.queueName}}` })}:priority`, 1);
    await redis.quit();
    const removed = [await queue.removeDeprecatedPriorityKey(), await queue.removeOrphanedJobs()];
    expect(removed).toEqual(of({ bullmq: [1, 1], chasquimq: [0, 0] }));
  });

  it('lifted-limits-wake', async () => {
    const queue = stage.queue();
    await queue.rateLimit(60_000);
    await queue.add('job', {});
    const opts = {
      limiter: { max: 1, duration: 1000 },
      maximumRateLimitDelay: of({ bullmq: 3_000, chasquimq: 60_000 }),
    };
    const worker = stage.worker(async () => undefined, opts);
    const log = new EventLog(worker, ['drained', 'completed']);
    await log.get('drained');
    // BullMQ begins to sleep a moment after it has told so
    await sleep(100);
    await queue.removeRateLimitKey();
    if (name === 'chasquimq') await log.get('completed');
    // nothing tells that it sleeps on
    else await sleep(1_000);
    expect(log.all('completed').length).toBe(of({ bullmq: 0, chasquimq: 1 }));
    await log.get('completed');
  });

  it('queue-version', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    expect(queue.metaValues.version).toBe(of({ bullmq: 'bullmq:6.7.0', chasquimq: 'bullmq:6.7.0-chasquimq' }));
  });

  it('trim-events-exact', async () => {
    const queue = stage.queue();
    for (let i = 0; i < 150; i++) await queue.add('job', {});
    // each add told of `added` and `waiting`
    expect((await queue.trimEvents(150)) === 150).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('packed-event-log', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: {} })));
    const redis = redisClient();
    const [log = ''] = (await keysContaining(redis, stage.queueName)).filter((key) => key.endsWith(':events'));
    const entries = await redis.xlen(log);
    await redis.quit();
    expect(entries).toBe(of({ bullmq: 40, chasquimq: 1 }));
  });
});
