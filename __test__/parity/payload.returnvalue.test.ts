// Pins how a return value reaches listeners, getJob, QueueEvents and waitUntilFinished.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';
import { cycle, faithful, lossy, megabyte } from '../support/payloads.js';

describe.each(libraries)('$name: payload.returnvalue', ({ lib }) => {
  const stage = useStage(lib);

  /** The value as the `completed` listener, getJob and QueueEvents show it. */
  async function returned(value: unknown) {
    const queue = stage.queue();
    const global = stage.globalLog();
    const log = new EventLog(
      stage.worker(async () => value),
      ['completed'],
    );
    const job = await queue.add('compute', {});
    const [local, result] = await log.get<[Job, unknown]>('completed');
    const [event] = await global.get<[{ returnvalue: unknown }]>('completed');
    const stored: unknown = (await fetchJob(queue, job.id)).returnvalue;
    return { result, local: local.returnvalue as unknown, stored, event: event.returnvalue };
  }

  it.each(faithful)('%s is kept as it is', async (_, value) => {
    const { result, stored, event } = await returned(value);
    expect(result).toBe(value);
    expect(stored).toStrictEqual(value);
    expect(event).toStrictEqual(value);
  });

  it.each(lossy)('%s is kept as JSON shows it', async (_, value, json) => {
    const { result, stored, event } = await returned(value);
    expect(result).toBe(value);
    expect(stored).toStrictEqual(json);
    expect(event).toStrictEqual(json);
  });

  it.each([
    ['undefined', undefined],
    ['a function', () => 1],
    ['an object whose toJSON gives undefined', { toJSON: () => undefined }],
  ])('%s is kept as null', async (_, value) => {
    const { result, stored, event } = await returned(value);
    expect([result, stored, event]).toEqual([value, null, null]);
  });

  it.each([0, '', false, null, undefined])(
    'that is falsy leaves job.returnvalue undefined in the listener: %j',
    async (value) => {
      expect((await returned(value)).local).toBeUndefined();
    },
  );

  it('that is truthy is job.returnvalue in the listener, itself and not its JSON', async () => {
    const value = { at: new Date(5) };
    expect((await returned(value)).local).toBe(value);
  });

  it('keeps a string of 1 MB', async () => {
    const { stored, event } = await returned(megabyte);
    expect([stored === megabyte, event === megabyte]).toEqual([true, true]);
  });

  it('of many jobs that run at once goes to the job it belongs to', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => `result ${String(job.data)}`, { concurrency: 50 });
    const log = new EventLog(worker, ['completed']);
    const jobs = await queue.addBulk(Array.from({ length: 300 }, (_, i) => ({ name: 'job', data: i })));
    await log.get('completed', 300);
    for (const [job, result] of log.all<[Job, string]>('completed')) expect(result).toBe(`result ${String(job.data)}`);
    const stored = await Promise.all(jobs.map((job) => fetchJob(queue, job.id)));
    expect(stored.map((job) => job.returnvalue as unknown)).toEqual(jobs.map((_, i) => `result ${i}`));
  });

  it('may be given without a promise', async () => {
    const queue = stage.queue();
    const log = new EventLog(stage.worker((() => 'now') as unknown as () => Promise<string>), ['completed']);
    await queue.add('compute', {});
    expect((await log.get<[Job, string]>('completed'))[1]).toBe('now');
  });

  it.each([
    ['a cycle', cycle, /^Converting circular structure to JSON/],
    ['a BigInt', 1n, /^Do not know how to serialize a BigInt$/],
  ])('%s fails the job with the text of JSON.stringify and is an error event', async (_, value, text) => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => (job.name === 'bad' ? value : 'fine'));
    const log = new EventLog(worker, ['error', 'failed', 'completed']);
    await queue.add('bad', {});
    const [failed, error] = await log.get<[Job, Error]>('failed');
    expect(error.message).toMatch(text);
    expect(stage.takeErrors()).toEqual([error]);
    expect(await failed.getState()).toBe('failed');
    expect((await fetchJob(queue, failed.id)).failedReason).toMatch(text);
    await queue.add('good', {});
    await log.get('completed');
    expect(log.names).toEqual(['error', 'failed', 'completed']);
  });

  it('that cannot be serialised is retried like any failure', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => (job.attemptsStarted === 1 ? cycle : 'fine')),
      ['failed', 'completed'],
    );
    await queue.add('flaky', {}, { attempts: 2 });
    await log.get('completed');
    expect(log.names).toEqual(['failed', 'completed']);
    expect(stage.takeErrors()).toHaveLength(1);
  });
});
