// Pins what becomes of a job whose processor, a file, throws what throws when it is looked at: it fails with that.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const ODD = fileURLToPath(new URL('./processors/odd.cjs', import.meta.url));
/** A child is a process of its own, which takes a while to start. */
const START_MS = 60_000;

const MODES = [
  ['child process', false],
  ['worker thread', true],
] as const;

describe.each(libraries)('$name: worker.sandbox.odd', ({ lib }) => {
  const stage = useStage(lib);

  describe.each(MODES)('in a %s', (_, useWorkerThreads) => {
    function sandbox(): EventLog {
      const { connection } = stage.queue().opts;
      const worker = stage.watch(new lib.Worker(stage.queueName, ODD, { connection, useWorkerThreads }));
      return new EventLog(worker, ['completed', 'failed']);
    }

    it.each([
      ['an error whose message throws', 'message', 'oddity'],
      ['an error whose stack throws', 'stack', 'oddity'],
      ['an error with a member that throws', 'member', 'oddity'],
      ['an error that holds such an error', 'inner', 'oddity'],
      ['a proxy that throws', 'proxy', 'oddity'],
      ['an error whose message is no text', 'text', 'oddity'],
      ['an object with a message', 'plain', 'boom'],
      ['an error without a message', 'empty', 'Error'],
      ['an error that nothing catches', 'later', 'oddity'],
    ])('%s fails the job', async (_case, name, reason) => {
      const log = sandbox();
      const { id } = await stage.queue().add(name, {});
      const [, error] = await log.get<[Job, Error]>('failed', 1, START_MS);
      expect(error.message).toBe(reason);
      const job = await fetchJob(stage.queue(), id);
      expect([job.failedReason, job.attemptsMade, await job.getState()]).toEqual([reason, 1, 'failed']);
    });
  });

  it('what a processor sends by itself harms no job but its own', async () => {
    const { connection } = stage.queue().opts;
    const worker = stage.watch(new lib.Worker(stage.queueName, ODD, { connection }));
    const log = new EventLog(worker, ['completed', 'failed']);
    await stage.queue().addBulk(['sends', 'fine'].map((name) => ({ name, data: {} })));
    await log.get('completed', lib === chasquimq ? 2 : 1, START_MS);
    const [job, result] = log.all<[Job, string]>('completed').at(-1) ?? [];
    expect([job?.name, result]).toEqual(['fine', 'fine']);
  });
});
