// What an idle worker asks of the server: a look after the other for what nobody told of.
import * as bullmq from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import type { Library } from '../support/libraries.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

type Calls = Record<string, number>;

/** What a worker begins to wait with. */
const WAIT_COMMANDS = { ours: 'sadd', theirs: 'bzpopmin' };
const ROUNDS = 10;
const DRAIN_DELAY_S = 0.1;
/**
 * What the worker does now and then, not in each round: it reads the server's clock, again where an answer was slow, and looks for jobs of workers
 * that are gone. One call more in each round is twice as much.
 */
const NOW_AND_THEN = ROUNDS / 2;

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

  /** Waits so far: each is begun by the command. */
  const waitsOf = async (command: string): Promise<number> => (await callsSoFar())[command] ?? 0;

  async function callsOfRounds(command: string): Promise<Calls> {
    // by then the worker has all connections that it wants, and has looked for what others left
    const first = (await waitsOf(command)) + 3;
    await until('the worker to be idle', async () => (await waitsOf(command)) >= first);
    const before = await callsSoFar();
    await until('waits in vain', async () => (await waitsOf(command)) >= (before[command] ?? 0) + ROUNDS);
    const after = Object.entries(await callsSoFar());
    const made = after.map(([command, count]) => [command, count - (before[command] ?? 0)] as const);
    return Object.fromEntries(made.filter(([, count]) => count > 0));
  }

  /** What a worker sends that waits so many times in vain. */
  async function callsOfIdle(lib: Library, delay?: number): Promise<Calls> {
    const { connection } = own;
    const queue = new lib.Queue('idle', { connection });
    if (delay) await queue.add('later', {}, { delay });
    const worker = new lib.Worker('idle', async () => undefined, { connection, drainDelay: DRAIN_DELAY_S });
    try {
      await worker.waitUntilReady();
      return await callsOfRounds(WAIT_COMMANDS[lib === chasquimq ? 'ours' : 'theirs']);
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
    ['on an empty queue', undefined, 4],
    ['beside a job that is delayed for long', 3_600_000, 5],
  ])('%s send no more than a look that changes nothing', async (_, delay, most) => {
    const calls = await callsOfIdle(chasquimq, delay);
    // the rounds at both ends are counted in part
    expect(total(calls)).toBeLessThanOrEqual(most * (calls.sadd + 1) + NOW_AND_THEN);
    expect(Object.keys(calls)).not.toContain('set');
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
      await queue.addBulk(Array.from({ length: ROUNDS }, later));
      const before = await callsSoFar();
      await until('all jobs to end', () => ended === ROUNDS);
      // a step takes the job, another records its end
      expect((await callsSoFar()).fcall - before.fcall).toBeLessThanOrEqual(2 * ROUNDS + NOW_AND_THEN);
    } finally {
      await worker.close();
      await queue.obliterate();
      await queue.close();
    }
  });

  it("send less than BullMQ's", async () => {
    const [theirs, ours] = [await callsOfIdle(bullmq), await callsOfIdle(chasquimq)];
    expect(total(ours) / ours.sadd).toBeLessThan(total(theirs) / theirs.bzpopmin);
  });
});
