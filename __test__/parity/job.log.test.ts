// Pins Job#log, clearLogs, keepLogs and Queue#getJobLogs.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: job.log', ({ lib }) => {
  const stage = useStage(lib);

  it('keeps the rows in order and resolves with their number', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    expect([await job.log('one'), await job.log('two'), await job.log('three')]).toEqual([1, 2, 3]);
    expect(await queue.getJobLogs('1')).toEqual({ logs: ['one', 'two', 'three'], count: 3 });
  });

  it('takes the id of a job as a number too', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const id = 1 as unknown as string;
    expect([await queue.addJobLog(id, 'one'), await lib.Job.addJobLog(queue, id, 'two')]).toEqual([1, 2]);
    await queue.updateJobProgress(id, 5);
    expect((await queue.getJob(id))?.progress).toBe(5);
    expect(await queue.getJobLogs(id)).toEqual({ logs: ['one', 'two'], count: 2 });
  });

  it('keeps every character', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    const rows = ['', ' ', 'ünï 日本🚀', 'a\0b', 'line 1\nline 2', '{"json":true}', 'x'.repeat(100_000)];
    for (const row of rows) await job.log(row);
    expect(await queue.getJobLogs('1')).toEqual({ logs: rows, count: rows.length });
  });

  it('of a processor can be read while it runs and after it ended', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.log('working');
      return queue.getJobLogs(job.id ?? '');
    });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    const rows = { logs: ['working'], count: 1 };
    expect((await log.get('completed'))[1]).toEqual(rows);
    expect(await queue.getJobLogs('1')).toEqual(rows);
  });

  it('of all tries stay together', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.log(`try ${job.attemptsStarted}`);
      throw new Error('no');
    });
    const log = new EventLog(worker, ['failed']);
    await queue.add('job', {}, { attempts: 3 });
    await log.get('failed', 3);
    expect((await queue.getJobLogs('1')).logs).toEqual(['try 1', 'try 2', 'try 3']);
  });

  it('of one tick are counted one by one, and what is missing fails alone', async () => {
    const queue = stage.queue();
    const [one, two] = await queue.addBulk([
      { name: 'job', data: 1, opts: { keepLogs: 300 } },
      { name: 'job', data: 2 },
    ]);
    const rows = Array.from({ length: 400 }, (_, i) => `row ${i}`);
    const counts = rows.map((row) => one.log(row));
    const others = Promise.all([two.log('a'), rejection(queue.addJobLog('gone', 'b')), two.log('c')]);
    expect(await Promise.all(counts)).toEqual(rows.map((_, i) => Math.min(i + 1, 300)));
    expect(await others).toEqual([1, expect.objectContaining({ message: expect.stringContaining('Missing key') }), 2]);
    expect(await queue.getJobLogs('1')).toEqual({ logs: rows.slice(100), count: 300 });
    expect((await queue.getJobLogs('2')).logs).toEqual(['a', 'c']);
  });

  it('come before what is called after them in the same tick', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    const [first, , second] = await Promise.all([
      job.log('one'),
      job.clearLogs(),
      job.log('two'),
      job.updateProgress(5),
    ]);
    expect([first, second]).toEqual([1, 1]);
    const [last] = await Promise.all([job.log('three'), job.remove()]);
    expect(last).toBe(2);
  });

  it('keeps the newest rows up to keepLogs', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {}, { keepLogs: 2 });
    expect([await job.log('one'), await job.log('two'), await job.log('three')]).toEqual([1, 2, 2]);
    expect(await queue.getJobLogs('1')).toEqual({ logs: ['two', 'three'], count: 2 });
  });

  it('keeps all rows with a keepLogs of 0', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {}, { keepLogs: 0 });
    expect([await job.log('one'), await job.log('two')]).toEqual([1, 2]);
  });

  it.each([
    [-1, -1, 'Missing key for job 1. addLog', ['b', 'c']],
    [-2, -2, 'Missing lock for job 1. addLog', ['c']],
    [-12, undefined, 'Unknown code -12 error for 1. addLog', []],
  ])('with a keepLogs of %d is told an error, and drops the oldest', async (keepLogs, code, message, logs) => {
    const queue = stage.queue();
    const job = await queue.add('job', {}, { keepLogs });
    for (const row of ['a', 'b']) await queue.addJobLog('1', row);
    const error = await rejection(job.log('c'));
    expect(error.message).toBe(message);
    if (code !== undefined) expect(error).toMatchObject({ code });
    expect(await queue.getJobLogs('1')).toEqual({ logs, count: logs.length });
  });

  it('with a keepLogs below 0 do so one by one', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    for (const row of ['a', 'b', 'c']) await queue.addJobLog('1', row);
    await Promise.all(['d', 'e'].map((row) => rejection(queue.addJobLog('1', row, -2))));
    expect(await queue.getJobLogs('1')).toEqual({ logs: ['e'], count: 1 });
  });

  it.each([2.5, Infinity])('with a keepLogs of %d are stored, and the server refuses the number', async (keepLogs) => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    const calls = [job.log('a'), queue.addJobLog('1', 'b', keepLogs).catch((error: Error) => error), job.log('c')];
    const refused = {
      name: 'ReplyError',
      message: expect.stringContaining('ERR value is not an integer or out of range'),
    };
    expect(await Promise.all(calls)).toEqual([1, expect.objectContaining(refused), 3]);
    expect(await queue.getJobLogs('1')).toEqual({ logs: ['a', 'b', 'c'], count: 3 });
  });

  it('keeps rows of one job apart from those of another in the same bulk', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {} })));
    for (const job of jobs) await job.log(`row of ${String(job.id)}`);
    expect([await queue.getJobLogs('1'), await queue.getJobLogs('2')]).toEqual([
      { logs: ['row of 1'], count: 1 },
      { logs: ['row of 2'], count: 1 },
    ]);
  });

  it('of a job that is gone is rejected with code -1', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    await job.remove();
    expect(await rejection(job.log('late'))).toMatchObject({ message: 'Missing key for job 1. addLog', code: -1 });
  });
});

describe.each(libraries)('$name: queue.getJobLogs', ({ lib }) => {
  const stage = useStage(lib);

  it.each([
    ['all', [], ['a', 'b', 'c', 'd']],
    ['from the second', [1], ['b', 'c', 'd']],
    ['the second and third', [1, 2], ['b', 'c']],
    ['the last two', [-2, -1], ['c', 'd']],
    ['none beyond the end', [7, 9], []],
    ['all, newest first', [0, -1, false], ['d', 'c', 'b', 'a']],
    ['the newest two', [0, 1, false], ['d', 'c']],
    ['the third newest', [2, 2, false], ['b']],
  ] as const)('gives %s, and counts all', async (_, range, logs) => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    for (const row of ['a', 'b', 'c', 'd']) await job.log(row);
    const [start, end, asc] = range;
    expect(await queue.getJobLogs('1', start, end, asc)).toEqual({ logs, count: 4 });
  });

  it('gives none for a job without rows and for an unknown one', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect([await queue.getJobLogs('1'), await queue.getJobLogs('nobody')]).toEqual([
      { logs: [], count: 0 },
      { logs: [], count: 0 },
    ]);
  });
});

describe.each(libraries)('$name: job.clearLogs', ({ lib }) => {
  const stage = useStage(lib);

  it.each([
    [undefined, []],
    [0, []],
    [2, ['c', 'd']],
    [9, ['a', 'b', 'c', 'd']],
    [-1, ['b', 'c', 'd']],
    [-3, ['d']],
    [-9, []],
    ['2' as unknown as number, ['c', 'd']],
    [NaN, []],
  ])('of %s', async (keep, logs) => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    for (const row of ['a', 'b', 'c', 'd']) await job.log(row);
    await job.clearLogs(keep);
    expect(await queue.getJobLogs('1')).toEqual({ logs, count: logs.length });
  });

  it.each([2.5, -0.5, Infinity, 'two' as unknown as number])('of %s is refused by the server', async (keep) => {
    const job = await stage.queue().add('job', {});
    await job.log('a');
    const refused = {
      name: 'ReplyError',
      message: expect.stringContaining('ERR value is not an integer or out of range'),
    };
    expect(await rejection(job.clearLogs(keep))).toMatchObject(refused);
    expect(await stage.queue().getJobLogs('1')).toEqual({ logs: ['a'], count: 1 });
  });

  it('of a job that is gone resolves', async () => {
    const job = await stage.queue().add('job', {});
    await job.remove();
    expect(await job.clearLogs()).toBeUndefined();
  });
});
