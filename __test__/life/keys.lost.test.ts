// A key of a queue in use is deleted: by a server that is full and may evict, or by hand. What it held is gone (docs/keys.md says what); everything else
// goes on: what is added later runs, nothing runs again that has ended, no call hangs, and counts are those of jobs.
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import type { Queue as OurQueue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { fillEveryKey, keyNames, keysOf } from '../support/every-key.js';
import type { EveryKey } from '../support/every-key.js';
import { redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { untilWaiting } from '../support/waiting-workers.js';
import { until } from '../support/waiting.js';

const LIMIT_MS = 300_000;
const WAIT_MS = 60_000;
/** Keys that are lost side by side, each of its own queue. */
const AT_ONCE = 6;

const FAMILY = ['parent', 'ended-parent'];
const GROUPED = ['maxed', 'limited', 'paused', 'strict-flaky', 'strict', 'grouped', 'grouped-later'];
const RECORDS = ['named', 'front', 'ranked', 'later', 'large', 'single', 'last-child', ...FAMILY, ...GROUPED];

/** By key: names of the jobs that may not run any more, as its row in docs/keys.md says. Of a key that has no line here all run. */
const GONE: Record<string, readonly string[]> = {
  log: ['in-frame', 'apart', 'named', 'large', 'single', 'child-1', 'child-2', 'parent', 'ended-parent', 'last-child'],
  front: ['front', ...FAMILY],
  jobs: ['held-named', 'held-grouped', ...RECORDS],
  vitals: ['large', ...FAMILY],
  large: ['large'],
  'apart:<first>': ['apart'],
  takes: ['held-plain'],
  active: ['held-named', 'held-grouped'],
  prioritized: ['ranked'],
  delayed: ['later', 'last-child', 'ended-parent', 'strict-flaky', 'grouped-later'],
  'waiting-children': FAMILY,
  'children:<id>': [],
};

const LATER = [
  'new-plain',
  'new-named',
  'new-later',
  'new-flaky',
  'new-ranked',
  'new-child',
  'new-child',
  'new-parent',
];

describe('keys.lost', () => {
  const stage = useStage(chasquimq);

  async function addLater(queue: Queue): Promise<void> {
    const queueName = queue.name;
    await Promise.all([
      queue.add('new-plain', 2),
      queue.add('new-named', 2, { jobId: 'new' }),
      queue.add('new-later', 2, { delay: 5 }),
      queue.add('new-flaky', 2, { attempts: 2 }),
      queue.add('new-ranked', 2, { priority: 2 }),
    ]);
    const children = [1, 2].map(() => ({ name: 'new-child', queueName }));
    await stage.flowProducer().add({ name: 'new-parent', queueName, children });
  }

  /** Those of these names that have not completed, one a job. */
  function missing(names: readonly string[], completed: readonly string[]): string[] {
    const left = [...completed];
    return names.filter((name) => {
      const at = left.indexOf(name);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
  }

  async function expectSane(queue: Queue): Promise<Record<string, number>> {
    const counts = await queue.getJobCounts();
    for (const [state, count] of Object.entries(counts)) {
      expect(count, `${state} of ${JSON.stringify(counts)}`).toBeGreaterThanOrEqual(0);
      expect(count, `${state} of ${JSON.stringify(counts)}`).toBeLessThan(100);
    }
    return counts;
  }

  async function goOn(lost: string, { queue, worker, ...every }: EveryKey): Promise<void> {
    await expectSane(queue);
    await addLater(queue);
    await (queue as unknown as OurQueue).resumeGroup('paused');
    every.open();
    await every.lastChild
      .promote()
      .catch((error: Error) => expect(GONE[lost] ?? [], error.message).toContain('last-child'));
    const gone = GONE[lost] ?? [];
    const wanted = [...LATER, ...every.unfinished.filter((name) => !gone.includes(name))];
    await until(
      'all but what is gone',
      async () => {
        await expectSane(queue);
        return missing(wanted, every.completed).length === 0;
      },
      WAIT_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${missing(wanted, every.completed).join()}`);
    });
    await queue.removeJobScheduler('often');
    await until(
      'nothing to do',
      async () => {
        const { waiting, active } = await expectSane(queue);
        return waiting === 0 && active === 0;
      },
      WAIT_MS,
    );
    expect(every.again).toEqual([]);
    await worker.close();
  }

  async function lose(name: string, redis: Redis): Promise<void> {
    const every = await fillEveryKey(stage, redis, name.replace(/\W/g, ''));
    // one of them is there now and then
    const deleted = await until(`a key ${name}`, async () => {
      const keys = await keysOf(redis, every.queue, name);
      return keys.length && redis.del(...keys);
    });
    expect(deleted).toBeGreaterThan(0);
    await goOn(name, every);
  }

  const groups = keyNames.flatMap((_, at) => (at % AT_ONCE === 0 ? [{ names: keyNames.slice(at, at + AT_ONCE) }] : []));
  it.each(groups)('a queue goes on without one of $names', { timeout: LIMIT_MS }, async ({ names }) => {
    const redis = redisClient();
    const outcomes = await Promise.all(
      names.map((name) =>
        lose(name, redis).then(
          () => [name, 'goes on'],
          (error: Error) => [name, error.message],
        ),
      ),
    );
    await redis.quit();
    expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(names.map((name) => [name, 'goes on'])));
    for (const { message } of stage.takeErrors())
      expect(message).toMatch(/^Missing (lock|key) for job|is not readable/);
  });

  it('a queue whose pause was lost goes on by itself', { timeout: LIMIT_MS }, async () => {
    const redis = redisClient();
    const queue = stage.queue();
    await queue.pause();
    await queue.add('job', 1);
    const done: unknown[] = [];
    stage.worker(async ({ data }) => void done.push(data), { drainDelay: 1 });
    await untilWaiting(redis, queue.name, 1);
    await redis.del(`{bull:${queue.name}}:meta`);
    await until('the job to run', () => done.length === 1);
    await redis.quit();
  });

  it.each([
    ['takes', undefined],
    ['active', 'own'],
  ])('a place of the global concurrency is free again when %s are lost', { timeout: LIMIT_MS }, async (name, jobId) => {
    const redis = redisClient();
    const [queue, gate] = [stage.queue(), stage.gate()];
    await queue.setGlobalConcurrency(1);
    const started: string[] = [];
    const run = async (job: { name: string }) => {
      started.push(job.name);
      if (job.name === 'held') await gate.opened;
    };
    stage.worker(run, { concurrency: 2, stalledInterval: 200 });
    await queue.add('held', 1, { jobId });
    await until('an active job', () => started.length === 1);
    await redis.del(`{bull:${queue.name}}:${name}`);
    await queue.add('next', 1);
    await until('the next job', () => started.includes('next'));
    expect(await queue.getActiveCount()).toBe(0);
    gate.open();
    await until('a refusal', () => stage.takeErrors().some(({ message }) => /^Missing (lock|key)/.test(message)));
    await redis.quit();
  });
});
