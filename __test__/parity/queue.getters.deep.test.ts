// Pins pages of Queue#getJobs from the midst of a line of thousands of jobs of every kind, while jobs come and go.
import { describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';

const HOUR_MS = 3_600_000;

describe.each(libraries)('$name: pages deep in the waiting list', ({ lib }) => {
  const stage = useStage(lib);

  async function add(queue: Queue, count: number, opts: (i: number) => object = () => ({})): Promise<string[]> {
    const jobs = await queue.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'n', data: i, opts: opts(i) })));
    return jobs.map(({ id = '' }) => id);
  }

  /** Pages from places all over the waiting list, asked for in every way. */
  async function expectPages(queue: Queue, line: readonly string[]): Promise<void> {
    const { length } = line;
    for (const place of [0.05, 0.3, 0.5, 0.62, 0.97]) {
      const from = Math.floor(place * length);
      const to = Math.min(from + 29, length - 1);
      const expected = line.slice(from, to + 1);
      const ways = [
        [from, to, true],
        [from - length, to - length, true],
        [length - 1 - to, length - 1 - from, false],
        [-1 - to, -1 - from, false],
      ] as const;
      for (const [start, end, asc] of ways) {
        const jobs = await queue.getJobs(['waiting'], start, end, asc);
        const ids = jobs.map(({ id }) => id);
        expect([start, end, asc, asc ? ids : ids.toReversed()]).toEqual([start, end, asc, expected]);
      }
    }
  }

  it('show the jobs that stand there, of every kind', async () => {
    const queue = stage.queue();
    const line = await add(queue, 700);
    const later: string[] = [];
    for (let i = 0; i < 8; i += 1) {
      line.push(...(await add(queue, 60, (n) => (n % 4 === 0 ? { jobId: `own-${i}-${n}` } : {}))));
      later.push(...(await add(queue, 40, () => ({ delay: HOUR_MS }))));
      line.push(...(await add(queue, 70)));
    }
    await expectPages(queue, line);
    for (const id of later.slice(0, 90)) await (await fetchJob(queue, id)).promote();
    line.push(...later.slice(0, 90), ...(await add(queue, 500)));
    await expectPages(queue, line);
    expect((await queue.getJobs(['waiting'], 0, -1, true)).map(({ id }) => id)).toEqual(line);
  });

  it('follow what leaves the waiting list, and what comes', async () => {
    const queue = stage.queue();
    const worker = stage.worker(null);
    let line = await add(queue, 1_500, (i) => (i % 50 === 7 ? { jobId: `own-${i}` } : {}));
    line.push(...(await add(queue, 1_500)));
    await queue.pause();
    for (const [round, place] of [0.9, 0.4, 0.7].entries()) {
      const from = Math.floor(place * line.length);
      const going = new Set(line.slice(from, from + 150).filter((_, i) => i % 3 === round));
      for (const id of going) await queue.remove(id);
      line = line.filter((id) => !going.has(id));
      line.push(...(await add(queue, 100, () => (round === 1 ? { priority: 0, attempts: 2 } : {}))));
      await expectPages(queue, line);
    }
    await queue.resume();
    for (let i = 0; i < 3; i += 1) expect((await worker.getNextJob('token'))?.id).toBe(line.shift());
    line.unshift(...(await add(queue, 1, () => ({ lifo: true }))));
    await expectPages(queue, line);
  });
});
