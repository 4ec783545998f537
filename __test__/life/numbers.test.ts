// What the addon is called is answered by its number, also beyond those that fit into 32 bits: a thread may live for that many calls.
import { describe, expect, it } from 'vitest';
import { native } from '../../src/native/addon.js';
import type { NativeAdded, NativeBatch } from '../../src/native/types.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

/** The number of the last call before. */
const MADE = 2 ** 32 + 5;
/** Calls of one job: the first ones go by the engine's connection, later ones by a socket. */
const SINGLES = 20;

describe('numbers of calls', () => {
  const own = useOwnServer();

  function target(name: string) {
    return { name, prefix: 'bull', connection: own.connection };
  }

  /** A queue that adds jobs, each call behind the answer to the last; and the numbers of the answers. */
  function adder(name: string) {
    const answers: number[] = [];
    const added = (all: NativeAdded[]): unknown => all.map(({ request }) => answers.push(request));
    const queue = new native.NativeQueue(
      target(name),
      (message) => added(message.added ?? []),
      (request) => answers.push(request),
    );
    let made = MADE;
    async function call(give: (request: number) => void): Promise<void> {
      give(++made);
      await until('its answer', () => answers.at(-1) === made);
    }
    return {
      queue,
      answers,
      addOne: () => call((request) => queue.addOne(request, Date.now(), 'job', '{}')),
      addTwo: () =>
        call((request) => queue.add(request, Date.now(), 'job{}job{}', Uint32Array.of(3, 2, 0, 3, 2, 0), ['{}'])),
    };
  }

  function upTo(count: number): number[] {
    return Array.from({ length: count }, (_, i) => MADE + 1 + i);
  }

  it('adds', async () => {
    const { queue, answers, addOne, addTwo } = adder('adds');
    for (let i = 0; i < SINGLES; i++) await addOne();
    await addTwo();
    expect(answers).toEqual(upTo(SINGLES + 1));
    await queue.close();
  });

  it('ends of jobs', async () => {
    const { queue, addOne, addTwo } = adder('ends');
    const stored: number[] = [];
    let flush = MADE;
    const end = ({ base, count }: Pick<NativeBatch, 'base' | 'count'>): void => {
      worker.draw(base, count);
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
      (base) => end({ base, count: 1 }),
    );
    worker.run(Date.now(), false);
    for (let i = 0; i < SINGLES; i++) {
      await (i % 2 === 0 ? addOne() : addTwo());
      await until('its end to be stored', () => flush > MADE && stored.at(-1) === flush);
    }
    expect(stored.every((number) => number > MADE)).toBe(true);
    await worker.close(false);
    await queue.close();
  });
});
