// Answers to a worker's steps that nobody can read, because something on the way changed a byte: the jobs that they brought run once each all the same,
// none stays active, and it is told.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { expectOnceEach } from '../support/once-each.js';
import { Proxy } from '../support/proxy.js';
import { server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const LIMIT_MS = 200_000;
const JOBS = 400;
/** The answer to a step that brings jobs: nine values, none refused, and what it took. */
const HEAD = '*9\r\n*0\r\n*';

/** Where a byte is changed, and to what: the first of the answer, the kind of its first value, of what tells which jobs these are. */
const KINDS = [
  ['what no server sends', (at: number) => at, '?', /does not speak the protocol of Redis/],
  ['an answer of another shape', (at: number) => at + 4, ':', /the answer to step is not readable/],
  [
    'an answer that does not tell which jobs',
    (at: number, piece: Buffer) => piece.indexOf('\r\n:', at + HEAD.length) + 2,
    '+',
    /is not readable/,
  ],
] as const;

describe('connection.garbled', () => {
  const stage = useStage(chasquimq);

  describe.each([1, 50])('at concurrency %i', (concurrency) => {
    it.each(KINDS)('%s loses no job', async (_, placeOf, byte, told) => {
      const proxy = stage.keep(new Proxy());
      let answers = 0;
      let garbled = 0;
      proxy.holdAnswer = (piece) => {
        const at = piece.indexOf(HEAD);
        if (at < 0 || piece[at + HEAD.length] === 0x30) return;
        // the first, and then one in a while
        if (answers++ % 3 === 0 && garbled < 6) {
          garbled++;
          piece.write(byte, placeOf(at, piece), 'latin1');
        }
      };
      await proxy.open();
      const queue = stage.queue();
      const runs = new Map<unknown, number>();
      const worker = stage.worker(
        async (job) => {
          runs.set(job.data, (runs.get(job.data) ?? 0) + 1);
          await Promise.resolve();
        },
        { concurrency, connection: { ...server, host: '127.0.0.1', port: proxy.port } },
      );
      const errors: string[] = [];
      worker.on('error', (error) => errors.push(error.message));
      let added = 0;
      while (added < JOBS) {
        const some = Array.from({ length: 20 }, (_unused, n) => ({
          name: 'job',
          data: added + n,
          // records and frames
          opts: n % 3 === 0 ? { priority: 5 } : {},
        }));
        await queue.addBulk(some);
        added += some.length;
        // some wait for the worker, and for some the worker waits
        if (added % 80 === 0) {
          const all = added;
          await until(`${all} jobs`, async () => (await queue.getCompletedCount()) >= all, LIMIT_MS);
        }
      }
      await until('all jobs', async () => (await queue.getCompletedCount()) >= JOBS, LIMIT_MS);
      await expectOnceEach(queue, runs, JOBS);
      expect(garbled).toBeGreaterThan(1);
      expect(errors.length).toBeGreaterThanOrEqual(garbled);
      expect(errors.every((message) => told.test(message) || / is not readable: /.test(message))).toBe(true);
      stage.takeErrors();
      await worker.close();
      stage.takeErrors();
    });
  });
});
