// What a worker process leaves behind that is killed with SIGKILL: every job is run, and none again whose completion
// Redis had recorded, also when it is one of many in a frame.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { mastersOf, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';
import { useWatchdog } from '../support/watched.js';

const JOBS = 12_000;
const KILLS = 6;

/** The last worker waits for the lease of the one before, half a second, and runs what is left. */
const FINISH_MS = 60_000;

describe('worker.kill', () => {
  const stage = useStage(chasquimq);
  // it reads all jobs at once
  useWatchdog(stage, { mostPause: Infinity });
  let folder = '';
  let redis: Redis;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
    redis = redisClient();
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    await redis.quit();
  });

  /** Plain jobs, which travel in frames, and every twelfth with an id of its own, which travels by itself. */
  async function addJobs(queue: Queue): Promise<string[]> {
    const jobs = Array.from({ length: JOBS }, (_, i) => ({
      name: 'job',
      data: i,
      ...(i % 12 === 5 && { opts: { jobId: `own-${i}` } }),
    }));
    const added: Job[] = [];
    for (let from = 0; from < JOBS; from += 600) added.push(...(await queue.addBulk(jobs.slice(from, from + 600))));
    return added.map(({ id }) => String(id));
  }

  function start(owner: number, env: Record<string, string | number>): Program {
    const common = { QUEUE: stage.queueName, OWNER: owner, LEDGER: join(folder, 'ledger') };
    return stage.keep(Program.start('ledger-worker.mjs', { env: { ...common, ...env } }));
  }

  /** Runs worker `owner` up to a moment in the middle of its work. */
  async function runUntilKilled(owner: number, random: Random, env: Record<string, string>): Promise<void> {
    const told = owner % 2 === 1;
    const dieAt = 1 + random.next(1_500);
    const program = start(owner, { ...env, DIE_AT: dieAt, DIE_HOW: told ? 'told' : 'itself' });
    if (told) {
      await program.said('reached');
      await program.kill();
    }
    expect(await program.ended, program.errors).toEqual({ code: null, signal: 'SIGKILL' });
    // Redis goes on reading what the process had sent, up to its end.
    await until('the end of its connections', async () => {
      const lists = await Promise.all(mastersOf(redis).map((master) => master.client('LIST')));
      return !lists.join().includes(` name=${stage.queueName}-${owner} `);
    });
  }

  /** Ids of the jobs whose completion is not recorded. */
  async function unfinished(queue: Queue): Promise<Set<string>> {
    const jobs = await queue.getJobs(['waiting', 'active', 'delayed', 'failed']);
    return new Set(jobs.map(({ id }) => String(id)));
  }

  it.each([
    ['completed jobs are kept', 11, { REMOVE: 'false' }],
    ['completed jobs are removed', 12, { REMOVE: 'true' }],
    ['handlers take time, and their ends wait for each other', 13, { REMOVE: 'false', TAKES: '20' }],
  ])('loses no job and repeats none that is recorded as completed: %s', async (_, seed, env) => {
    const random = new Random(seed);
    const queue = stage.queue();
    const ids = await addJobs(queue);
    expect(new Set(ids).size).toBe(JOBS);

    // For each job, the worker under which its completion was recorded.
    const recordedUnder = new Map<string, number>();
    const record = async (owner: number) => {
      const left = await unfinished(queue);
      for (const id of ids) {
        if (!left.has(id) && !recordedUnder.has(id)) recordedUnder.set(id, owner);
        // What was recorded stays so.
        if (left.has(id) && recordedUnder.has(id)) expect.fail(`job ${id} is no longer completed`);
      }
    };
    for (let owner = 0; owner < KILLS; owner++) {
      await runUntilKilled(owner, random, env);
      await record(owner);
    }
    expect(recordedUnder.size).toBeLessThan(JOBS);
    const last = start(KILLS, env);
    const idle = async () => Object.values(await queue.getJobCounts('waiting', 'active')).every((count) => count === 0);
    await until('the last worker to finish', idle, FINISH_MS);
    await last.kill();
    await record(KILLS);

    const kept = env.REMOVE === 'true' ? 0 : JOBS;
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0, completed: kept });
    expect(recordedUnder.size).toBe(JOBS);

    const runs = new Map<string, number[]>(ids.map((id) => [id, []]));
    for (const line of readFileSync(join(folder, 'ledger'), 'utf8').trimEnd().split('\n')) {
      const [owner, id = ''] = line.split(' ');
      const ofJob = runs.get(id) ?? expect.fail(`job ${id} was never added`);
      ofJob.push(Number(owner));
    }
    let repeated = 0;
    for (const [id, owners] of runs) {
      // Run last by the worker that reported it, never twice by one worker, never after it was recorded.
      expect([id, owners.at(-1)]).toEqual([id, recordedUnder.get(id)]);
      expect([id, owners]).toEqual([id, [...new Set(owners)].sort((a, b) => a - b)]);
      if (owners.length > 1) repeated++;
    }
    // Workers were killed while they held jobs that had run: otherwise this would have proved nothing.
    expect(repeated).toBeGreaterThan(0);
  });
});
