// A look at one job is read by the event loop, as adds are, where the queue is asked nothing else meanwhile. Whatever happens to the connection, it finds what
// the engine would have found, in the order of the calls.
import type { Queue } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { breakAtRandom } from '../support/breaking.js';
import { chasquimq } from '../support/chasquimq.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { Gate, until } from '../support/waiting.js';

const ROUNDS = 200;
const BREAKS = 20;
const LIMIT_MS = 300_000;

describe('a look at a job', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();

  const open = (opts: object = {}): Queue => stage.queue({ connection: own.connection, ...opts });

  /** What the server is asked from now on: the address of who asks, and the command. */
  async function listen(): Promise<{ from: string; command: string }[]> {
    const monitor = await own.server.client().monitor();
    stage.keep({ close: async () => monitor.disconnect() });
    const asked: { from: string; command: string }[] = [];
    monitor.on('monitor', (_: string, args: string[], from: string) => {
      // the library's text, as it is loaded, has any word
      const isLoad = /^(function|script)$/i.test(args[0] ?? '');
      if (from !== 'lua' && !isLoad) asked.push({ from, command: args.join(' ') });
    });
    return asked;
  }

  /** Tells who asked for something the last time, from now on. */
  async function watch(): Promise<(what: string) => Promise<string>> {
    const asked = await listen();
    return async (what) => {
      const find = () => asked.findLast(({ command }) => command.includes(what))?.from;
      await until(what, () => find() !== undefined);
      return find() ?? '';
    };
  }

  it('goes by the connection of its queue, as the adds do', async () => {
    const [asker, queue] = [await watch(), open()];
    await queue.add('the first one', 0);
    const first = await asker('the first one');
    // from one of these on it goes by the event loop
    for (let i = 1; i < ROUNDS; i++) await queue.add('job', i);
    await queue.add('the last one', ROUNDS);
    expect(await asker('the last one')).toBe(first);
    expect((await queue.getJob(String(ROUNDS)))?.data).toBe(ROUNDS - 1);
    expect(await asker('XREVRANGE')).toBe(first);
    expect(await queue.getJob('none')).toBeUndefined();
    expect(await asker('none')).toBe(first);
  });

  it('finds its job where the server was not there at first', async () => {
    await own.server.kill();
    const queue = open();
    const first = queue.add('job', 'first');
    const found = queue.getJob('1');
    await own.server.start();
    expect((await first).id).toBe('1');
    expect((await found)?.data).toBe('first');
    for (let i = 0; i < ROUNDS; i++) {
      const { id = '' } = await queue.add('job', i);
      expect((await queue.getJob(id))?.data).toBe(i);
    }
    stage.takeErrors();
  });

  it('finds a job in every state, of any size', async () => {
    const queue = open();
    const sizes = [10, 20_000, 300_000];
    const gate = new Gate();
    const jobs = await queue.addBulk(sizes.map((size) => ({ name: 'job', data: 'x'.repeat(size) })));
    jobs.push(await queue.add('job', 'later', { delay: 60_000 }), await queue.add('job', 'first', { priority: 1 }));
    jobs.push(await queue.add('job', 'own', { jobId: 'own' }));

    async function expectAll(states: string[], results: unknown[]): Promise<void> {
      // twice, as what is found in vain by plain reads is asked for otherwise for some time
      for (const _ of [1, 2]) {
        for (const [i, { id = '', data }] of jobs.entries()) {
          const found = await queue.getJob(id);
          expect([found?.data as unknown, await found?.getState(), found?.returnvalue as unknown]).toEqual([
            data as unknown,
            states[i],
            results[i],
          ]);
        }
      }
    }

    const nothing = jobs.map(() => null);
    await expectAll(['waiting', 'waiting', 'waiting', 'delayed', 'prioritized', 'waiting'], nothing);
    const worker = stage.worker(
      async (job) => {
        await gate.opened;
        return job.data as unknown;
      },
      { connection: own.connection, concurrency: 10 },
    );
    let active = 0;
    worker.on('active', () => active++);
    await until('5 active jobs', () => active === 5);
    await expectAll(['active', 'active', 'active', 'delayed', 'active', 'active'], nothing);
    gate.open();
    await until('5 completed jobs', async () => (await queue.getCompletedCount()) === 5);
    const results = jobs.map((job, i) => (i === 3 ? null : (job.data as unknown)));
    await expectAll(['completed', 'completed', 'completed', 'delayed', 'completed', 'completed'], results);
  });

  it('keeps its place among calls that are not awaited', async () => {
    const queue = open();
    await queue.add('job', 0);
    for (let i = 0; i < ROUNDS; i++) {
      const { id = '' } = await queue.add('job', i);
      const [before, removed, behind] = await Promise.all([queue.getJob(id), queue.remove(id), queue.getJob(id)]);
      expect([before?.data as unknown, removed, behind]).toEqual([i, 1, undefined]);
      const added = queue.add('job', i, { jobId: `own-${i}` });
      expect((await queue.getJob(`own-${i}`))?.data).toBe(i);
      await added;
    }
  });

  it('finds its job while connections break, and the server forgets functions', { timeout: LIMIT_MS }, async () => {
    const breaking = await breakAtRandom(stage, own, new Random(11));
    const queue = open({ connection: breaking.connection });
    let rounds = 0;
    const look = async (): Promise<void> => {
      const opts = rounds % 3 === 0 ? { jobId: `own-${rounds}` } : {};
      const { id = '' } = await queue.add('job', rounds, opts);
      const [found, none] = [await queue.getJob(id), await queue.getJob(`none-${rounds}`)];
      expect([found?.id, found?.data as unknown, none]).toEqual([id, rounds++, undefined]);
    };
    try {
      while (breaking.count() < BREAKS) await look();
    } finally {
      await breaking.stop();
    }
    stage.takeErrors();
    expect(await queue.getWaitingCount()).toBe(rounds);
  });

  it('that is not awaited is answered before its queue closes', async () => {
    for (let i = 0; i < 20; i++) {
      const queue = open();
      const { id = '' } = await queue.add('job', i);
      // of some the connection of the adds is not there yet
      if (i % 2 === 0) await queue.add('job', i);
      const found = queue.getJob(id);
      await queue.close();
      expect((await found)?.data).toBe(i);
    }
  });

  it('that is cut off by a disconnect is answered or refused', async () => {
    for (let i = 0; i < 20; i++) {
      const queue = open();
      const { id = '' } = await queue.add('job', i);
      await queue.add('job', i);
      const found = queue.getJob(id).then(
        (job) => job?.data as unknown,
        (error: Error) => error.message,
      );
      await queue.disconnect();
      expect([i, 'Connection is closed.']).toContain(await found);
    }
  });
});
