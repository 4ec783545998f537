// Several worker processes, and handlers of mixed length: nobody waits behind somebody else's job, and who dies or stands still takes no more
// jobs along than it ran. What is expected is who ran what and in which order: BullMQ, which takes no job in advance, is the control.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Redis } from 'ioredis';
import type { Queue } from 'bullmq';
import { Crew } from '../support/crew.js';
import type { CrewRun } from '../support/crew.js';
import { libraries } from '../support/libraries.js';
import { workPace } from '../support/pace.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { sleep, until } from '../support/waiting.js';

/** Factor by which this machine is slower than one on which known work takes a millisecond. */
const SLOWER = Math.max(1, workPace());
/** A blocked event loop waits so long at most for what others are to do meanwhile, which takes them milliseconds. */
const BLOCK_MS = 1_000 * SLOWER;
/** Of workers that are killed, or stand still. One that lives renews its lease in time on a slow machine, too. */
const LEASE = { LOCK_MS: 3_000, SCAN_MS: 200 };

/** What comes by chance comes again. */
const ROUNDS = 10;

describe.each(libraries)('$name: worker.mixed', ({ name, lib }) => {
  const stage = useStage(lib);
  let folder = '';
  let redis: Redis;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-mixed-'));
    redis = redisClient();
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    await redis.quit();
  });

  const jobs = (count: number, kind: string, data: object = {}) =>
    Array.from({ length: count }, () => ({ name: kind, data }));

  async function crewOf(count: number, queue: Queue, env: Record<string, string | number>): Promise<Crew> {
    const crew = await Crew.start(stage, name, count, env);
    if (env.WARM !== 0) await crew.warmUp(queue);
    return crew;
  }

  /** How many of the jobs behind one that blocks its loop wait for the end of that, though it ends only when no more than `most` are left. */
  async function heldBehind(crew: Crew, queue: Queue, { before, behind, most }: Record<string, number>) {
    const file = join(folder, randomUUID());
    const added = await crew.add(queue, [
      ...jobs(before, 'quick'),
      ...jobs(1, 'blockUntil', { file, ms: BLOCK_MS }),
      ...jobs(behind, 'quick'),
    ]);
    const ids = added.map(({ id }) => id);
    const [blocker] = ids.splice(before, 1);
    await crew.ended(ids, ids.length - most);
    writeFileSync(file, '');
    const [{ to: end = NaN } = {}] = await crew.ended([blocker]);
    const runs = await crew.ended(ids);
    return runs.filter(({ to = Infinity }) => to > end).length;
  }

  it.each([
    ['cold', 1, 0, 1],
    ['warm', 1, 0, 1],
    ['warm', 1, 600, 30],
    ['cold', 5, 0, 30],
    ['warm', 5, 0, 30],
    ['warm', 5, 600, 30],
    ['cold', 50, 0, 200],
    ['warm', 50, 0, 200],
    ['warm', 50, 600, 200],
  ])(
    'jobs end while the one before them blocks a worker, but for those in its slots: %s, concurrency %i, %i jobs before, %i behind',
    async (state, concurrency, before, behind) => {
      const queue = stage.queue();
      const crew = await crewOf(2, queue, { CONCURRENCY: concurrency, ...(state === 'cold' && { WARM: 0 }) });
      for (let round = 0; round < 5; round++) {
        const held = await heldBehind(crew, queue, { before, behind, most: concurrency - 1 });
        expect(held, `round ${round}`).toBeLessThan(concurrency);
      }
    },
  );

  it('jobs that block their event loops until as many have started as there are idle workers start on one each', async () => {
    const queue = stage.queue();
    const crew = await crewOf(4, queue, { CONCURRENCY: 1 });
    for (let round = 0; round < 3; round++) {
      const file = join(folder, randomUUID());
      const ids = (await crew.add(queue, jobs(4, 'blockUntil', { file, ms: BLOCK_MS }))).map(({ id }) => id);
      const runs = await crew.started(ids);
      writeFileSync(file, '');
      expect(workersOf(runs), `round ${round}`).toEqual([0, 1, 2, 3]);
      await crew.ended(ids);
    }
  });

  it('jobs that wait for a signal that comes when as many have started as there are idle workers start on one each', async () => {
    const queue = stage.queue();
    const crew = await crewOf(4, queue, { CONCURRENCY: 1 });
    const { neglects } = await crew.neglects(redis, async () => {
      const ids = (await crew.add(queue, jobs(4, 'await'))).map(({ id }) => id);
      expect(workersOf(await crew.started(ids))).toEqual([0, 1, 2, 3]);
      crew.tell('go');
      await crew.ended(ids);
    });
    expect(neglects).toEqual([]);
  });

  it('a few short jobs are spread over idle workers', async () => {
    const queue = stage.queue();
    const crew = await crewOf(4, queue, { CONCURRENCY: 1 });
    const used: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const added = await crew.add(queue, jobs(4, 'async', { ms: 50 * SLOWER }));
      const runs = await crew.ended(added.map(({ id }) => id));
      used.push(new Set(workersOf(runs)).size);
    }
    expect(sum(used), `workers in each round: ${used.join(' ')}`).toBeGreaterThan(3 * ROUNDS);
  });

  it('sixty-four jobs are shared by eight workers, none of whom runs more than twice its share', async () => {
    const queue = stage.queue();
    const crew = await crewOf(8, queue, { CONCURRENCY: 1 });
    const added = await crew.add(queue, jobs(64, 'async', { ms: 45 * SLOWER }));
    const workers = workersOf(await crew.ended(added.map(({ id }) => id)));
    const shares = crew.members.map((_, member) => workers.filter((by) => by === member).length);
    expect(Math.max(...shares), `shares: ${shares.join(' ')}`).toBeLessThanOrEqual(16);
  });

  it.each([1, 5, 50])('no job of a steady mix waits while a worker is idle: concurrency %i', async (concurrency) => {
    const queue = stage.queue();
    const crew = await crewOf(4, queue, { CONCURRENCY: concurrency });
    const random = new Random(concurrency);
    const calls = Array.from({ length: 100 }, () =>
      Array.from({ length: 1 + random.next(7) }, () => (random.next(20) === 0 ? 'block' : 'quick')),
    );
    const { neglects, mostMs } = await crew.neglects(redis, async () => {
      const ids: (string | undefined)[] = [];
      for (const kinds of calls) {
        const rows = kinds.flatMap((kind) => jobs(1, kind, { ms: 100 * SLOWER }));
        ids.push(...(await crew.add(queue, rows)).map(({ id }) => id));
        // the load: one worker in eight is busy on average
        await sleep(40 * SLOWER);
      }
      await crew.ended(ids);
    });
    const [inSlots, others] = [true, false].map((is) => neglects.filter(({ inSlot }) => inSlot === is));
    expect(others, `longer than ${mostMs.toFixed()} ms`).toEqual([]);
    // what is on its way to a free slot when a handler of the same worker begins to block: in BullMQ one each time, at most
    const blocks = calls.flat().filter((kind) => kind === 'block').length;
    const most = concurrency === 1 ? 1 : name === 'bullmq' ? blocks + 1 : blocks / 2;
    expect(inSlots?.length, `behind ${blocks} that block`).toBeLessThan(most);
  });

  it.each([1, 5, 50])('who is killed takes along what it ran, and no more: concurrency %i', async (concurrency) => {
    const queue = stage.queue();
    const env = { CONCURRENCY: concurrency, ...LEASE, STALLS: 0 };
    const crew = await crewOf(1, queue, env);
    const added = await crew.add(queue, [...jobs(1_000, 'quick'), ...jobs(1, 'die'), ...jobs(1_000, 'quick')]);
    expect(await crew.members[0]?.ended).toEqual({ code: null, signal: 'SIGKILL' });
    await crewOf(1, queue, { ...env, WARM: 0 });
    await until('the rest to end', () => isDone(queue));
    const failed = (await queue.getFailed()).map(({ id }) => id);
    expect(failed).toContain(added[1_000]?.id);
    expect(failed.length).toBeLessThanOrEqual(concurrency);
  });

  it('a job that was only taken in advance by who was killed is not one that ran: it fails no sooner for it', async () => {
    const queue = stage.queue();
    const env = { CONCURRENCY: 1, ...LEASE };
    const killers = ['one', 'two', 'three'].flatMap((file) => jobs(1, 'dieOnce', { file: join(folder, file) }));
    const crew = await crewOf(1, queue, env);
    const added = await crew.add(queue, [...jobs(1_000, 'quick'), ...killers, ...jobs(1_000, 'quick')]);
    await crew.members[0]?.ended;
    expect((await queue.getActiveCount()) > 1, 'jobs were taken in advance').toBe(name === 'chasquimq');
    // one that dies may not come to say that it is ready
    const start = () =>
      stage.keep(Program.start('mixed-worker.mjs', { env: { LIBRARY: name, QUEUE: stage.queueName, ...env } }));
    for (const _ of killers.slice(1)) expect(await start().ended).toEqual({ code: null, signal: 'SIGKILL' });
    start();
    await until('the rest to end', () => isDone(queue));
    expect((await queue.getFailed()).map(({ id }) => id)).toEqual([]);
    const ids = new Set(added.map(({ id }) => id));
    const ended = (await queue.getCompleted()).filter(({ id }) => ids.has(id));
    expect(ended).toHaveLength(ids.size);
    // as many as were killed ran one
    expect(sum(ended.map(({ stalledCounter }) => stalledCounter))).toBe(killers.length);
  });

  it('who stands still for longer than its lease has run twice what it ran, and no more', async () => {
    const queue = stage.queue();
    const env = { CONCURRENCY: 10, ...LEASE, STALLS: 5 };
    const crew = await crewOf(1, queue, env);
    const added = await crew.add(queue, jobs(300, 'async', { ms: 30 }));
    const ids = new Set(added.map(({ id }) => id));
    const [frozen] = crew.members as [Program];
    await frozen.said('ended', 50);
    process.kill(frozen.pid, 'SIGSTOP');
    const other = await crewOf(1, queue, { ...env, WARM: 0 });
    await until('the other to run the rest', () => isDone(queue));
    process.kill(frozen.pid, 'SIGCONT');
    frozen.tell('close');
    await frozen.end();
    const ran = [...crew.runs, ...other.runs].map(({ id }) => id).filter((id) => ids.has(id));
    expect(new Set(ran).size).toBe(300);
    expect(ran.length).toBeLessThanOrEqual(310);
  });
});

function workersOf(runs: readonly CrewRun[]): number[] {
  return runs.map(({ by }) => by).sort((one, other) => one - other);
}

async function isDone(queue: Queue): Promise<boolean> {
  return Object.values(await queue.getJobCounts('waiting', 'active')).every((count) => count === 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
