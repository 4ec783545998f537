// However many jobs there are, and however much they hold, no step that finds or changes some of them keeps the server from others for long.
import { describe, expect, it } from 'vitest';
import { Queue, type BulkJobOptions, type JobFilter } from '../../src/index.js';
import { useOwnServer } from '../support/use-own-server.js';
import { watchdog } from '../support/watchdog.js';

const MANY = 20_000;

describe('steps over jobs that a filter picks', () => {
  const own = useOwnServer();

  async function queueOf(name: string, jobs: number, of: (i: number) => { data: unknown; opts?: BulkJobOptions }) {
    const queue = new Queue(name, { connection: own.connection });
    for (let from = 0; from < jobs; from += 1_000) {
      const some = Array.from({ length: Math.min(1_000, jobs - from) }, (_, k) => from + k);
      await queue.addBulk(some.map((i) => ({ name: i % 2 ? 'odd' : 'even', ...of(i) })));
    }
    return queue;
  }

  it.each<[string, number, JobFilter, (i: number) => { data: unknown; opts?: BulkJobOptions }]>([
    ['plain jobs', MANY, { data: { n: 77 } }, (n) => ({ data: { n, pad: 'x'.repeat(200) } })],
    ['records', MANY, { data: '"n":77,' }, (n) => ({ data: { n, pad: 'x'.repeat(200) }, opts: { jobId: `r${n}` } })],
    ['the front', MANY, { data: { n: 77 } }, (n) => ({ data: { n }, opts: { jobId: `f${n}`, lifo: true } })],
    ['delayed jobs', MANY, { data: { n: 77 } }, (n) => ({ data: { n }, opts: { delay: 9_000_000 } })],
    ['groups', MANY, { data: { n: 77 } }, (n) => ({ data: { n }, opts: { group: { id: `g${n % 50}` } } })],
    [
      'large data',
      200,
      { data: { n: 77 } },
      (n) => ({ data: { n, pad: 'x'.repeat(300_000) }, opts: { jobId: `l${n}` } }),
    ],
    ['large plain data', 200, { data: { n: 77 } }, (n) => ({ data: { n, pad: 'x'.repeat(60_000) } })],
  ])('%s', async (name, count, one, of) => {
    const queue = await queueOf(name, count, of);
    const dog = await watchdog(own.redis, { mostPause: Infinity, about: name });
    expect(await queue.countJobs(one)).toBe(1);
    expect((await queue.findJobs({ name: 'odd' }, { limit: 500 })).jobs.length).toBe(Math.min(500, count / 2));
    expect(await queue.moveJobs('elsewhere', { name: 'odd' }, { limit: count / 4 })).toBe(count / 4);
    expect(await queue.removeJobs({ name: 'odd' })).toBe(count / 4);
    expect(await queue.countJobs({ name: 'even' })).toBe(count / 2);
    expect(await queue.promoteJobs({ name: 'even' })).toBe(name === 'delayed jobs' ? count / 2 : 0);
    expect(await queue.removeJobs({ name: 'even' })).toBe(count / 2);
    await dog.end();
    expect(await queue.countJobs()).toBe(0);
    await queue.close();
  });
});
