// A child that is about to exit gets no other job. BullMQ gives it the next one, and fails that one as well.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const ODD = fileURLToPath(new URL('../parity/processors/odd.cjs', import.meta.url));
/** Children are processes of their own, which take a while to start. */
const START_MS = 20_000;

describe('sandbox.odd', () => {
  const stage = useStage(chasquimq);

  it.each([false, true])('what is thrown fails its own job alone (threads: %s)', async (useWorkerThreads) => {
    const names = ['message', 'later', 'proxy', 'later', 'result'];
    const queue = stage.queue();
    await queue.addBulk(names.flatMap((name) => [name, 'fine']).map((name) => ({ name, data: {} })));
    const { connection } = queue.opts;
    const worker = stage.watch(new chasquimq.Worker(stage.queueName, ODD, { connection, useWorkerThreads }));
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.when('all to end', () => log.entries.length === 2 * names.length, START_MS);
    const results = log.all<[Job, unknown]>('completed').map(([job, result]) => [job.name, result]);
    expect(results).toEqual(names.map(() => ['fine', 'fine']));
  });
});
