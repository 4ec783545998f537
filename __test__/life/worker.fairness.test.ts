// Jobs go to whoever can start them: no worker hoards what another could run now.
import { describe, expect, it } from 'vitest';
import type { Job, Processor, Worker } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';
import { useWatchdog } from '../support/watched.js';

const WORKERS = 10;

/**
 * After short jobs a worker may take more than its one slot holds. What of that does not start in time is taken back
 * (crates/chasquimq/src/worker/take/offers.rs): this long a job that is held by a busy worker may wait although others are idle. The limit here is
 * generous because the machine may be busy; a worker that kept its surplus would keep it for ever, since the jobs do not end before the test says so.
 */
const WINDOW_MS = 5_000;

describe('worker.fairness', () => {
  const stage = useStage(chasquimq);
  // handlers of these tests keep the event loop busy
  useWatchdog(stage, { mostPause: Infinity });

  const jobs = (name: string, count: number) => Array.from({ length: count }, (_, i) => ({ name, data: i }));

  async function tenWorkers(processor: (index: number) => Processor): Promise<Worker[]> {
    const workers = Array.from({ length: WORKERS }, (_, index) => stage.worker(processor(index)));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    return workers;
  }

  it('ten workers of concurrency 1 share one addBulk of 50 slow jobs', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const started: string[][] = Array.from({ length: WORKERS }, () => []);
    await tenWorkers((index) => async (job) => {
      started[index]?.push(String(job.id));
      await gate.opened;
    });
    await queue.addBulk(jobs('slow', 50));
    await until('all workers to hold a job', () => started.every((ids) => ids.length === 1));
    expect(started.flat().map(Number).sort(byValue)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 10, waiting: 40 });

    gate.open();
    await until('all jobs to complete', async () => (await queue.getCompletedCount()) === 50);
    expect(started.flat().map(Number).sort(byValue)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  });

  // jobs-taken-in-advance: a wanted difference (docs/differences.md)
  it('and when they have earned a surplus with short jobs before, soon after', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const held: Job[][] = Array.from({ length: WORKERS }, () => []);
    let short = 0;
    await tenWorkers((index) => async (job) => {
      if (job.name === 'short') {
        short++;
        return;
      }
      held[index]?.push(job);
      await gate.opened;
    });
    // Enough for all ten to have seen more than the 50 jobs from which on a surplus may be taken.
    await queue.addBulk(jobs('short', 4_000));
    await queue.addBulk(jobs('slow', 50));
    await until('all short jobs to end', () => short === 4_000);
    await until('all workers to hold a job', () => held.every((ids) => ids.length === 1), WINDOW_MS);
    await until('what nobody can start to wait', async () => (await queue.getActiveCount()) === WORKERS, WINDOW_MS);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 10, waiting: 40 });

    gate.open();
    await until('all jobs to complete', async () => (await queue.getCompletedCount()) === 4_050);
    const ran = held.flat();
    expect(ran.map(({ data }) => data as number).sort(byValue)).toEqual(Array.from({ length: 50 }, (_, i) => i));
    // Being taken back is no start and no stall.
    expect(new Set(ran.map(({ attemptsStarted, stalledCounter }) => `${attemptsStarted} ${stalledCounter}`))).toEqual(
      new Set(['1 0']),
    );
  });

  it('also when one of the short jobs has kept the event loop busy for longer', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const held: number[] = [];
    const processor: Processor = async (job) => {
      if (job.name === 'busy') for (const since = performance.now(); performance.now() - since < 60;);
      if (job.name !== 'slow') return;
      held.push(Number(job.id));
      await gate.opened;
    };
    stage.worker(processor);
    await queue.addBulk([...jobs('short', 500), ...jobs('busy', 1), ...jobs('short', 500), ...jobs('slow', 20)]);
    await until('the first slow job to run', () => held.length === 1);
    await until('what it cannot start to wait', async () => (await queue.getWaitingCount()) === 19, WINDOW_MS);
    stage.worker(processor, { concurrency: 3 });
    await until('the second worker to run others', () => held.length === 4, WINDOW_MS);
    await until('the rest to wait', async () => (await queue.getWaitingCount()) === 16, WINDOW_MS);
    expect(held.sort(byValue)).toEqual([1_002, 1_003, 1_004, 1_005]);
  });

  it('a worker whose event loop stands still keeps nothing from others', async () => {
    const queue = stage.queue();
    const program = stage.keep(
      Program.start('surplus-worker.mjs', { env: { QUEUE: stage.queueName, BLOCK_MS: 4 * WINDOW_MS } }),
    );
    // The job that blocks comes when the worker takes hundreds of jobs at a time.
    await queue.addBulk([...jobs('short', 1_000), ...jobs('block', 1), ...jobs('short', 1_000)]);
    await program.said('blocking');
    const late: number[] = [];
    stage.worker(async (job) => late.push(Number(job.id)));
    await until('the second worker to run the rest', () => late.length === 1_000, WINDOW_MS);
    expect(program.lines).toEqual(['blocking']);
    await program.kill();
  });

  it('a worker that comes later finds what a busy one could not start', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    let ended = 0;
    let busy = '';
    stage.worker(async (job) => {
      if (job.name === 'slow') {
        busy = String(job.id);
        await gate.opened;
      }
      ended++;
    });
    // The slow job comes when the worker takes hundreds of jobs at a time.
    await queue.addBulk([...jobs('short', 1_000), ...jobs('slow', 1), ...jobs('short', 1_000)]);
    await until('the slow job to run', () => busy !== '');
    const late: number[] = [];
    stage.worker(async (job) => late.push(Number(job.id)));
    await until('the second worker to run the rest', () => late.length === 1_000, WINDOW_MS);
    expect([ended, busy]).toEqual([1_000, '1001']);
    expect(late.sort(byValue)).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1_002));
    await until('their completion to be stored', async () => (await queue.getActiveCount()) === 1);
    expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 0, completed: 2_000 });
  });
});

function byValue(a: number, b: number): number {
  return a - b;
}
