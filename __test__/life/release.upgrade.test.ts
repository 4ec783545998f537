// A queue that an earlier release stored is read, run and finished by this one. __test__/life/programs/store-queue.mjs made it.
import { readdirSync, readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Queue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { redisClient, unlinkContaining } from '../support/redis.js';
import { useStage } from '../support/stage.js';

interface Stored {
  readonly release: string;
  readonly name: string;
  /** DUMPs by the part of their keys behind the base, base64. */
  readonly keys: Record<string, string>;
}

const folder = new URL('stored/', import.meta.url);
const stored = readdirSync(folder).map((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Stored);

describe.each(stored)('a queue of release $release', ({ name, keys }) => {
  const stage = useStage(chasquimq);

  beforeEach(async () => {
    stage.queueName = name;
    const redis = redisClient();
    await unlinkContaining(redis, `{bull:${name}}`);
    for (const [suffix, dump] of Object.entries(keys)) {
      await redis.restore(`{bull:${name}}:${suffix}`, 0, Buffer.from(dump, 'base64'), 'REPLACE');
    }
    await redis.quit();
  });

  it('is read', async () => {
    const queue = stage.queue();
    expect(await queue.getJobCounts()).toMatchObject({
      active: 1,
      completed: 7,
      failed: 1,
      'waiting-children': 1,
      prioritized: 2,
      delayed: 3,
    });
    const completed = await queue.getCompleted();
    expect(completed.map(({ returnvalue }) => returnvalue as unknown)).toContainEqual({ ended: 4 });
    expect((await queue.getJob('ended-large'))?.returnvalue).toHaveLength(10_000);
    expect((await queue.getJob('large'))?.data).toHaveLength(300_000);
    expect((await queue.getJobLogs('ended-own')).logs).toEqual(['a row']);
    const failed = await queue.getJob('ended-failed');
    expect(failed?.failedReason).toBe('it failed');
    expect(failed?.stacktrace).toEqual(['Error: it failed\n    at handler (program.js:1:1)']);
    expect((await queue.getJob('retried'))?.attemptsMade).toBe(1);
    expect(await queue.getDeduplicationJobId('once')).toBe('dedup');
    expect((await queue.getJobScheduler('hourly'))?.every).toBe(3_600_000);
    expect((await queue.getJob('own'))?.progress).toEqual({ part: 1 });
    expect([await queue.getGlobalConcurrency(), await (queue as unknown as Queue).getMaxLength()]).toEqual([
      50, 1_000_000,
    ]);
    expect(await (await queue.getJob('parent'))?.getDependenciesCount()).toMatchObject({ unprocessed: 5 });
  });

  it('is run to its end', async () => {
    const queue = stage.queue();
    const left = await queue.getJobCountByTypes('waiting', 'active', 'delayed', 'prioritized', 'waiting-children');
    await queue.promoteJobs();
    await queue.retryJobs();
    const ended = new Set<string>();
    const worker = stage.worker(async (job) => job.data as unknown, { concurrency: 10, stalledInterval: 500 });
    await new Promise<void>((resolve) => {
      // the one that had failed runs again, and the scheduler's next iteration is another hour away
      worker.on('completed', ({ id }) => void (ended.add(String(id)), ended.size === left + 1 && resolve()));
    });
    expect(ended).toContain('parent');
    expect(await queue.getJobCounts()).toMatchObject({
      active: 0,
      delayed: 1,
      failed: 0,
      waiting: 0,
      completed: left + 8,
    });
    const values = await (await queue.getJob('parent'))?.getChildrenValues();
    expect(Object.values(values ?? {})).toContainEqual({ child: 3 });
  });
});
