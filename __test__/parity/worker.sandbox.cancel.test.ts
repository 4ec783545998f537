// Pins cancelling jobs whose processors are files, also before their child is there.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const BY_NAME = fileURLToPath(new URL('./processors/by-name.cjs', import.meta.url));
/** A child is a process of its own, which takes a while to start. */
const START_MS = 60_000;

const MODES = [
  ['child process', false],
  ['worker thread', true],
] as const;

describe.each(libraries)('$name: worker.sandbox.cancel', ({ lib }) => {
  const stage = useStage(lib);

  describe.each(MODES)('in a %s', (_, useWorkerThreads) => {
    function sandbox(): { worker: Worker; log: EventLog } {
      const { connection } = stage.queue().opts;
      const worker = stage.watch(new lib.Worker(stage.queueName, BY_NAME, { connection, useWorkerThreads }));
      return { worker, log: new EventLog(worker, ['active', 'progress', 'completed', 'failed']) };
    }

    /** Calls `cancel` as soon as a job is active: its child is then still starting. */
    async function whenActive(cancel: (worker: Worker, id: string) => unknown): Promise<[unknown, string]> {
      const { worker, log } = sandbox();
      const told = new Promise<unknown>((resolve) => {
        worker.once('active', ({ id }) => setImmediate(() => resolve(cancel(worker, id ?? ''))));
      });
      await stage.queue().add('untilAborted', {});
      const [job, error] = await log.get<[Job, Error]>('failed', 1, START_MS);
      expect((await fetchJob(stage.queue(), job.id)).failedReason).toBe(error.message);
      return [await told, error.message];
    }

    it('cancelJob before the child is there aborts the signal', async () => {
      expect(await whenActive((worker, id) => worker.cancelJob(id, 'early'))).toEqual([true, 'aborted: "early"']);
    });

    it('cancelAllJobs before the child is there does, too', async () => {
      expect((await whenActive((worker) => worker.cancelAllJobs('all')))[1]).toBe('aborted: "all"');
    });

    it('of two calls the first gives the reason', async () => {
      const twice = (worker: Worker, id: string): boolean[] => [worker.cancelJob(id, 'a'), worker.cancelJob(id, 'b')];
      expect(await whenActive(twice)).toEqual([[true, true], 'aborted: "a"']);
    });

    it('a child that was started for another job is told, too', async () => {
      const { worker, log } = sandbox();
      await stage.queue().add('double', { n: 1 });
      await log.get('completed', 1, START_MS);
      worker.once('active', ({ id }) => setImmediate(() => worker.cancelJob(id ?? '', 'second')));
      await stage.queue().add('untilAborted', {});
      expect((await log.get<[Job, Error]>('failed', 1, START_MS))[1].message).toBe('aborted: "second"');
      await stage.queue().add('double', { n: 2 });
      expect((await log.get<[Job, number]>('completed', 2, START_MS))[1]).toBe(4);
    });

    it('two calls while the job runs are one', async () => {
      const { worker, log } = sandbox();
      await stage.queue().add('aborts', {});
      await log.get('progress', 1, START_MS);
      expect([worker.cancelJob('1', 'a'), worker.cancelJob('1', 'b')]).toEqual([true, true]);
      expect((await log.get<[Job, Error]>('failed'))[1].message).toBe('aborted: a');
    });

    it('without a reason', async () => {
      expect((await whenActive((worker, id) => worker.cancelJob(id)))[1]).toBe('aborted: {}');
    });
  });
});
