// Pins what close() does while the server takes its time: it waits until what has ended is stored, and told.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog } from '../support/waiting.js';

/** Longer than a close waits for a server that refuses everything. */
const SLOW_MS = 5_000;
const JOBS = 200;

describe.each(libraries)('$name: worker.close.slow', ({ lib }) => {
  const stage = useStage(lib);
  const own = useOwnServer();

  it('what ended is stored and told before it resolves', async () => {
    const connection = own.server.connection;
    const queue = stage.queue({ connection });
    const gates = [stage.gate(), stage.gate()] as const;
    await queue.addBulk(Array.from({ length: JOBS }, (_, data) => ({ name: 'job', data })));
    const work = async (job: { data: number }): Promise<string> => {
      await gates[job.data < (3 * JOBS) / 4 ? 0 : 1].opened;
      if (job.data % 4 === 3) throw new Error('boom');
      return 'done';
    };
    const worker = stage.worker(work, { connection, concurrency: JOBS });
    const log = new EventLog(worker, ['active', 'completed', 'failed', 'closed']);
    await log.get('active', JOBS);
    await own.redis.call('CLIENT', 'PAUSE', String(SLOW_MS), 'ALL');
    // Some wait for an answer, and others end meanwhile.
    for (const gate of gates) {
      gate.open();
      await new Promise(setImmediate);
    }
    await worker.close();
    expect(log.names.filter((name) => name === 'completed')).toHaveLength((JOBS * 3) / 4);
    expect(log.names.filter((name) => name === 'failed')).toHaveLength(JOBS / 4);
    expect(log.names.at(-1)).toBe('closed');
    expect(await queue.getJobCounts('active', 'waiting', 'completed', 'failed')).toEqual({
      active: 0,
      waiting: 0,
      completed: (JOBS * 3) / 4,
      failed: JOBS / 4,
    });
  });
});
