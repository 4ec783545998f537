// Pins jobs that run while a faked clock stands at 0: no time reads as one (BullMQ: Job.fromJSON, Worker).
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: worker.epoch', ({ lib }) => {
  const stage = useStage(lib);
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['completes', 'completed', 0],
    ['fails', 'failed', undefined],
  ])('a job that %s at the epoch', async (name, event, finishedOn) => {
    vi.useFakeTimers({ toFake: ['Date'], now: 0 });
    const queue = stage.queue();
    const seen: unknown[] = [];
    const log = new EventLog(
      stage.worker(async (job) => {
        seen.push(job.processedOn);
        if (job.name === 'fails') throw new Error('no');
        return 'done';
      }),
      [event],
    );
    const { id } = await queue.add(name, {}, { timestamp: 7 });
    const [ended] = await log.get<[Job]>(event);
    const stored = await fetchJob(queue, id);
    expect(seen).toEqual([undefined]);
    expect([ended.processedOn, ended.finishedOn]).toEqual([undefined, finishedOn]);
    expect([stored.processedOn, stored.finishedOn]).toEqual([undefined, undefined]);
    expect(await stored.getState()).toBe(event);
  });
});
