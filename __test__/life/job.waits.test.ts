// Who waits for a job hears of its end, also where it was removed as it ended: by then its events may have been read, and its answer not.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const WORKER = `
  const { Worker } = await import('chasquimq');
  const worker = new Worker(process.env.QUEUE, async ({ data }) => data, { connection: JSON.parse(process.env.CONNECTION) });
  await worker.waitUntilReady();
  console.log('ready');`;
const ROUNDS = 30;
const AT_ONCE = 10;
const REMOVED = { removeOnComplete: true, removeOnFail: true };

describe('job.waits', () => {
  const stage = useStage(chasquimq);

  it('ten at once for jobs that another process runs, and that are removed at their end', async () => {
    const [queue, events] = [stage.queue(), stage.events()];
    const program = stage.keep(Program.startText(WORKER, { env: { QUEUE: stage.queueName } }));
    await Promise.all([program.said('ready'), events.waitUntilReady()]);
    for (let round = 0; round < ROUNDS; round++) {
      const numbers = Array.from({ length: AT_ONCE }, (_, i) => round * AT_ONCE + i);
      const waits = numbers.map(async (number) =>
        (await queue.add('job', number, REMOVED)).waitUntilFinished(events, 60_000),
      );
      expect(await Promise.all(waits)).toEqual(numbers);
    }
  });

  describe('for one that has ended and is gone', () => {
    it.each([
      ['a result', { of: 'it' }],
      ['none', null],
      ['a large one', 'x'.repeat(100_000)],
    ])('resolves with %s', async (_, result) => {
      const [queue, events] = [stage.queue(), stage.events()];
      const log = new EventLog(
        stage.worker(async () => result),
        ['completed'],
      );
      const jobs = await queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {}, opts: REMOVED })));
      await log.get('completed', 3);
      // so that its end is not among the newest entries
      await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'later', data: {}, opts: REMOVED })));
      await log.get('completed', 53);
      const waits = jobs.map((job) => job.waitUntilFinished(events));
      expect(await Promise.all(waits)).toEqual([result, result, result]);
    });

    it('rejects with the reason of one that failed', async () => {
      const [queue, events] = [stage.queue(), stage.events()];
      const log = new EventLog(
        stage.worker(async () => Promise.reject(new Error('no paint'))),
        ['failed'],
      );
      const job = await queue.add('job', {}, REMOVED);
      await log.get('failed');
      expect((await rejection(job.waitUntilFinished(events))).message).toBe('no paint');
    });

    it('rejects where it was removed by someone, or another of its id was, whatever ended before', async () => {
      const [queue, events] = [stage.queue(), stage.events()];
      const worker = stage.worker(async () => 'done');
      const log = new EventLog(worker, ['completed']);
      await queue.addBulk(['mine', 'kept'].map((jobId) => ({ name: 'job', data: {}, opts: { jobId } })));
      await log.get('completed', 2);
      await worker.close();
      const [mine, kept] = await Promise.all([queue.getJob('mine'), queue.getJob('kept')]);
      await Promise.all([mine?.remove(), kept?.remove()]);
      const again = await queue.add('job', {}, { jobId: 'mine' });
      await again.remove();
      for (const job of [again, kept]) {
        expect((await rejection(job?.waitUntilFinished(events) ?? Promise.resolve())).message).toMatch(/^Missing key/);
      }
    });
  });
});
