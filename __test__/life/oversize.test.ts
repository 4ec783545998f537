// Jobs far larger than a frame, a script call or a read from a socket.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const MB = 2 ** 20;

describe('oversize', () => {
  const stage = useStage(chasquimq);

  it('a job of 16 MB, with a result as large, arrives whole among small ones', async () => {
    const queue = stage.queue();
    const events = stage.events();
    await events.waitUntilReady();
    const text = `${'é'.repeat(4 * MB)}${'z'.repeat(8 * MB)}`;
    const worker = stage.worker(async (job) => job.data as unknown, { concurrency: 5 });
    const log = new EventLog(worker, ['completed']);
    const singly = [queue.add('small', 1), queue.add('large', { text }), queue.add('small', 2)];
    const inBulk = queue.addBulk([
      { name: 'small', data: 3 },
      { name: 'large', data: [text] },
      { name: 'small', data: 4 },
    ]);
    const added = [...(await Promise.all(singly)), ...(await inBulk)];
    await log.get('completed', 6, 60_000);
    const results = new Map(log.all<[Job, unknown]>('completed').map(([job, result]) => [job.id, result]));
    const expected: unknown[] = [1, { text }, 2, 3, [text], 4];
    // Compared without toEqual, whose report of a difference would be as large.
    const equal = added.map(({ id }, i) => JSON.stringify(results.get(id)) === JSON.stringify(expected[i]));
    expect(equal).toEqual(expected.map(() => true));
    const stored = await queue.getJob(String(added[1]?.id));
    expect((stored?.returnvalue as { text: string }).text === text).toBe(true);
  });

  it('a name of 5 MB, an error of 5 MB and a log row of 5 MB', async () => {
    const queue = stage.queue();
    const name = 'n'.repeat(5 * MB);
    const message = 'm'.repeat(5 * MB);
    const worker = stage.worker(async (job) => {
      await job.log(name);
      await job.updateProgress({ text: name });
      throw new Error(message);
    });
    const log = new EventLog(worker, ['failed']);
    const { id = '' } = await queue.add(name, {});
    await log.get('failed', 1, 60_000);
    const stored = await queue.getJob(id);
    expect([stored?.name === name, stored?.failedReason === message]).toEqual([true, true]);
    expect((stored?.progress as { text: string }).text === name).toBe(true);
    expect((await queue.getJobLogs(id)).logs[0] === name).toBe(true);
  });

  it('thousands of jobs of 20 kB in one addBulk', async () => {
    const queue = stage.queue();
    const data = { text: 'x'.repeat(20_000) };
    const jobs = await queue.addBulk(Array.from({ length: 2_000 }, (_, i) => ({ name: 'job', data: { ...data, i } })));
    let whole = 0;
    const worker = stage.worker(
      async (job) => {
        if ((job.data as typeof data).text === data.text) whole++;
      },
      { concurrency: 50 },
    );
    await new EventLog(worker, ['completed']).get('completed', 2_000, 60_000);
    expect([jobs.length, whole]).toEqual([2_000, 2_000]);
  });

  it('data beyond sizeLimit is refused, and the queue stays usable', async () => {
    const queue = stage.queue();
    const error = await rejection(queue.add('job', 'x'.repeat(100), { sizeLimit: 50 }));
    expect(error.message).toMatch(/^The size of job job exceeds the limit 50 bytes/);
    expect((await queue.add('job', 'x'.repeat(48), { sizeLimit: 50 })).id).toBe('1');
  });
});
