// The process that moves jobs is killed again and again, while workers of both libraries run: each job runs once.
import { describe, expect, it } from 'vitest';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { sleep, until } from '../support/waiting.js';
import { MAJORS, useBench } from './bench.js';

const JOBS = 4_000;
/** Jobs that are added for each of the processes that are killed. */
const A_ROUND = 250;

/** Moves the queue QUEUE, as it was built, over and over. */
const MOVER = `
const { createRequire } = await import('node:module');
const require = createRequire(process.cwd() + '/package.json');
const { Queue } = require('./dist/cjs/index.js');
const { Mover } = require('./dist/cjs/tools/migrate/mover.js');
const queue = new Queue(process.env.QUEUE, { connection: JSON.parse(process.env.CONNECTION), skipMetasUpdate: true });
const mover = new Mover([queue], { gap: 1_000_000, onStep: () => console.log('moved ' + mover.moved) });
await mover.move();
console.log('started');
for (;;) await mover.moveOnce();
`;

describe.each(MAJORS)('killed while it moves from $name', (major) => {
  const bench = useBench(major);

  it('leaves each job in exactly one of the two', async () => {
    const random = new Random(17);
    const queue = bench.queue();
    const ran = new Map<string, string[]>();
    const note = (who: string) => async (job: { id?: string; data: unknown }) => {
      const by = ran.get(job.id ?? '') ?? [];
      ran.set(job.id ?? '', [...by, who]);
      return job.data;
    };
    const add = async (from: number, count: number): Promise<void> => {
      await queue.addBulk(
        Array.from({ length: count }, (_, i) => {
          const kind = (from + i) % 4;
          const opts =
            [{}, { delay: 500 + random.next(4_000) }, { priority: 1 + random.next(5) }, { lifo: true }][kind] ?? {};
          return { name: `job-${from + i}`, data: { number: from + i }, opts };
        }),
      );
    };
    await add(0, JOBS / 2);
    bench.worker(note('theirs'), { concurrency: 2 });
    bench.ownWorker(note('ours'), { concurrency: 2 });
    for (let added = JOBS / 2; added < JOBS; added += A_ROUND) {
      await add(added, A_ROUND / 2);
      const mover = Program.startText(MOVER, { env: { QUEUE: bench.name } });
      await mover.said('moved');
      const adding = add(added + A_ROUND / 2, A_ROUND / 2);
      // at any moment of a step
      await sleep(random.next(60));
      expect((await mover.kill()).signal, mover.errors).toBe('SIGKILL');
      await adding;
    }
    await bench.move();
    await until('all to run', () => ran.size >= JOBS, 60_000);
    expect(ran.size).toBe(JOBS);
    expect([...ran.values()].filter((by) => by.length !== 1)).toEqual([]);
    const by = [...ran.values()].flat();
    expect(new Set(by)).toEqual(new Set(['theirs', 'ours']));
    const target = bench.target();
    await until(
      'all to be told',
      async () => (await queue.getCompletedCount()) + (await target.getCompletedCount()) === JOBS,
    );
    await bench.move();
    expect(await target.getCompletedCount()).toBe(JOBS);
    expect(await bench.jobKeys()).toEqual([]);
  });
});
