// Commands of one queue that are not awaited: they take effect in the order of the calls.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';

/** What is out of order is so by chance. */
const ROUNDS = 300;
/** The same, where each round takes a queue of its own. */
const QUEUES = 60;

describe.each(libraries)('$name: connection.order', ({ lib }) => {
  const stage = useStage(lib);

  /** A queue whose adds and commands both have their way to the server. */
  async function openQueue(): Promise<Queue> {
    const queue = stage.queue();
    await queue.waitUntilReady();
    for (let i = 0; i < 3; i++) await queue.add('first', {});
    await queue.drain();
    return queue;
  }

  /** Plays many rounds, and collects what those found that did not find what they should. */
  async function oddRounds<T>(expected: T, round: (queue: Queue, id: string) => Promise<T>): Promise<T[]> {
    const queue = await openQueue();
    const odd: T[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const found = await round(queue, `round-${i}`);
      if (found !== expected) odd.push(found);
    }
    return odd;
  }

  describe('a call behind an add', () => {
    it('getJob finds the job', async () => {
      const odd = await oddRounds(true, async (queue, jobId) => {
        const added = queue.add('job', {}, { jobId });
        const found = await queue.getJob(jobId);
        await added;
        return found !== undefined;
      });
      expect(odd).toEqual([]);
    });

    it('getJob finds a job of a bulk', async () => {
      const odd = await oddRounds(true, async (queue, jobId) => {
        const added = queue.addBulk([
          { name: 'job', data: 1, opts: { jobId: `${jobId}-other` } },
          { name: 'job', data: 1, opts: { jobId } },
        ]);
        const found = await queue.getJob(jobId);
        await added;
        return found !== undefined;
      });
      expect(odd).toEqual([]);
    });

    it('getJob finds the last job of a bulk that is large', async () => {
      const queue = await openQueue();
      const data = 'x'.repeat(1000);
      for (let i = 0; i < 4; i++) {
        const jobs = Array.from({ length: 5000 }, (_, at) => ({ name: 'job', data, opts: { jobId: `${i}-${at}` } }));
        const added = queue.addBulk(jobs);
        expect((await queue.getJob(`${i}-4999`))?.id).toBe(`${i}-4999`);
        await added;
      }
    });

    it('count counts the job', async () => {
      const queue = await openQueue();
      const counts: number[] = [];
      for (let i = 0; i < ROUNDS; i++) {
        const added = queue.add('job', {});
        counts.push(await queue.count());
        await added;
      }
      expect(counts).toEqual(Array.from({ length: ROUNDS }, (_, i) => i + 1));
    });

    it('drain removes the job', async () => {
      const odd = await oddRounds(0, async (queue) => {
        await Promise.all([queue.add('job', {}), queue.drain()]);
        return queue.count();
      });
      expect(odd).toEqual([]);
    });

    it('a method of another job waits for it, too', async () => {
      const odd = await oddRounds('waiting', async (queue, jobId) => {
        const adding = queue.add('job', {}, { jobId });
        const other = new lib.Job(queue, 'job', {}, {}, jobId);
        const state = await other.getState();
        await adding;
        return state;
      });
      expect(odd).toEqual([]);
    });

    it('many that wait keep their order', async () => {
      const odd = await oddRounds(9, async (queue, jobId) => {
        const added = queue.add('job', {}, { jobId });
        await Promise.all(Array.from({ length: 10 }, (_, i) => queue.updateJobProgress(jobId, i)));
        await added;
        return (await queue.getJob(jobId))?.progress as number;
      });
      expect(odd).toEqual([]);
    });
  });

  describe('an add behind a call', () => {
    it('drain does not remove the job', async () => {
      const odd = await oddRounds(1, async (queue) => {
        await Promise.all([queue.drain(), queue.add('job', {})]);
        return queue.count();
      });
      expect(odd).toEqual([]);
    });

    it('getJob does not find the job', async () => {
      const odd = await oddRounds<Job | undefined>(undefined, async (queue, jobId) => {
        const found = queue.getJob(jobId);
        await queue.add('job', {}, { jobId });
        return found;
      });
      expect(odd).toEqual([]);
    });

    it('remove makes room for the job', async () => {
      const odd = await oddRounds('new', async (queue, jobId) => {
        await queue.add('old', {}, { jobId });
        await Promise.all([queue.remove(jobId), queue.add('new', {}, { jobId })]);
        return (await queue.getJob(jobId))?.name;
      });
      expect(odd).toEqual([]);
    });

    it('pause comes before the job', async () => {
      const queue = await openQueue();
      const events = stage.events();
      const seen: string[] = [];
      const all = new Promise<void>((resolve) => {
        events.on('paused', () => seen.push('paused'));
        events.on('added', ({ name }) => {
          if (name === 'first') return;
          if (seen.push('added') === 2 * ROUNDS) resolve();
        });
      });
      for (let i = 0; i < ROUNDS; i++) {
        await Promise.all([queue.pause(), queue.add('job', {})]);
        await queue.resume();
      }
      await all;
      expect(seen).toEqual(Array.from({ length: 2 * ROUNDS }, (_, i) => ['paused', 'added'][i % 2]));
    });
  });

  it('adds and calls in turn, none awaited', async () => {
    const queue = await openQueue();
    const calls: Promise<unknown>[] = [];
    const counts: Promise<number>[] = [];
    for (let i = 0; i < 10 * ROUNDS; i++) {
      calls.push(queue.add('job', {}));
      counts.push(queue.count());
    }
    await Promise.all(calls);
    const odd = (await Promise.all(counts)).filter((count, i) => count !== i + 1);
    expect(odd).toEqual([]);
  });

  it('adds and calls of a queue that is about to connect', async () => {
    await openQueue();
    const odd: string[] = [];
    for (let i = 0; i < QUEUES; i++) {
      const queue = stage.queue();
      let isReady = false;
      void queue.waitUntilReady().then(() => (isReady = true));
      const calls: Promise<unknown>[] = [];
      for (let after = 0; after < 3; after += Number(isReady)) {
        const jobId = `job-${i}-${calls.length}`;
        calls.push(queue.add('job', {}, { jobId }));
        calls.push(queue.getJob(jobId).then((job) => job ?? odd.push(jobId)));
        // the moments have to be many; each is one turn of the event loop
        await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(calls);
    }
    expect(odd).toEqual([]);
  });

  it('a close waits for what was given before it', async () => {
    for (let i = 0; i < QUEUES; i++) {
      const queue = await openQueue();
      const calls = [queue.add('job', {}), queue.drain(), queue.add('job', {}), queue.count()];
      await Promise.all([...calls, queue.close()]);
      expect(await calls[3]).toBe(1);
    }
  });
});
