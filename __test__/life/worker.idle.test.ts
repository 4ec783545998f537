// What idle workers ask of the server: whether anything has happened that nobody told of, the more rarely the longer nothing has, and all in one call.
import * as bullmq from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import type { Library } from '../support/libraries.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

type Calls = Record<string, number>;

/** What a worker looks with, or begins to wait with. */
const ROUND_COMMANDS = { ours: 'mget', theirs: 'bzpopmin' };
/** Ours take twice as long each time. */
const ROUNDS = 5;
const DRAIN_DELAY_S = 0.05;
/** What the worker does now and then, not in each round: it reads the server's clock, again where an answer was slow. */
const NOW_AND_THEN = ROUNDS / 2;
const JOBS = 10;
const WORKERS = 20;
/** The default: looks at multiples of it are those of all workers. */
const DEFAULT_DRAIN_DELAY_S = 5;

describe('idle workers', () => {
  const own = useOwnServer();

  /** Calls by command, those that functions and scripts make among them, but for those that only this test makes. */
  async function callsSoFar(): Promise<Calls> {
    const stats = await own.redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)];
    return Object.fromEntries(
      calls.map(([, name, count]) => [name, Number(count)]).filter(([name]) => name !== 'info'),
    );
  }

  /** Rounds so far: there is one such command in each. */
  const roundsOf = async (command: string): Promise<number> => (await callsSoFar())[command] ?? 0;

  async function callsOfRounds(command: string): Promise<Calls> {
    // by then the worker has all connections that it wants, and has looked for what others left
    const first = (await roundsOf(command)) + 3;
    await until('the worker to be idle', async () => (await roundsOf(command)) >= first);
    const before = await callsSoFar();
    await until('rounds in vain', async () => (await roundsOf(command)) >= (before[command] ?? 0) + ROUNDS);
    const after = Object.entries(await callsSoFar());
    const made = after.map(([command, count]) => [command, count - (before[command] ?? 0)] as const);
    return Object.fromEntries(made.filter(([, count]) => count > 0));
  }

  /** What a worker sends in so many rounds in vain. */
  async function callsOfIdle(lib: Library, delay?: number): Promise<Calls> {
    const { connection } = own;
    const queue = new lib.Queue('idle', { connection });
    if (delay) await queue.add('later', {}, { delay });
    const worker = new lib.Worker('idle', async () => undefined, { connection, drainDelay: DRAIN_DELAY_S });
    try {
      await worker.waitUntilReady();
      return await callsOfRounds(ROUND_COMMANDS[lib === chasquimq ? 'ours' : 'theirs']);
    } finally {
      await worker.close();
      await queue.obliterate();
      await queue.close();
    }
  }

  function total(calls: Calls): number {
    return Object.values(calls).reduce((sum, count) => sum + count, 0);
  }

  it.each([
    ['on an empty queue', undefined],
    ['beside a job that is delayed for long', 3_600_000],
  ])('%s send no more than a look that changes nothing', async (_, delay) => {
    const calls = await callsOfIdle(chasquimq, delay);
    // a call that reads the clock, and what queues are like; the rounds at both ends are counted in part
    expect(total(calls)).toBeLessThanOrEqual(3 * (calls.mget + 1) + NOW_AND_THEN);
    expect(Object.keys(calls)).not.toContain('set');
  });

  it('of one process look in one call', async () => {
    const { connection } = own;
    const names = Array.from({ length: WORKERS }, (_, i) => `idle-${i}`);
    // nothing may be sent yet: ioredis takes a command that comes with the answer for one
    const monitor = await own.redis.monitor();
    const workers = names.map((name) => new chasquimq.Worker(name, async () => undefined, { connection }));
    try {
      let areTogether = false;
      monitor.on('monitor', (_time: string, args: string[]) => {
        areTogether ||= names.every((name) => args.some((arg) => arg.includes(`{bull:${name}}:`)));
      });
      await Promise.all(workers.map((worker) => worker.waitUntilReady()));
      await until('a look of all', () => areTogether, 6 * DEFAULT_DRAIN_DELAY_S * 1000);
    } finally {
      monitor.disconnect();
      await Promise.all(workers.map((worker) => worker.close()));
    }
  });

  it('look once for each delayed job, and for no other meanwhile', async () => {
    const { connection } = own;
    const queue = new chasquimq.Queue('delayed', { connection });
    let ended = 0;
    const worker = new chasquimq.Worker('delayed', async () => undefined, { connection, concurrency: 10 });
    worker.on('completed', () => ended++);
    try {
      await worker.waitUntilReady();
      const later = (_: unknown, i: number) => ({ name: 'job', data: {}, opts: { delay: 300 + 40 * i } });
      await queue.addBulk(Array.from({ length: JOBS }, later));
      const before = await callsSoFar();
      await until('all jobs to end', () => ended === JOBS);
      // a step takes the job, another records its end; a slow machine may need one more
      expect((await callsSoFar()).fcall - before.fcall).toBeLessThanOrEqual(3 * JOBS + NOW_AND_THEN);
    } finally {
      await worker.close();
      await queue.obliterate();
      await queue.close();
    }
  });

  it("send less than BullMQ's do in a shorter time", async () => {
    const [theirs, ours] = [await callsOfIdle(bullmq), await callsOfIdle(chasquimq)];
    expect(total(ours)).toBeLessThan(total(theirs));
  });
});
