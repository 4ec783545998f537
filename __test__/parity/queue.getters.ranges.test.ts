// Pins the ranges and orders of Queue#getJobs, #getRanges and the getters named after states.
import { describe, expect, it } from 'vitest';
import type { JobType, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const RANGES = [
  [0, -1],
  [0, 0],
  [1, 3],
  [5, 70],
  [-3, -1],
  [-70, -60],
  [2, 1],
  [140, 500],
  [500, 600],
  [-500, 2],
  [0, -140],
] as const;

/** What Redis takes for the elements from start to stop. */
function slice(all: string[], start: number, stop: number): string[] {
  const from = start < 0 ? Math.max(all.length + start, 0) : start;
  const to = stop < 0 ? all.length + stop : stop;
  return all.slice(from, to + 1);
}

describe.each(libraries)('$name: queue.getJobs by range', ({ lib }) => {
  const stage = useStage(lib);

  async function expectRanges(queue: Queue, state: JobType, ascending: string[]): Promise<void> {
    for (const asc of [true, false]) {
      const all = asc ? ascending : [...ascending].reverse();
      for (const [start, stop] of RANGES) {
        const expected = slice(all, start, stop);
        const jobs = await queue.getJobs([state], start, stop, asc);
        expect([asc, start, stop, jobs.map((job) => job.id)]).toEqual([asc, start, stop, expected]);
        expect(await queue.getRanges([state], start, stop, asc)).toEqual(expected);
        for (const job of jobs.slice(0, 2)) expect(await job.getState()).toBe(state === 'wait' ? 'waiting' : state);
      }
    }
  }

  const bulk = (n: number, opts: (i: number) => object = () => ({})) =>
    Array.from({ length: n }, (_, i) => ({ name: `n${i}`, data: { i }, opts: opts(i) }));

  it('of waiting jobs, framed and alone, touched and removed', async () => {
    const queue = stage.queue();
    await queue.addBulk(bulk(100));
    await queue.addBulk(bulk(20, (i) => (i % 3 === 0 ? { jobId: `own${i}` } : {})));
    await queue.addBulk(bulk(30));
    await queue.addJobLog('10', 'row');
    await (await fetchJob(queue, '50')).updateData({ changed: true });
    for (const id of ['1', '51', 'own3', '150']) await queue.remove(id);
    const ids = Array.from({ length: 150 }, (_, i) => String(i + 1));
    for (let i = 0; i < 20; i += 3) ids[100 + i] = `own${i}`;
    const line = ids.filter((id) => !['1', '51', 'own3', '150'].includes(id));
    await expectRanges(queue, 'waiting', line);
    await expectRanges(queue, 'wait', line);
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual(line);
    expect((await queue.getWaiting(3, 5)).map((job) => job.id)).toEqual(line.slice(3, 6));
    expect((await fetchJob(queue, '50')).data).toEqual({ changed: true });
  });

  it('of the waiting jobs of a paused queue', async () => {
    const queue = stage.queue();
    await queue.pause();
    await queue.addBulk(bulk(150));
    await expectRanges(
      queue,
      'waiting',
      Array.from({ length: 150 }, (_, i) => String(i + 1)),
    );
    expect(await queue.getJobs('paused' as string as JobType)).toEqual([]);
  });

  it('of delayed jobs, by when they are due', async () => {
    const queue = stage.queue();
    await queue.addBulk(bulk(150, (i) => ({ delay: 900_000 - i * 1_000 })));
    await expectRanges(
      queue,
      'delayed',
      Array.from({ length: 150 }, (_, i) => String(150 - i)),
    );
    expect((await queue.getDelayed(0, 1)).map((job) => [job.id, job.delay])).toEqual([
      ['150', 751_000],
      ['149', 752_000],
    ]);
  });

  it.each([
    ['completed', false],
    ['failed', true],
  ] as const)('of %s jobs, by when they ended', async (state, fails) => {
    const queue = stage.queue();
    const worker = stage.worker(
      async (job) => {
        if (fails) throw new Error('no');
        return job.data.i as number;
      },
      { concurrency: 7 },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(bulk(150));
    await log.when('the end of all', () => log.entries.length === 150);
    await worker.close();
    await queue.addJobLog('77', 'row');
    await queue.remove('78');
    const all = await queue.getJobs(state, 0, -1, true);
    expect(all.map((job) => Number(job.id)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 150 }, (_, i) => i + 1).filter((id) => id !== 78),
    );
    const times = all.map((job) => job.finishedOn ?? 0);
    expect([...times].sort((a, b) => a - b)).toEqual(times);
    for (const job of all) expect(job.returnvalue ?? null).toBe(fails ? null : Number(job.id) - 1);
    await expectRanges(
      queue,
      state,
      all.map((job) => job.id ?? ''),
    );
    const latest = fails ? await queue.getFailed(0, 2) : await queue.getCompleted(0, 2);
    expect(latest.map((job) => job.id)).toEqual(
      all
        .slice(-3)
        .reverse()
        .map((job) => job.id),
    );
  });

  it('of active jobs, each once', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened, { concurrency: 10 }),
      ['active'],
    );
    await queue.addBulk(bulk(20));
    await log.get('active', 10);
    expect((await queue.getActive()).map((job) => job.id).sort()).toEqual(
      ['1', '10', '2', '3', '4', '5', '6', '7', '8', '9'].sort(),
    );
    expect(await queue.getActive(0, 3)).toHaveLength(4);
    expect((await queue.getWaiting(0, 0)).map((job) => job.id)).toEqual(['11']);
    for (const job of await queue.getActive()) {
      expect(job.processedOn).toBeGreaterThan(0);
      expect(job.data).toEqual({ i: Number(job.id) - 1 });
    }
  });

  it('applies to each state by itself, in the order of the states', async () => {
    const queue = stage.queue();
    await queue.addBulk([...bulk(5), ...bulk(5, (i) => ({ delay: 60_000 + i }))]);
    const ids = async (types: JobType[], start: number, stop: number, asc?: boolean) =>
      (await queue.getJobs(types, start, stop, asc)).map((job) => job.id);
    expect(await ids(['delayed', 'waiting'], 0, 1, true)).toEqual(['6', '7', '1', '2']);
    expect(await ids(['waiting', 'delayed'], 0, 1)).toEqual(['5', '4', '10', '9']);
    expect(await ids(['waiting', 'wait', 'waiting'], 0, 0, true)).toEqual(['1']);
    expect(await queue.getRanges(['waiting', 'delayed'])).toEqual(['5', '4', '10', '9']);
    expect(await ids([], 0, -1, true)).toEqual(['6', '7', '8', '9', '10', '1', '2', '3', '4', '5']);
    expect(await queue.getJobs('nothing' as 'wait')).toEqual([]);
  });

  // getters-in-steps: a wanted difference (docs/differences.md)
  it('gives many jobs at once, each once and in order', async () => {
    const queue = stage.queue();
    await queue.addBulk(bulk(5_000));
    const all = await queue.getJobs(['waiting'], 0, -1, true);
    expect(all.map((job) => job.id)).toEqual(Array.from({ length: 5_000 }, (_, i) => String(i + 1)));
    expect(all[4_321]?.data).toEqual({ i: 4_321 });
    expect((await queue.getJobs(['waiting'], 3_990, 4_009)).map((job) => job.id)).toEqual(
      Array.from({ length: 20 }, (_, i) => String(1_010 - i)),
    );
  });
});

describe.each(libraries)('$name: numbers that are texts, as queries have them', ({ lib }) => {
  const stage = useStage(lib);
  const one = '1' as unknown as number;

  it('count as numbers', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {} })));
    expect((await queue.getJobs(['waiting'], one, one, true)).map(({ id }) => id)).toEqual(['2']);
    expect((await queue.getWaiting(one)).map(({ id }) => id)).toEqual(['2', '3']);
    expect(await queue.getRanges(['waiting'], one, one, true)).toEqual(['2']);
    for (const row of ['x', 'y', 'z']) await queue.addJobLog('1', row, '2' as unknown as number);
    expect(await queue.getJobLogs('1', one, one)).toEqual({ logs: ['z'], count: 2 });
    expect((await queue.getMetrics('completed', one, one)).data).toEqual([]);
    expect((await queue.getDependencies('1', 'processed', one, one)).total).toBe(0);
    for (const every of [1_000_000, 2_000_000]) await queue.upsertJobScheduler(`s${every}`, { every });
    expect(await queue.getJobSchedulers(one, one)).toHaveLength(1);
  });

  it('count as numbers in changes, too', async () => {
    const queue = stage.queue();
    await queue.add('later', {}, { delay: 60_000 });
    await queue.retryJobs({ count: one });
    await queue.promoteJobs({ count: one });
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 1, delayed: 0 });
    await queue.obliterate({ force: one as unknown as boolean });
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
  });
});

describe.each(libraries)('$name: queue.getDelayedCount', ({ lib }) => {
  const stage = useStage(lib);

  it('counts what is due before a time', async () => {
    const queue = stage.queue();
    const timestamp = Date.now();
    await queue.addBulk([60, 60, 90].map((s) => ({ name: 'job', data: {}, opts: { delay: s * 1000, timestamp } })));
    expect(await queue.getDelayedCount()).toBe(3);
    expect(await queue.getDelayedCount(0)).toBe(0);
    expect(await queue.getDelayedCount(timestamp + 60_000)).toBe(0);
    expect(await queue.getDelayedCount(timestamp + 60_001)).toBe(2);
    expect(await queue.getDelayedCount(timestamp + 90_000)).toBe(2);
    expect(await queue.getDelayedCount(timestamp + 90_001)).toBe(3);
  });

  it.each([1.5, NaN, Infinity])('refuses %d', async (timestamp) => {
    const error = await rejection(stage.queue().getDelayedCount(timestamp));
    expect(error.message).toBe('timestamp must be a safe integer in milliseconds');
  });
});
