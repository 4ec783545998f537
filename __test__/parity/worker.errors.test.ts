// Pins by what an error is known that a processor throws to say what became of its job: its class, or its name.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

type Kind = 'DelayedError' | 'WaitingError' | 'WaitingChildrenError' | 'RateLimitError' | 'UnrecoverableError';

describe.each(libraries)('$name: worker.errors', ({ lib }) => {
  const stage = useStage(lib);

  /** What may be thrown instead of an error of this kind. */
  function thrown(kind: Kind, how: 'subclass' | 'renamed subclass' | 'named'): Error {
    if (how === 'named') return Object.assign(new Error('thrown'), { name: kind });
    class Mine extends (lib[kind] as new (message: string) => Error) {}
    const error = new Mine('thrown');
    if (how === 'renamed subclass') error.name = 'Mine';
    return error;
  }

  /** A job that `move` moves, and `error` says so; the events of its worker until it has ended, and the job. */
  async function run(error: Error, move: (job: Job, token: string) => Promise<unknown>): Promise<[EventLog, Job]> {
    const queue = stage.queue();
    await queue.add('job', {}, { jobId: 'job', attempts: 2 });
    const worker = stage.worker(async (job, token) => {
      if (job.attemptsStarted > 1) return 'again';
      await move(job, token as string);
      throw error;
    });
    const log = new EventLog(worker, ['active', 'completed', 'failed', 'drained']);
    await log.get('drained');
    return [log, await fetchJob(queue, 'job')];
  }

  describe.each(['subclass', 'renamed subclass', 'named'] as const)('a %s', (how) => {
    it('of DelayedError leaves the job delayed', async () => {
      const [log, job] = await run(thrown('DelayedError', how), (moved, token) =>
        moved.moveToDelayed(Date.now() + 60_000, token),
      );
      expect(log.names).toEqual(['active', 'drained']);
      expect([await job.getState(), job.attemptsMade, job.failedReason]).toEqual(['delayed', 0, undefined]);
    });

    it('of WaitingError leaves the job waiting', async () => {
      const [log, job] = await run(thrown('WaitingError', how), (moved, token) => moved.moveToWait(token));
      expect(log.names).toEqual(['active', 'active', 'completed', 'drained']);
      expect([job.returnvalue, job.attemptsMade, job.attemptsStarted]).toEqual(['again', 1, 2]);
    });

    it('of WaitingChildrenError leaves the job waiting for its children', async () => {
      const [log, job] = await run(thrown('WaitingChildrenError', how), async (moved, token) => {
        const parent = { id: moved.id as string, queue: moved.queueQualifiedName };
        await stage.queue({}, 'kids').add('kid', {}, { parent });
        await moved.moveToWaitingChildren(token);
      });
      expect(log.names).toEqual(['active', 'drained']);
      expect([await job.getState(), job.attemptsMade, job.failedReason]).toEqual(['waiting-children', 0, undefined]);
    });

    it('of UnrecoverableError fails the job for good', async () => {
      const [log, job] = await run(thrown('UnrecoverableError', how), async () => {});
      expect(log.names).toEqual(['active', 'failed', 'drained']);
      expect([await job.getState(), job.attemptsMade, job.failedReason]).toEqual(['failed', 1, 'thrown']);
    });
  });

  it('a RateLimitError is known by its text alone', async () => {
    class Limited extends lib.RateLimitError {}
    for (const error of [new Limited(), new Error('bullmq:rateLimitExceeded')]) {
      stage.queueName += '-';
      const [log, job] = await run(error, () => stage.queue().rateLimit(20));
      expect(log.names).toEqual(['active', 'active', 'completed', 'drained']);
      expect([job.returnvalue, job.attemptsMade, job.attemptsStarted]).toEqual(['again', 1, 2]);
    }
    for (const error of [new Limited('other text'), thrown('RateLimitError', 'named')]) {
      stage.queueName += '-';
      const [log, job] = await run(error, () => stage.queue().rateLimit(20));
      expect(log.names).toEqual(['active', 'failed', 'active', 'completed', 'drained']);
      expect([job.returnvalue, job.attemptsMade, job.failedReason]).toEqual(['again', 2, error.message]);
    }
  });
});
