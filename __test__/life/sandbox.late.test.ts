// What a sandboxed job calls after its end is about that job: while its child is idle, and though it cannot be carried out.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const LATE = fileURLToPath(new URL('../parity/processors/late.cjs', import.meta.url));
/** Children are processes of their own, which take a while to start. */
const START_MS = 60_000;

describe.each([false, true])('sandbox.late, with threads: %s', (useWorkerThreads) => {
  const stage = useStage(chasquimq);

  function sandbox(): EventLog {
    const { connection } = stage.queue().opts;
    const worker = stage.watch(new chasquimq.Worker(stage.queueName, LATE, { connection, useWorkerThreads }));
    return new EventLog(worker, ['completed', 'failed', 'progress']);
  }

  it('a call of a job whose child is idle reaches it', async () => {
    const log = sandbox();
    const { id } = await stage.queue().add('later', {});
    const [job, progress] = await log.get<[Job, unknown]>('progress', 1, START_MS);
    expect([log.names, job.id, progress]).toEqual([['completed', 'progress'], id, 'late']);
    expect((await fetchJob(stage.queue(), id)).progress).toBe('late');
  });

  it('one that cannot be carried out fails no other job', async () => {
    const log = sandbox();
    await stage.queue().addBulk(['leaves', 'moves'].map((name) => ({ name, data: {} })));
    await log.when('both to end', () => log.entries.length === 2, START_MS);
    expect(log.names).toEqual(['completed', 'completed']);
  });
});
