// What the addon is called is answered by its number, also beyond those that fit into 32 bits: a thread may live for that many calls.
import { describe, expect, it } from 'vitest';
import { native } from '../../src/native/addon.js';
import { Drawing } from '../../src/worker/drawing.js';
import type { NativeAdded, NativeBatch } from '../../src/native/types.js';
import { chasquimq } from '../support/chasquimq.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

/** The number of the last call before. */
const MADE = 2 ** 32 + 5;
/** Calls of one job: the first ones go by the engine's connection, later ones by a socket. */
const SINGLES = 20;
/** Batches of one job, and of two in turn. */
const ROUNDS = 20;

describe('numbers of calls', () => {
  const own = useOwnServer();

  function target(name: string) {
    return { name, prefix: 'bull', connection: own.connection };
  }

  it('adds', async () => {
    const answers: number[] = [];
    const added = (all: NativeAdded[]): unknown => all.map(({ request }) => answers.push(request));
    const queue = new native.NativeQueue(
      target('adds'),
      (message) => added(message.added ?? []),
      (request) => answers.push(request),
    );
    let made = MADE;
    const answer = (): Promise<boolean> => until('its answer', () => answers.at(-1) === made);
    for (let i = 0; i < SINGLES; i++) {
      queue.addOne(++made, Date.now(), 'job', '{}');
      await answer();
    }
    queue.add(++made, Date.now(), 'job{}job{}', Uint32Array.of(3, 2, 0, 3, 2, 0), ['{}']);
    await answer();
    expect(answers).toEqual(Array.from({ length: SINGLES + 1 }, (_, i) => MADE + 1 + i));
    await queue.close();
  });

  it('ends of jobs', async () => {
    const queue = new chasquimq.Queue('ends', { connection: own.connection });
    const stored: number[] = [];
    let flush = MADE;
    const end = ({ base, count, offer }: Pick<NativeBatch, 'base' | 'count' | 'offer'>): void => {
      for (let i = 0; i < count; i++) expect(drawing.draw(offer)).toBe(true);
      const handles = Uint32Array.from({ length: count }, (_, i) => base + i);
      const finish = (): void => worker.finish(++flush, Date.now(), handles, new Int32Array(count).fill(-1), '');
      process.nextTick(finish);
    };
    const worker = new native.NativeWorker(
      {
        ...target('ends'),
        ...{ id: 'worker', concurrency: 2, lockDuration: 30_000, lockRenewTime: 15_000, stalledInterval: 30_000 },
        ...{ maxStalledCount: 1, drainDelay: 5, runRetryDelay: 1_000, maximumRateLimitDelay: 1_000 },
      },
      ({ flushed, jobs }) => {
        if (flushed !== undefined) stored.push(flushed);
        if (jobs) end(jobs);
      },
      (base, offer) => end({ base, count: 1, offer }),
    );
    const drawing = new Drawing(worker);
    worker.run(Date.now(), false);
    let jobs = 0;
    for (let i = 0; i < ROUNDS; i++) {
      const added = await queue.addBulk(Array.from({ length: 1 + (i % 2) }, () => ({ name: 'job', data: {} })));
      jobs += added.length;
      const isStored = async (): Promise<boolean> => (await queue.getCompletedCount()) === jobs;
      await until('their ends to be told', async () => (await isStored()) && stored.at(-1) === flush);
    }
    expect(stored.every((number) => number > MADE)).toBe(true);
    await worker.close(false);
    await queue.close();
  });
});
