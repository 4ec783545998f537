// What follows a scheduler's job is made exactly once, whoever takes the job and dies.
import { describe, expect, it } from 'vitest';
import type { Job, JobType, Queue } from 'bullmq';
import type { Queue as OurQueue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';
import { useWatchdog } from '../support/watched.js';

const SCHEDULERS = 200;
const EVERY_MS = 150;
const KILLS = 5;
/** Jobs read at once: thousands of them would block this event loop. */
const PAGE = 500;

describe('schedulers', () => {
  const stage = useStage(chasquimq);
  useWatchdog(stage);
  const settings = { repeatStrategy: (millis: number, { pattern }: { pattern?: string }) => millis + Number(pattern) };
  const start = (env: Record<string, string | number> = {}) =>
    stage.keep(Program.start('scheduler-worker.mjs', { env: { QUEUE: stage.queueName, ...env } }));
  const jobsOf = async (queue: Queue, state: JobType): Promise<Job[]> => {
    const jobs: Job[] = [];
    let page: Job[];
    do jobs.push(...(page = await queue.getJobs([state], jobs.length, jobs.length + PAGE - 1)));
    while (page.length === PAGE);
    return jobs;
  };
  const counts = (queue: Queue) => queue.getJobCounts('waiting', 'active', 'delayed', 'completed', 'failed');

  it('a worker that is killed between a job and what follows it', async () => {
    const queue = stage.queue({ settings });
    const dying = start({ DIE: 'true' });
    await dying.said('ready');
    const first = await queue.upsertJobScheduler('s', { pattern: '600000' });
    await (await queue.getJob(first.id as string))?.promote();
    expect(await dying.ended, dying.errors).toEqual({ code: null, signal: 'SIGKILL' });
    expect(dying.lines.filter((line) => line.startsWith('ran'))).toEqual([]);
    expect(await counts(queue)).toMatchObject({ active: 1, delayed: 0, completed: 0 });

    const others = [start(), start(), start()];
    await until('the job to be done', async () => (await counts(queue)).completed === 1);
    expect(await counts(queue)).toEqual({ waiting: 0, active: 0, delayed: 1, completed: 1, failed: 0 });
    expect(others.flatMap(({ lines }) => lines).filter((line) => line.startsWith('ran'))).toEqual([`ran ${first.id}`]);
    expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 2 });
  });

  it.each(['skip', 'queue'] as const)('a worker that is killed in a run that none overlaps: %s', async (overlap) => {
    const queue = stage.queue() as unknown as OurQueue;
    const dying = start({ DIE_AFTER: 1 });
    await dying.said('ready');
    const first = await queue.upsertJobScheduler('s', { every: 100, overlap });
    expect(await dying.ended).toEqual({ code: null, signal: 'SIGKILL' });

    const other = start();
    await other.said('ran', 5);
    const ran = other.lines.filter((line) => line.startsWith('ran')).map((line) => line.slice('ran '.length));
    // it runs again, once the lease has run out, and before the others
    expect(ran[0]).toBe(first.id);
    expect(new Set(ran).size).toBe(ran.length);
  });

  it('many workers, some of which are killed, and many schedulers', async () => {
    const queue = stage.queue();
    const random = new Random(17);
    const workers = [start(), start()];
    await Promise.all(workers.map((worker) => worker.said('ready')));
    const ids = Array.from({ length: SCHEDULERS }, (_, i) => `s${i}`);
    await Promise.all(
      ids.map((id) => queue.upsertJobScheduler(id, { every: EVERY_MS, offset: random.next(EVERY_MS) })),
    );
    for (let kill = 0; kill < KILLS; kill++) {
      const dying = start({ DIE_AFTER: 50 + random.next(200) });
      expect(await dying.ended).toEqual({ code: null, signal: 'SIGKILL' });
    }
    // what the last one held comes back when its lease has run out
    await until(
      'every job to be done',
      async () => {
        for (const id of ids) {
          const scheduler = await queue.getJobScheduler(id);
          if ((scheduler?.iterationCount ?? 0) < 10) return false;
        }
        return true;
      },
      60_000,
    );
    await Promise.all(workers.map((worker) => worker.kill()));
    const left = stage.worker(() => Promise.resolve(), { concurrency: 50, stalledInterval: 200, lockDuration: 500 });
    await queue.pause();
    await left.waitUntilReady();
    await until('the killed workers to be noticed', async () => (await counts(queue)).active === 0);

    // Each iteration that was counted is one job, and the latest of each scheduler is still to come.
    const stillToCome = [...(await jobsOf(queue, 'waiting')), ...(await jobsOf(queue, 'delayed'))];
    const made = new Map(ids.map((id) => [id, 0]));
    for (const { repeatJobKey = '' } of [...stillToCome, ...(await jobsOf(queue, 'completed'))])
      made.set(repeatJobKey, (made.get(repeatJobKey) ?? 0) + 1);
    const schedulers = await queue.getJobSchedulers();
    const pending = new Set(stillToCome.map(({ id }) => id));
    for (const { key, next, iterationCount } of schedulers) {
      expect(made.get(key), key).toBe(iterationCount);
      expect(pending.has(`repeat:${key}:${next}`), key).toBe(true);
    }
    expect(schedulers).toHaveLength(SCHEDULERS);
    expect((await counts(queue)).failed).toBe(0);
  });

  it('a day without workers costs one run, not a burst', async () => {
    // many times a day, and not again while the test lasts
    const EVERY = 60_000;
    const queue = stage.queue();
    const real = Date.now;
    Date.now = () => real() - 86_400_000;
    try {
      await Promise.all(Array.from({ length: 50 }, (_, i) => queue.upsertJobScheduler(`s${i}`, { every: EVERY })));
    } finally {
      Date.now = real;
    }
    let ran = 0;
    stage.worker(() => Promise.resolve(ran++), { concurrency: 10 });
    await until('the first runs', () => ran >= 50);
    expect(ran).toBeLessThanOrEqual(100);
    const found = await queue.getJobSchedulers();
    expect(found.every(({ next = 0 }) => next > Date.now() - EVERY && next <= Date.now() + EVERY)).toBe(true);
    expect(found.every(({ iterationCount = 0 }) => iterationCount <= 3)).toBe(true);
  });
});
