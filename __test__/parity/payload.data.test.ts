// Pins what of a job's data, name and progress survives the way to a worker and back: JSON, exactly.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';
import { cycle, faithful, lossy, megabyte, names, unserialisable } from '../support/payloads.js';

describe.each(libraries)('$name: payload.data', ({ lib }) => {
  const stage = useStage(lib);

  /** The data of one job as its processor sees them, and as getJob shows them. */
  async function roundTrip(data: unknown): Promise<{ seen: unknown; stored: unknown }> {
    const queue = stage.queue();
    let seen: unknown;
    const log = new EventLog(
      stage.worker(async (job) => {
        seen = job.data;
      }),
      ['completed'],
    );
    const job = await queue.add('carry', data);
    await log.get('completed');
    return { seen, stored: (await fetchJob(queue, job.id)).data };
  }

  it.each(faithful)('%s arrives as it was sent', async (_, data) => {
    const { seen, stored } = await roundTrip(data);
    expect(seen).toStrictEqual(data);
    expect(stored).toStrictEqual(data);
  });

  it.each(lossy)('%s arrives as JSON shows it', async (_, data, json) => {
    const { seen, stored } = await roundTrip(data);
    expect(seen).toStrictEqual(json);
    expect(stored).toStrictEqual(json);
  });

  it.each([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', Symbol('none')],
    ['an object whose toJSON gives undefined', { toJSON: () => undefined }],
  ])('%s arrives as an empty object', async (_, data) => {
    const { seen, stored } = await roundTrip(data);
    expect(seen).toStrictEqual({});
    expect(stored).toStrictEqual({});
  });

  it('keeps __proto__ as a key of its own and changes no prototype', async () => {
    const { seen } = await roundTrip(JSON.parse('{"__proto__":{"polluted":true},"constructor":5,"toString":6}'));
    expect(Object.keys(seen as object)).toEqual(['__proto__', 'constructor', 'toString']);
    expect(Object.getPrototypeOf(seen)).toBe(Object.prototype);
    expect(JSON.stringify(seen)).toBe('{"__proto__":{"polluted":true},"constructor":5,"toString":6}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('keeps a string of 1 MB', async () => {
    const { seen, stored } = await roundTrip({ text: megabyte });
    // Compared by === first: a failing toEqual would print two megabytes.
    expect((seen as { text: string }).text === megabyte).toBe(true);
    expect((stored as { text: string }).text === megabyte).toBe(true);
  });

  it('keeps the order of keys that JSON keeps', async () => {
    const { seen } = await roundTrip({ b: 1, a: 2, 10: 3, 9: 4 });
    expect(JSON.stringify(seen)).toBe('{"9":4,"10":3,"b":1,"a":2}');
  });

  it('calls toJSON with the key of the value', async () => {
    const keyed = { toJSON: (key: string) => `at ${key}` };
    const { seen } = await roundTrip({ field: keyed, list: [keyed] });
    expect(seen).toEqual({ field: 'at field', list: ['at 0'] });
  });

  it('is what it was when add was called, whatever happens to the object then', async () => {
    const queue = stage.queue();
    const data = { step: 1 };
    const adding = queue.add('mutated', data);
    data.step = 2;
    expect((await fetchJob(queue, (await adding).id)).data).toEqual({ step: 1 });
  });

  it('mixes all kinds in one addBulk', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk(faithful.map(([name, data]) => ({ name, data })));
    const stored = await Promise.all(jobs.map((job) => fetchJob(queue, job.id)));
    expect(stored.map((job) => [job.name, job.data])).toStrictEqual(faithful);
  });

  it.each(unserialisable)(
    '%s is rejected with the text of JSON.stringify, and the queue stays usable',
    async (_, data) => {
      const queue = stage.queue();
      const error = await rejection(queue.add('bad', data));
      expect(error.message).toBe(stringifyError(data));
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
      expect((await queue.add('good', { fine: true })).id).toBe('1');
      expect((await fetchJob(queue, '1')).data).toEqual({ fine: true });
    },
  );

  it.each(names)('a name may be %j', async (name) => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => job.name),
      ['completed'],
    );
    const global = stage.globalLog();
    const job = await queue.add(name, {});
    expect((await log.get<[Job, string]>('completed'))[1]).toBe(name);
    expect((await fetchJob(queue, job.id)).name).toBe(name);
    expect((await global.get('added'))[0]).toEqual({ jobId: '1', name });
  });
});

describe.each(libraries)('$name: payload.progress', ({ lib }) => {
  const stage = useStage(lib);

  it.each([
    ['a number', 42.5],
    ['zero', 0],
    ['a string', 'half way'],
    ['an empty string', ''],
    ['true', true],
    ['false', false],
    ['an object', { done: 3, of: [1, { deep: '日本🚀' }] }],
    ['an array', [1, null, 'x']],
  ])('%s is shown by getJob and told by QueueEvents', async (_, progress) => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const job = await queue.add('work', {});
    await job.updateProgress(progress);
    expect(job.progress).toStrictEqual(progress);
    expect((await fetchJob(queue, job.id)).progress).toStrictEqual(progress);
    expect((await log.get('progress'))[0]).toStrictEqual({ jobId: '1', data: progress });
  });

  it('that JSON makes null counts as none: getJob shows 0 and QueueEvents tell null', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const job = await queue.add('work', {});
    await job.updateProgress(50);
    await job.updateProgress(NaN);
    expect((await fetchJob(queue, job.id)).progress).toBe(0);
    expect((await log.get('progress', 2))[0]).toStrictEqual({ jobId: '1', data: null });
  });

  it('that cannot be serialised is rejected and leaves the stored one', async () => {
    const queue = stage.queue();
    const job = await queue.add('work', {});
    await job.updateProgress(50);
    const error = await rejection(job.updateProgress(cycle));
    expect(error.message).toBe(stringifyError(cycle));
    expect((await fetchJob(queue, job.id)).progress).toBe(50);
  });
});

function stringifyError(value: unknown): string {
  try {
    JSON.stringify(value);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('this value can be serialised');
}
