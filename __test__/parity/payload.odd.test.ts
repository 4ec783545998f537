// Pins texts that a wire can lose: lone surrogates, NUL, names of prototypes, very long and very deep ones, as a job's name, id, error,
// log row, result and options.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const WAIT_MS = 100_000;
/** Deeper than that BullMQ's own script refuses options. */
const DEEP = 900;

const odd: [string, string][] = [
  ['a pair of surrogates', '🚀'],
  ['NUL', 'a\0b\0'],
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['toString', 'toString'],
  ['quotes and line ends', '"\\\r\n\u2028\u2029'],
  ['a mark of the byte order', '\ufeffx'],
  ['what is no character', '\uffff\ufffe'],
  ['combining characters', 'e\u0301 != é'],
  ['Lua', "'] redis.call('FLUSHALL') --[["],
  ['braces and stars', '{a}*?[b]'],
  ['a long one', 'lang '.repeat(20_000)],
];

/** In names and ids BullMQ makes three characters of each (a wanted difference). */
const halves: [string, string][] = [
  ['a lone high surrogate', 'a\ud800'],
  ['a lone low surrogate', '\udc00b'],
  ['twisted surrogates', '\udc00\ud800'],
];

/** A text as UTF-8 carries it: what is half a pair is replaced. */
const carried = (text: string): string => Buffer.from(text).toString();

/** An array in an array in an array. */
function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 ? { a: value } : [value];
  return value;
}

describe.each(libraries)('$name: odd texts', ({ lib }) => {
  const stage = useStage(lib);

  it.each(odd)('%s as a name', async (_, name) => {
    const queue = stage.queue();
    const names: string[] = [];
    const log = new EventLog(
      stage.worker(async (job) => void names.push(job.name)),
      ['completed'],
    );
    const global = stage.globalLog();
    const [one] = await queue.addBulk([name, 'between', name].map((name) => ({ name, data: { name } })));
    expect(one.name).toBe(name);
    await log.get('completed', 3, WAIT_MS);
    expect(names).toEqual([name, 'between', name].map(carried));
    const found = await fetchJob(queue, one.id);
    expect([found.name, found.data]).toEqual([carried(name), { name }]);
    expect((await global.get('added', 1, WAIT_MS))[0]).toEqual({ jobId: '1', name: carried(name) });
  });

  it.each(odd)('%s as an id', async (_, jobId) => {
    const queue = stage.queue();
    const added = await queue.add('job', { jobId }, { jobId });
    expect(added.id).toBe(jobId);
    expect(await added.getState()).toBe('waiting');
    expect((await fetchJob(queue, jobId)).data).toEqual({ jobId });
    await added.updateProgress(5);
    await queue.add('again', {}, { jobId });
    const log = new EventLog(
      stage.worker(async (job) => job.id),
      ['completed'],
    );
    const [job, result] = await log.get<[Job, string]>('completed', 1, WAIT_MS);
    expect([job.id, result]).toEqual([carried(jobId), carried(jobId)]);
    expect((await queue.getCompleted()).map(({ id, name }) => [id, name])).toEqual([[carried(jobId), 'job']]);
    expect(await queue.remove(jobId)).toBe(1);
    expect(await queue.getJobCounts('completed', 'waiting', 'failed')).toEqual({ completed: 0, waiting: 0, failed: 0 });
  });

  it.each([...odd, ...halves])(
    '%s as the message of an error, as progress, result and row of a log',
    async (_, text) => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async (job) => {
          await job.updateProgress({ text });
          await job.log(text);
          if (job.name === 'fails') throw new Error(text);
          return { text, [text]: 1 };
        }),
        ['completed', 'failed'],
      );
      const global = stage.globalLog();
      const fails = await queue.add('fails', {});
      const works = await queue.add('works', {});
      await log.get('failed', 1, WAIT_MS);
      await log.get('completed', 1, WAIT_MS);
      const [failed, completed] = [await fetchJob(queue, fails.id), await fetchJob(queue, works.id)];
      expect(failed.failedReason).toBe(carried(text));
      expect(failed.stacktrace?.[0]?.startsWith(`Error: ${text}`)).toBe(true);
      expect((await global.get<[{ failedReason: string }]>('failed', 1, WAIT_MS))[0].failedReason).toBe(carried(text));
      expect(completed.progress).toEqual({ text });
      expect(JSON.stringify(completed.returnvalue)).toBe(JSON.stringify({ text, [text]: 1 }));
      expect((await queue.getJobLogs(String(works.id))).logs).toEqual([carried(text)]);
    },
  );

  it.each(odd)('%s as a deduplication id and in options of the user', async (_, id) => {
    const queue = stage.queue();
    const opts = { deduplication: { id }, mine: { [id]: id } };
    const [one, two] = [await queue.add('job', 1, opts), await queue.add('job', 2, opts)];
    expect(two.id).toBe(one.id);
    expect(await queue.getDeduplicationJobId(id)).toBe(one.id);
    const found = await fetchJob(queue, one.id);
    expect(JSON.stringify((found.opts as unknown as typeof opts).mine)).toBe(JSON.stringify(opts.mine));
    expect(found.deduplicationId).toBe(carried(id));
    expect(await queue.removeDeduplicationKey(id)).toBe(1);
  });

  it('very deep data and results arrive', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => job.data as unknown),
      ['completed'],
    );
    const job = await queue.add('deep', nested(DEEP));
    await log.get('completed', 1, WAIT_MS);
    const found = await fetchJob(queue, job.id);
    expect(JSON.stringify(found.data)).toBe(JSON.stringify(nested(DEEP)));
    expect(JSON.stringify(found.returnvalue)).toBe(JSON.stringify(nested(DEEP)));
  });

  it('very deep options of the user arrive', async () => {
    const queue = stage.queue();
    const opts = { mine: nested(DEEP), attempts: 3 };
    const job = await queue.add('deep', {}, opts);
    const found = await fetchJob(queue, job.id);
    expect(found.opts.attempts).toBe(3);
    expect(JSON.stringify((found.opts as typeof opts).mine)).toBe(JSON.stringify(opts.mine));
  });

  it('data that is deeper than JSON.stringify goes rejects the add alone', async () => {
    const queue = stage.queue();
    await expect(queue.add('deep', nested(10_000))).rejects.toThrow(RangeError);
    await queue.add('job', {});
    expect(await queue.getWaitingCount()).toBe(1);
  });
});
