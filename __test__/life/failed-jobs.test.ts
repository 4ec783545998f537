// Failed jobs as an operator sees them: found, counted, replayed and removed by name, error or age. BullMQ has none of it.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job } from 'bullmq';
import type { Queue, Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const START = 1_700_000_000_000;

describe('failed jobs', () => {
  const stage = useStage(chasquimq);
  afterEach(() => vi.restoreAllMocks());

  /** Lets each of these jobs fail: {name, reason}. */
  async function fail(queue: Queue, jobs: { name: string; reason: string }[], opts = {}): Promise<void> {
    const worker = stage.worker(async (job: Job) => {
      throw new Error(job.data as string);
    }) as unknown as Worker;
    await worker.waitUntilReady();
    const log = new EventLog(worker, ['failed']);
    await queue.addBulk(jobs.map(({ name, reason }) => ({ name, data: reason, opts })));
    await log.when('their failures', () => log.entries.length === jobs.length);
    await worker.close();
  }

  function clock(ms: number): void {
    vi.spyOn(Date, 'now').mockImplementation(() => ms);
  }

  /** 1..4 failed at START, 5 and 6 ten seconds later; now it is twenty seconds later. */
  async function sixFailures(): Promise<Queue> {
    clock(START);
    const queue = stage.queue() as unknown as Queue;
    await fail(queue, [
      { name: 'mail', reason: 'no connection to smtp' },
      { name: 'mail', reason: 'no such user' },
      { name: 'call', reason: 'no connection to pbx' },
      { name: 'text', reason: 'too long' },
    ]);
    clock(START + 10_000);
    await fail(queue, [
      { name: 'mail', reason: 'no connection to smtp' },
      { name: 'call', reason: 'busy' },
    ]);
    clock(START + 20_000);
    return queue;
  }

  const filters = [
    [{}, ['1', '2', '3', '4', '5', '6']],
    [{ name: 'mail' }, ['1', '2', '5']],
    [{ name: ['call', 'text'] }, ['3', '4', '6']],
    [{ name: 'nobody' }, []],
    [{ error: 'connection' }, ['1', '3', '5']],
    [{ error: '.*' }, []],
    [{ name: 'mail', error: 'connection' }, ['1', '5']],
    [{ olderThan: 15_000 }, ['1', '2', '3', '4']],
    [{ olderThan: 20_000 }, ['1', '2', '3', '4']],
    [{ olderThan: 20_001 }, []],
    [{ newerThan: 15_000 }, ['5', '6']],
    [{ newerThan: 10_000 }, ['5', '6']],
    [{ newerThan: 9_999 }, []],
    [{ olderThan: 15_000, name: 'mail', error: 'user' }, ['2']],
  ] as const;

  it('are found and counted by a filter, the latest first', async () => {
    const queue = await sixFailures();
    for (const [filter, ids] of filters as unknown as [object, string[]][]) {
      const found = await queue.getFailedJobs(filter);
      expect(found.map((job) => job.id)).toEqual([...ids].reverse());
      expect(await queue.countFailedJobs(filter)).toBe(ids.length);
    }
    const [job] = await queue.getFailedJobs({ error: 'too long' });
    expect(job).toBeInstanceOf(chasquimq.Job);
    expect(job?.toJSON()).toMatchObject({
      id: '4',
      name: 'text',
      failedReason: 'too long',
      attemptsMade: 1,
      finishedOn: START,
    });
    expect(job?.stacktrace).toHaveLength(1);
    expect(await job?.getState()).toBe('failed');
  });

  it('are found by pages', async () => {
    const queue = await sixFailures();
    const ids = async (opts: object) => (await queue.getFailedJobs(opts)).map((job) => job.id);
    expect(await ids({ start: 1, limit: 2 })).toEqual(['5', '4']);
    expect(await ids({ start: 5 })).toEqual(['1']);
    expect(await ids({ start: 6 })).toEqual([]);
    expect(await ids({ limit: 0 })).toEqual([]);
    expect(await ids({ name: 'mail', start: 1, limit: 1 })).toEqual(['2']);
  });

  it.each(filters)('that %j names are replayed in order, and no others', async (filter, ids) => {
    const queue = await sixFailures();
    expect(await queue.replayFailed(filter)).toBe(ids.length);
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual(ids);
    expect(await queue.getFailedCount()).toBe(6 - ids.length);
  });

  it.each(filters)('that %j names are removed, and no others', async (filter, ids) => {
    const queue = await sixFailures();
    const log = new EventLog(queue, ['cleaned']);
    expect(await queue.removeFailed(filter)).toEqual(ids);
    expect(await queue.getFailedCount()).toBe(6 - ids.length);
    for (const id of ids) expect(await queue.getJob(id)).toBeUndefined();
    expect(log.entries).toEqual([{ event: 'cleaned', args: [ids, 'failed'] }]);
  });

  it('are replayed and removed up to a limit, those that failed first first', async () => {
    const queue = await sixFailures();
    expect(await queue.replayFailed({ name: 'mail', limit: 2 })).toBe(2);
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual(['1', '2']);
    expect(await queue.removeFailed({ limit: 2 })).toEqual(['3', '4']);
    expect(await queue.replayFailed({ limit: 0 })).toBe(0);
    expect(await queue.removeFailed({ limit: 0 })).toEqual([]);
    expect(await queue.getFailedCount()).toBe(2);
  });

  it('keep their counts of tries when they are replayed, or start anew', async () => {
    const queue = await sixFailures();
    await queue.replayFailed({ name: 'mail' });
    await queue.replayFailed({ name: 'call', resetAttempts: true });
    const counts = (await queue.getWaiting()).map((job) => [job.id, job.attemptsMade, job.attemptsStarted]);
    expect(counts).toEqual([
      ['1', 1, 1],
      ['2', 1, 1],
      ['5', 1, 1],
      ['3', 0, 0],
      ['6', 0, 0],
    ]);
  });

  it('are told as waiting, from failed', async () => {
    const queue = await sixFailures();
    const log = new EventLog(stage.events(), ['waiting', 'paused']);
    await queue.replayFailed({ error: 'busy' });
    await queue.pause();
    await log.get('paused');
    expect(log.all('waiting').at(-1)?.[0]).toEqual({ jobId: '6', prev: 'failed' });
  });

  it('run again, and stay failed if they fail again meanwhile', async () => {
    const queue = stage.queue() as unknown as Queue;
    const jobs = Array.from({ length: 2_500 }, (_, i) => ({ name: i % 2 ? 'odd' : 'even', reason: `no ${i}` }));
    await fail(queue, jobs);
    let runs = 0;
    const worker = stage.worker(
      async () => {
        runs += 1;
        throw new Error('again');
      },
      { concurrency: 50 },
    );
    const log = new EventLog(worker, ['failed']);
    expect(await queue.replayFailed({ name: 'odd' })).toBe(1_250);
    await log.when('their failures', () => log.entries.length === 1_250);
    await worker.close();
    expect(runs).toBe(1_250);
    expect(await queue.countFailedJobs({ error: 'again' })).toBe(1_250);
    expect(await queue.countFailedJobs({ error: 'no ' })).toBe(1_250);
    expect(await queue.getFailedJobs({ name: 'even', start: 1_000, limit: 1_000 })).toHaveLength(250);
    expect(await queue.removeFailed({ error: 'again' })).toHaveLength(1_250);
  });

  it.each([
    [{ name: undefined }, 'name must be a text, or a list of texts'],
    [{ name: [] }, 'name must be a text, or a list of texts'],
    [{ name: [1] }, 'name must be a text, or a list of texts'],
    [{ error: undefined }, 'error must be a text'],
    [{ error: '' }, 'error must be a text'],
    [{ error: /no/ }, 'error must be a text'],
    [{ olderThan: undefined }, 'olderThan must be a number of 0 or more'],
    [{ newerThan: -1 }, 'newerThan must be a number of 0 or more'],
    [{ olderThan: NaN }, 'olderThan must be a number of 0 or more'],
    [{ limit: -1 }, 'limit must be a number of 0 or more'],
    [{ reason: 'no' }, 'reason is no option of this call'],
  ])('are not touched by a call with %o', async (filter, message) => {
    const queue = stage.queue() as unknown as Queue;
    const opts = filter as object;
    for (const refused of [queue.getFailedJobs(opts), queue.replayFailed(opts), queue.removeFailed(opts)]) {
      const error = await rejection(refused);
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toBe(message);
    }
  });
});
