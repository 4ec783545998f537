// Pins cancelling: the signal of a processor, cancelJob and cancelAllJobs.
import { describe, expect, it } from 'vitest';
import type { Job, Processor, Worker, WorkerOptions } from 'bullmq';
import { UnrecoverableError } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

/** Waits until its signal is aborted, then throws what `toThrow` makes of the reason. */
function untilAborted(toThrow: (reason: unknown) => Error): Processor {
  return (_job, _token, signal) =>
    new Promise((_, reject) => signal?.addEventListener('abort', () => reject(toThrow(signal.reason))));
}

const asText = (reason: unknown): Error => new Error(`aborted: ${String(reason)}`);

describe.each(libraries)('$name: worker.cancel', ({ lib }) => {
  const stage = useStage(lib);

  /** `started` is logged by the processor: only then does its job have a signal. */
  function run(processor: Processor, opts: Partial<WorkerOptions> = {}): { worker: Worker; log: EventLog } {
    const worker: Worker = stage.worker((job, token, signal) => {
      worker.emit('started' as 'active', job, '');
      return processor(job, token, signal);
    }, opts);
    return { worker, log: new EventLog(worker, ['started', 'completed', 'failed']) };
  }

  describe('a signal', () => {
    async function given(processor: Processor): Promise<unknown> {
      const { log } = run(processor);
      await stage.queue().add('a', {});
      return (await log.get<[Job, unknown]>('completed'))[1];
    }

    it('is given to a processor with three parameters', async () => {
      expect(await given(async (_job, _token, signal) => [signal instanceof AbortSignal, signal?.aborted])).toEqual([
        true,
        false,
      ]);
    });

    it('is not given to one that names fewer, a default or a rest', async () => {
      const seen: unknown[] = [];
      const none = 'none' as unknown as AbortSignal;
      const processors: Processor[] = [
        async (...args) => void seen.push(args[2]),
        async (_job, _token, signal = none) => void seen.push(signal),
        async (_job, ...rest) => void seen.push(rest[1]),
      ];
      for (const processor of processors) {
        const worker = stage.worker(processor);
        const log = new EventLog(worker, ['completed']);
        await stage.queue().add('a', {});
        await log.get('completed');
        await worker.close();
      }
      expect(seen).toEqual([undefined, 'none', undefined]);
    });

    it('is a new one for each try', async () => {
      const signals: (AbortSignal | undefined)[] = [];
      const { worker, log } = run(async (_job, _token, signal) => {
        signals.push(signal);
        if (signals.length === 1) await untilAborted(asText)(_job, _token, signal);
        return signal?.aborted;
      });
      await stage.queue().add('a', {}, { attempts: 2 });
      await log.get('started');
      worker.cancelJob('1');
      expect((await log.get<[Job, boolean]>('completed'))[1]).toBe(false);
      expect([signals.length, signals[0] === signals[1]]).toEqual([2, false]);
    });
  });

  it('cancelJob aborts with the reason, and what the processor throws fails the job', async () => {
    const { worker, log } = run(untilAborted(asText));
    await stage.queue().add('a', {});
    await log.get('started');
    expect(worker.cancelJob('1', 'enough')).toBe(true);
    const [job, error] = await log.get<[Job, Error]>('failed');
    expect([error.message, job.failedReason, job.attemptsMade]).toEqual(['aborted: enough', 'aborted: enough', 1]);
    const stored = await fetchJob(stage.queue(), '1');
    expect([await stored.getState(), stored.failedReason]).toEqual(['failed', 'aborted: enough']);
    expect(stored.stacktrace?.[0]).toMatch(/^Error: aborted: enough\n/);
  });

  it('without a reason aborts with the usual AbortError', async () => {
    const { worker, log } = run(untilAborted((reason) => new Error((reason as Error | undefined)?.name)));
    await stage.queue().add('a', {});
    await log.get('started');
    worker.cancelJob('1');
    expect((await log.get<[Job, Error]>('failed'))[1].message).toBe('AbortError');
  });

  it('a cancelled job is tried again like any that failed', async () => {
    const { worker, log } = run((job, token, signal) =>
      job.attemptsMade === 0 ? untilAborted(asText)(job, token, signal) : Promise.resolve('second'),
    );
    await stage.queue().add('a', {}, { attempts: 2 });
    await log.get('started');
    worker.cancelJob('1', 'once');
    expect((await log.get<[Job, string]>('completed'))[1]).toBe('second');
    expect(log.names).toEqual(['started', 'failed', 'started', 'completed']);
  });

  it('but not when its processor throws an UnrecoverableError', async () => {
    const { worker, log } = run(untilAborted(() => new UnrecoverableError('for good')));
    const job = await stage.queue().add('a', {}, { attempts: 5 });
    await log.get('started');
    worker.cancelJob('1');
    await log.get('failed');
    expect(await job.getState()).toBe('failed');
  });

  it('a processor that does not care completes', async () => {
    const gate = stage.gate();
    const { worker, log } = run(async (_job, _token, signal) => {
      await gate.opened;
      return signal?.aborted;
    });
    await stage.queue().add('a', {});
    await log.get('started');
    expect(worker.cancelJob('1')).toBe(true);
    gate.open();
    expect((await log.get<[Job, boolean]>('completed'))[1]).toBe(true);
  });

  it('a second cancelJob changes nothing', async () => {
    const gate = stage.gate();
    const reasons: unknown[] = [];
    const { worker, log } = run(async (_job, _token, signal) => {
      signal?.addEventListener('abort', () => reasons.push(signal.reason));
      await gate.opened;
      return signal?.reason as string;
    });
    await stage.queue().add('a', {});
    await log.get('started');
    expect([worker.cancelJob('1', 'first'), worker.cancelJob('1', 'second')]).toEqual([true, true]);
    gate.open();
    expect((await log.get<[Job, string]>('completed'))[1]).toBe('first');
    expect(reasons).toEqual(['first']);
  });

  it('cancelJob gives false for a job that is not running here', async () => {
    const queue = stage.queue();
    const { worker, log } = run(async (_job, _token, _signal) => 1);
    expect(worker.cancelJob('1')).toBe(false);
    await queue.add('a', {});
    await log.get('completed');
    expect(worker.cancelJob('1')).toBe(false);
    await queue.add('later', {}, { delay: 60_000 });
    expect(worker.cancelJob('2')).toBe(false);
  });

  it('cancels the one job, and no other', async () => {
    const { worker, log } = run(untilAborted(asText), { concurrency: 3 });
    await stage.queue().addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {} })));
    await log.get('started', 3);
    worker.cancelJob('2', 'you');
    const [job] = await log.get<[Job]>('failed');
    expect([job.id, log.all('failed').length]).toEqual(['2', 1]);
    worker.cancelAllJobs('all');
    await log.get('failed', 3);
    const reasons = log.all<[Job, Error]>('failed').map(([failed, error]) => [failed.id, error.message]);
    expect(reasons.slice(1).sort()).toEqual([
      ['1', 'aborted: all'],
      ['3', 'aborted: all'],
    ]);
  });

  it('cancelAllJobs with nothing to cancel does nothing', () => {
    expect(run(async () => 1).worker.cancelAllJobs('why')).toBeUndefined();
  });

  it('close does not abort, and waits', async () => {
    const gate = stage.gate();
    const { worker, log } = run(async (_job, _token, signal) => {
      await gate.opened;
      return signal?.aborted;
    });
    await stage.queue().add('a', {});
    await log.get('started');
    const closed = worker.close();
    gate.open();
    await closed;
    expect(log.all<[Job, boolean]>('completed')[0][1]).toBe(false);
  });

  it('a job may be cancelled while the worker closes', async () => {
    const { worker, log } = run(untilAborted(asText));
    const job = await stage.queue().add('a', {});
    await log.get('started');
    const closed = worker.close();
    expect(worker.cancelJob('1', 'bye')).toBe(true);
    await closed;
    expect([log.names, await job.getState()]).toEqual([['started', 'failed'], 'failed']);
  });
});
