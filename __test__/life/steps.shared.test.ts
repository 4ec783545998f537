// What ends one by one while no slot is idle shares steps: each costs the server about as much as ten jobs in it do.
import { describe, expect, it } from 'vitest';
import { Queue, Worker } from '../../src/index.js';
import { useOwnServer } from '../support/use-own-server.js';

const JOBS = 2_000;
/** Who ends none for so long learns the pace of its jobs anew, from so many of them. */
const PAUSE_MS = 15;
const TO_LEARN = 50;

describe('steps', () => {
  const own = useOwnServer();

  async function functionCalls(): Promise<number> {
    const stats = await own.redis.info('commandstats');
    return Number(/cmdstat_fcall:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  /** Ends a job each millisecond, by the clock; as many as are due, when it is held up. Gives how often that was for long. */
  function endOneByOne(running: (() => void)[]): Promise<number> {
    const start = performance.now();
    let [ended, pauses, last] = [0, 0, start];
    return new Promise((resolve) => {
      const turn = () => {
        const now = performance.now();
        if (now - last > PAUSE_MS) pauses++;
        last = now;
        const some = running.splice(0, Math.max(Math.floor(now - start) - ended, 0));
        for (const end of some) end();
        ended += some.length;
        if (ended === JOBS) resolve(pauses);
        else setTimeout(turn, 1);
      };
      turn();
    });
  }

  // A step that waits 2 ms for more to end records two jobs at least. Without sharing each turn of the event loop has its step. What slows this
  // process, the engine or the server makes steps fewer, as more has ended by then; only a long pause does not, which is allowed for.
  it('are shared by jobs that end at different times', async () => {
    const queue = new Queue('shared', { connection: own.connection });
    await queue.addBulk(Array.from({ length: JOBS }, (_, i) => ({ name: 'job', data: i })));
    const running: (() => void)[] = [];
    const run = () => new Promise<void>((resolve) => running.push(resolve));
    const worker = new Worker('shared', run, { connection: own.connection, concurrency: 20 });
    let completed = 0;
    const all = new Promise<void>((resolve) => worker.on('completed', () => ++completed === JOBS && resolve()));
    await worker.waitUntilReady();
    const before = await functionCalls();
    const pauses = await endOneByOne(running);
    await all;
    const steps = (await functionCalls()) - before;
    expect(steps).toBeLessThan(JOBS / 2 + TO_LEARN * (pauses + 1));
    await worker.close();
    await queue.close();
  });
});
