// Pins what a failing try does: attempts, records, events, what ends retrying.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: worker.retry', ({ lib }) => {
  const stage = useStage(lib);

  /** Fails with `try <n>` until the nth try, then gives 'done'. */
  const passesOn = (nth: number) => async (job: Job) => {
    if (job.attemptsStarted < nth) throw new Error(`try ${job.attemptsStarted}`);
    return 'done';
  };
  const fails = passesOn(Infinity);
  const firstLines = (job: Job) => (job.stacktrace ?? []).map((trace) => trace.split('\n')[0]);

  it.each([undefined, 0, 1])('makes one try with attempts of %s', async (attempts) => {
    const queue = stage.queue();
    const log = new EventLog(stage.worker(fails), ['active', 'failed']);
    const job = await queue.add('job', {}, { attempts });
    await log.get('failed');
    expect(await job.getState()).toBe('failed');
    expect(log.names).toEqual(['active', 'failed']);
  });

  it('makes as many tries as attempts say, then fails', async () => {
    const queue = stage.queue();
    const log = new EventLog(stage.worker(fails), ['active', 'failed']);
    const job = await queue.add('job', {}, { attempts: 3 });
    await log.get('failed', 3);
    expect(await job.getState()).toBe('failed');
    expect(log.names).toEqual(['active', 'failed', 'active', 'failed', 'active', 'failed']);
  });

  it('ends with the first success', async () => {
    const queue = stage.queue();
    const log = new EventLog(stage.worker(passesOn(3)), ['active', 'failed', 'completed']);
    const job = await queue.add('job', {}, { attempts: 5 });
    await log.get('completed');
    expect(await job.getState()).toBe('completed');
    expect(log.names).toEqual(['active', 'failed', 'active', 'failed', 'active', 'completed']);
  });

  describe('the record', () => {
    it('counts tries started and made, try by try', async () => {
      const queue = stage.queue();
      const seen: number[][] = [];
      const worker = stage.worker(async (job) => {
        seen.push([job.attemptsStarted, job.attemptsMade]);
        return passesOn(3)(job);
      });
      const ended = new EventLog(worker, ['completed']);
      await queue.add('job', {}, { attempts: 3 });
      await ended.get('completed');
      expect(seen).toEqual([
        [1, 0],
        [2, 1],
        [3, 2],
      ]);
      const stored = await fetchJob(queue, '1');
      expect([stored.attemptsStarted, stored.attemptsMade]).toEqual([3, 3]);
    });

    it('on the job of each failed event shows that try and no end before the last', async () => {
      const queue = stage.queue();
      const seen: unknown[] = [];
      const worker = stage.worker(fails);
      const log = new EventLog(worker, ['failed']);
      worker.on('failed', (job) => {
        seen.push([job?.attemptsMade, job?.failedReason, job?.stacktrace?.length, job?.finishedOn !== undefined]);
      });
      await queue.add('job', {}, { attempts: 3 });
      await log.get('failed', 3);
      expect(seen).toEqual([
        [1, 'try 1', 1, false],
        [2, 'try 2', 2, false],
        [3, 'try 3', 3, true],
      ]);
    });

    it('keeps the last reason, one trace for each try, and when it ended', async () => {
      const queue = stage.queue();
      const log = new EventLog(stage.worker(fails), ['failed']);
      await queue.add('job', {}, { attempts: 3 });
      const [last] = await log.get<[Job]>('failed', 3);
      const stored = await fetchJob(queue, '1');
      expect(stored.failedReason).toBe('try 3');
      expect(firstLines(stored)).toEqual(['Error: try 1', 'Error: try 2', 'Error: try 3']);
      expect([stored.finishedOn, stored.processedOn]).toEqual([last.finishedOn, last.processedOn]);
      expect([stored.returnvalue, stored.delay]).toEqual([null, 0]);
    });

    it('keeps the stack as it was thrown', async () => {
      const queue = stage.queue();
      const log = new EventLog(stage.worker(fails), ['failed']);
      await queue.add('job', {});
      const [, error] = await log.get<[Job, Error]>('failed');
      expect((await fetchJob(queue, '1')).stacktrace).toEqual([error.stack]);
    });

    it('keeps the stacks of errors without a message', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => {
        throw new Error();
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {}, { attempts: 3 });
      const [last] = await log.get<[Job]>('failed', 3);
      expect([last, await fetchJob(queue, '1')].map(({ stacktrace }) => stacktrace?.length)).toEqual([3, 3]);
      await queue.retryJobs();
      await log.get('failed', 4);
      expect((await fetchJob(queue, '1')).stacktrace).toHaveLength(4);
    });

    it('keeps unicode and line breaks of the reason', async () => {
      const queue = stage.queue();
      const message = 'línea 1\nline "2"\\ 🚀\0end';
      const worker = stage.worker(async () => {
        throw new TypeError(message);
      });
      const global = stage.globalLog();
      await queue.add('job', {});
      expect((await global.get('failed'))[0]).toEqual({ jobId: '1', failedReason: message, prev: 'active' });
      expect((await fetchJob(queue, '1')).failedReason).toBe(message);
      await worker.close();
    });

    it('of earlier failures stays after a success', async () => {
      const queue = stage.queue();
      const log = new EventLog(stage.worker(passesOn(2)), ['completed']);
      await queue.add('job', {}, { attempts: 2 });
      await log.get('completed');
      const stored = await fetchJob(queue, '1');
      expect([stored.failedReason, firstLines(stored), stored.returnvalue]).toEqual([
        'try 1',
        ['Error: try 1'],
        'done',
      ]);
    });

    it.each([
      [0, []],
      [1, ['Error: try 3']],
      [2, ['Error: try 2', 'Error: try 3']],
      [9, ['Error: try 1', 'Error: try 2', 'Error: try 3']],
    ])('keeps the newest traces up to a stackTraceLimit of %d', async (stackTraceLimit, expected) => {
      const queue = stage.queue();
      const log = new EventLog(stage.worker(fails), ['failed']);
      await queue.add('job', {}, { attempts: 3, stackTraceLimit });
      await log.get('failed', 3);
      expect(firstLines(await fetchJob(queue, '1'))).toEqual(expected);
    });

    it('leaves the traces as they are when what is thrown has no stack', async () => {
      const queue = stage.queue();
      const worker = stage.worker((job) => {
        if (job.attemptsMade === 0) throw new Error('with a stack');
        job.opts.stackTraceLimit = 0;
        throw Object.create(null);
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {}, { attempts: 2 });
      await log.get('failed', 2);
      expect(firstLines(await fetchJob(queue, '1'))).toEqual(['Error: with a stack']);
    });
  });

  it('puts a job that is retried at once at the end of the waiting list', async () => {
    const queue = stage.queue();
    await queue.add('flaky', {}, { attempts: 2 });
    await queue.addBulk(['b', 'c'].map((name) => ({ name, data: {} })));
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(job.name);
      if (job.name === 'flaky') await passesOn(2)(job);
    });
    await new EventLog(worker, ['completed']).get('completed', 3);
    expect(order).toEqual(['flaky', 'b', 'c', 'flaky']);
  });

  describe('global events', () => {
    it('of retries are waiting and active again, and failed only for the last', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(fails);
      await queue.add('job', {}, { attempts: 3 });
      await log.get('drained');
      expect(log.entries.filter(({ event }) => event !== 'drained').map(({ event, args }) => [event, args[0]])).toEqual(
        [
          ['added', { jobId: '1', name: 'job' }],
          ['waiting', { jobId: '1' }],
          ['active', { jobId: '1', prev: 'waiting' }],
          ['waiting', { jobId: '1', prev: 'active' }],
          ['active', { jobId: '1', prev: 'waiting' }],
          ['waiting', { jobId: '1', prev: 'active' }],
          ['active', { jobId: '1', prev: 'waiting' }],
          ['failed', { jobId: '1', failedReason: 'try 3', prev: 'active' }],
          ['retries-exhausted', { jobId: '1', attemptsMade: '3' }],
        ],
      );
    });

    it('tell of exhausted retries even when none were asked for', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(fails);
      await queue.add('job', {});
      expect((await log.get('retries-exhausted'))[0]).toEqual({ jobId: '1', attemptsMade: '1' });
    });

    it('of a success after a failure tell of no failure', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(passesOn(2));
      await queue.add('job', {}, { attempts: 2 });
      await log.get('completed');
      expect(log.names).not.toContain('failed');
      expect(log.names).not.toContain('retries-exhausted');
    });
  });

  describe('an unrecoverable error', () => {
    it('fails the job with attempts left, and exhausts none', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(async () => {
        throw new lib.UnrecoverableError('for good');
      });
      await queue.add('job', {}, { attempts: 3 });
      await log.get('drained');
      expect(log.names).toEqual(['added', 'waiting', 'active', 'failed', 'drained']);
      const stored = await fetchJob(queue, '1');
      expect([stored.failedReason, stored.attemptsMade, firstLines(stored)]).toEqual([
        'for good',
        1,
        ['UnrecoverableError: for good'],
      ]);
    });

    it('on the last try exhausts the retries', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(async () => {
        throw new lib.UnrecoverableError('for good');
      });
      await queue.add('job', {}, { attempts: 1 });
      await log.get('drained');
      expect(log.names).toEqual(['added', 'waiting', 'active', 'failed', 'retries-exhausted', 'drained']);
    });

    it('may be a subclass', async () => {
      const queue = stage.queue();
      class Broken extends lib.UnrecoverableError {}
      const log = new EventLog(
        stage.worker(async () => {
          throw new Broken('broken');
        }),
        ['failed'],
      );
      const job = await queue.add('job', {}, { attempts: 3 });
      const [failed, error] = await log.get<[Job, Error]>('failed');
      expect([error.name, failed.stacktrace?.[0].split('\n')[0]]).toEqual(['Broken', 'Broken: broken']);
      expect(await job.getState()).toBe('failed');
    });

    it('may be any error of that name', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async () => {
          throw Object.assign(new Error('by name'), { name: 'UnrecoverableError' });
        }),
        ['failed'],
      );
      const job = await queue.add('job', {}, { attempts: 3 });
      await log.get('failed');
      expect(await job.getState()).toBe('failed');
    });
  });

  it('a try that throws no message leaves the reason of the one before', async () => {
    const queue = stage.queue();
    const seen: unknown[] = [];
    const worker = stage.worker(async (job) => {
      seen.push(job.failedReason);
      if (job.attemptsMade === 0) throw new Error('real');
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- what the test is about
      throw 'text';
    });
    const log = new EventLog(worker, ['failed']);
    const { id } = await queue.add('job', 1, { attempts: 3 });
    await log.get('failed', 3);
    expect(seen).toEqual([undefined, 'real', 'real']);
    expect((await fetchJob(queue, id)).stacktrace).toHaveLength(1);
  });
});

describe.each(libraries)('$name: a try that throws an empty message', ({ lib }) => {
  const stage = useStage(lib);

  it.each([
    ['at once', undefined],
    ['later', { type: 'fixed', delay: 1 }],
  ])('leaves no reason, when it is tried again %s', async (_, backoff) => {
    const queue = stage.queue();
    const seen: unknown[] = [];
    const worker = stage.worker(async (job) => {
      seen.push(job.failedReason);
      if (job.attemptsMade < 2) throw new Error(job.attemptsMade === 0 ? 'bullmq:movedToDelayed' : '');
    });
    const log = new EventLog(worker, ['completed']);
    const { id } = await queue.add('job', 1, { attempts: 3, ...(backoff && { backoff }) });
    await log.get('completed');
    expect(seen).toEqual([undefined, 'bullmq:movedToDelayed', undefined]);
    expect((await fetchJob(queue, id)).failedReason).toBeUndefined();
  });

  it('has no reason, when it was the last one', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      throw new Error(job.attemptsMade === 0 ? 'boom' : '');
    });
    const log = new EventLog(worker, ['failed']);
    const { id } = await queue.add('job', 1, { attempts: 2 });
    await log.get('failed', 2);
    expect((await fetchJob(queue, id)).failedReason).toBeUndefined();
  });
});

describe.each(libraries)('$name: a failure that is refused', ({ lib }) => {
  const stage = useStage(lib);

  it.each([
    ['failed for good', 1, undefined, 'moveToFinished'],
    ['tried again at once', 3, undefined, 'retryJob'],
    ['tried again later', 3, { type: 'fixed', delay: 1000 }, 'moveToDelayed'],
  ] as const)('is told as the move that it was: %s', async (_, attempts, backoff, command) => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(async () => {
      await gate.opened;
      throw new Error('it failed');
    });
    const log = new EventLog(worker, ['active', 'error']);
    await queue.add('job', {}, { attempts, backoff });
    await log.get('active');
    await queue.obliterate({ force: true });
    gate.open();
    const [error] = await log.get<[Error]>('error');
    expect(error.message).toBe(`Missing key for job 1. ${command}`);
    stage.takeErrors();
  });
});

describe.each(libraries)('$name: error classes', ({ lib }) => {
  it.each([
    ['UnrecoverableError', 'bullmq:unrecoverable'],
    ['DelayedError', 'bullmq:movedToDelayed'],
    ['WaitingError', 'bullmq:movedToWait'],
    ['WaitingChildrenError', 'bullmq:movedToWaitingChildren'],
    ['RateLimitError', 'bullmq:rateLimitExceeded'],
  ] as const)('%s is an Error of that name with the message %s, or the one given', (name, message) => {
    const error = new lib[name]();
    expect(error).toBeInstanceOf(Error);
    expect([error.name, error.message]).toEqual([name, message]);
    expect(new lib[name]('mine').message).toBe('mine');
  });
});
