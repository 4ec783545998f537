// A process that adds and processes jobs without end stays as large as it is, and so does Redis.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { useWatchdog } from '../support/watched.js';

const MB = 2 ** 20;
const LIMIT_MS = 300_000;

interface Look {
  heap: number;
  rss: number;
  external: number;
}

describe('memory', () => {
  const stage = useStage(chasquimq);
  useWatchdog(stage);

  async function run(kind: 'plain' | 'odd', jobs: number): Promise<{ looks: Look[]; runs: number }> {
    const env = { QUEUE: stage.queueName, KIND: kind, JOBS: jobs };
    const program = stage.keep(Program.start('million.mjs', { env, nodeOptions: ['--expose-gc'] }));
    const runs = Number(await program.said('done', 1, LIMIT_MS));
    expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
    const looks = program.lines.slice(0, -1).map((line) => {
      const [, , heap = NaN, rss = NaN, external = NaN] = line.split(' ').map(Number);
      return { heap, rss, external };
    });
    return { looks, runs };
  }

  /**
   * Growth that is there to stay, in MB: the least of the last three looks against the greatest of the first three. What
   * breathes does not count, while a leak of b bytes a job counts with b times half of the jobs.
   */
  function growth(looks: Look[], what: keyof Look): number {
    const values = looks.map((look) => look[what]);
    return (Math.min(...values.slice(-3)) - Math.max(...values.slice(0, 3))) / MB;
  }

  /** Bytes that the queue takes in Redis. */
  async function storedBytes(): Promise<number> {
    const redis = redisClient();
    let total = 0;
    for (const key of await keysContaining(redis, stage.queueName)) {
      total += Number(await redis.memory('USAGE', key, 'SAMPLES', 0));
    }
    await redis.quit();
    return total;
  }

  it('of a million jobs nothing is left', { timeout: LIMIT_MS }, async () => {
    const { looks, runs } = await run('plain', 1_000_000);
    expect([looks.length, runs]).toEqual([10, 1_000_000]);
    // 4 MB are 8 bytes a job: less than anything that could be kept of one.
    expect(growth(looks, 'heap')).toBeLessThan(4);
    expect(growth(looks, 'external')).toBeLessThan(4);
    // Allocators keep pages as they please: 5 MB up and down are usual. 20 MB are 40 bytes a job.
    expect(growth(looks, 'rss')).toBeLessThan(20);
    // An empty queue and its capped event stream, measured at 20 to 40 kB.
    expect(await storedBytes()).toBeLessThan(MB);
  });

  it('of jobs with ids, retries, progress and events nothing is left', { timeout: LIMIT_MS }, async () => {
    const { looks, runs } = await run('odd', 25_000);
    expect([looks.length, runs]).toEqual([10, 50_000]);
    // 2 MB are 160 bytes a job, of which each has its own id, error and promises.
    expect(growth(looks, 'heap')).toBeLessThan(2);
    expect(growth(looks, 'external')).toBeLessThan(2);
    // The first looks come while the process still grows to its size, by about 20 MB.
    expect(growth(looks, 'rss')).toBeLessThan(60);
    // The events of this kind are larger: measured at 150 kB.
    expect(await storedBytes()).toBeLessThan(MB);
  });
});
