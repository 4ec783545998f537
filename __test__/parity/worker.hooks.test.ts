// Pins methods that subclasses override and tracers patch: Worker#processJob, Worker#callProcessJob and Queue#addJob.
import { describe, expect, it, vi } from 'vitest';
import type { Job, Processor, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

type ProcessJob = (job: Job, token: string, ...more: unknown[]) => Promise<unknown>;

describe.each(libraries)('$name: replaced methods', ({ lib }) => {
  const stage = useStage(lib);

  /** A worker whose class has `replace` around its `processJob`. */
  function wrapped(replace: (own: ProcessJob) => ProcessJob, processor: Processor, opts: Partial<WorkerOptions> = {}) {
    class Wrapped extends lib.Worker {}
    const own = Reflect.get(Wrapped.prototype, 'processJob') as ProcessJob;
    const value = function (this: unknown, ...args: Parameters<ProcessJob>): Promise<unknown> {
      return replace((...given) => own.apply(this, given))(...args);
    };
    Object.defineProperty(Wrapped.prototype, 'processJob', { value });
    return stage.watch(new Wrapped(stage.queueName, processor, { connection: { ...connection }, ...opts }));
  }

  describe('processJob', () => {
    it('encloses the run of each job, whose end it does not tell', async () => {
      const told: string[] = [];
      const around = (own: ProcessJob) => async (job: Job, token: string, mayFetch: unknown) => {
        told.push(`> ${job.name} ${job.token === token}`);
        const next = await own(job, token, mayFetch).finally(() => told.push(`< ${job.name}`));
        return next;
      };
      await stage.queue().addBulk([
        { name: 'a', data: {} },
        { name: 'fails', data: {}, opts: { attempts: 2 } },
      ]);
      const worker = wrapped(around, (job) => {
        told.push(job.name);
        return job.name === 'fails' ? Promise.reject(new Error('told')) : Promise.resolve('value');
      });
      const log = new EventLog(worker, ['completed', 'failed']);
      await log.get('failed', 2);
      await worker.close();
      const fails = ['> fails true', 'fails', '< fails'];
      expect(told).toEqual(['> a true', 'a', '< a', ...fails, ...fails]);
      expect(log.names).toEqual(['completed', 'failed', 'failed']);
    });

    it('may leave out all but the job and its token, and give another job', async () => {
      const queue = stage.queue();
      const seen: unknown[] = [];
      const around = (own: ProcessJob) => (job: Job, token: string) =>
        own(Object.create(job, { name: { value: `${job.name}'` } }) as Job, token);
      await queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {} })));
      const worker = wrapped(around, (job) => Promise.resolve(seen.push(job.name)), { concurrency: 2 });
      const log = new EventLog(worker, ['completed']);
      await log.get('completed', 3);
      expect(seen.sort()).toEqual(["a'", "b'", "c'"]);
    });

    it('leaves a job active that it does not run', async () => {
      const queue = stage.queue();
      const around = (own: ProcessJob) => (job: Job, token: string, mayFetch: unknown) =>
        job.name === 'skipped' ? Promise.resolve() : own(job, token, mayFetch);
      await queue.addBulk(['skipped', 'run'].map((name) => ({ name, data: {} })));
      const worker = wrapped(around, async () => undefined);
      const log = new EventLog(worker, ['completed', 'failed']);
      await queue.add('run', {});
      await log.get('completed', 2);
      expect(log.names).toEqual(['completed', 'completed']);
      expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 1, completed: 2 });
    });

    it('is called where the class was patched', async () => {
      const patch = vi.spyOn(lib.Worker.prototype, 'processJob');
      await stage.queue().add('job', {});
      const worker = stage.worker(async () => undefined);
      await new EventLog(worker, ['completed']).get('completed');
      expect(patch.mock.calls.map(([job, token]) => [job.name, token === job.token])).toEqual([['job', true]]);
      patch.mockRestore();
    });

    it('gets a signal through to the processor', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, { jobId: 'own' });
      const worker = wrapped(
        (own) => own,
        (_job, _token, signal) =>
          new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('cancelled')))),
      );
      const log = new EventLog(worker, ['active', 'failed']);
      await log.get('active');
      await until('the job is cancelled', () => worker.cancelJob('own'));
      await log.get('failed');
      expect(await queue.getFailedCount()).toBe(1);
    });
  });

  it('callProcessJob may change what a job returns', async () => {
    class Doubling extends lib.Worker {
      protected override async callProcessJob(job: Job, token: string, signal?: AbortSignal): Promise<number> {
        return 2 * ((await super.callProcessJob(job, token, signal)) as number);
      }
    }
    const queue = stage.queue();
    await queue.add('job', {});
    const worker = stage.watch(new Doubling(stage.queueName, async () => 21, { connection: { ...connection } }));
    await new EventLog(worker, ['completed']).get('completed');
    expect((await queue.getJob('1'))?.returnvalue).toBe(42);
  });

  it('addJob is what add calls', async () => {
    class Renaming extends lib.Queue {
      protected override addJob(name: string, data: unknown): Promise<Job> {
        return super.addJob(`${name}'`, data);
      }
    }
    const queue = stage.watch(new Renaming(stage.queueName, { connection: { ...connection } }));
    expect((await queue.add('job', {})).name).toBe("job'");
  });
});
