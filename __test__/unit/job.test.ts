// Pins what a Job shows of what it holds.
import { RECORD_TRACE } from '../../src/job/members.js';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Job } from '../../src/job/job.js';
import type { NativeJobExtra } from '../../src/native/types.js';
import type { MinimalQueue } from '../../src/job/minimal-queue.js';

const queue = { name: 'q', qualifiedName: 'bull:q' } as MinimalQueue;

const delivered = (extra?: NativeJobExtra, opts = '{}') =>
  Job.fromDelivery(queue, '7', 'name', '{"a":[1]}', opts, 100, 200, 'token', 'worker', extra, undefined);

describe('a job that was just made', () => {
  it('holds what it was given', () => {
    const data = { a: 1 };
    const job = new Job(queue, 'name', data, { delay: 5, priority: 3, backoff: 7, attempts: 2 }, 'id');
    expect(job.data).toBe(data);
    expect(job.opts).toEqual({ delay: 5, priority: 3, backoff: { type: 'fixed', delay: 7 }, attempts: 2 });
    expect(job).toMatchObject({ id: 'id', delay: 5, priority: 3, stacktrace: null, returnvalue: null, progress: 0 });
  });

  it('has no delay unless one was asked for, and options of its own', () => {
    const [one, other] = [new Job(queue, 'n', {}), new Job(queue, 'n', {})];
    expect(one.delay).toBeUndefined();
    expect(one.opts).toEqual({ attempts: 0 });
    one.opts.attempts = 5;
    expect(other.opts.attempts).toBe(0);
  });

  it('takes no delay that is no finite number', async () => {
    for (const delay of [NaN, Infinity, undefined as unknown as number]) {
      await expect(new Job(queue, 'n', {}, {}, 'id').changeDelay(delay)).rejects.toThrow(RangeError);
    }
  });

  it('keeps an undefined data, which is stored as {}', () => {
    const job = new Job(queue, 'n', undefined);
    expect(job.data).toBeUndefined();
    expect(job.asJSON().data).toBe('{}');
  });
});

describe('a job that was delivered', () => {
  it('has the fields of one never touched', () => {
    expect(delivered().toJSON()).toEqual({
      ...{ id: '7', name: 'name', data: { a: [1] }, opts: { attempts: 0 }, progress: 0, returnvalue: null },
      ...{ stacktrace: [], delay: 0, priority: 0, attemptsStarted: 1, attemptsMade: 0, stalledCounter: 0 },
      ...{ timestamp: 100, processedOn: 200, token: 'token', processedBy: 'worker', queueQualifiedName: 'bull:q' },
    });
  });

  it('decodes its data once, and lets it be replaced before', () => {
    const job = delivered();
    expect(job.data).toBe(job.data);
    const other = delivered();
    other.data = 'mine';
    expect(other.data).toBe('mine');
  });

  it('takes over what the record says', () => {
    const job = delivered({
      ...{ id: 'custom', progress: '{"p":1}', returnvalue: '0', stacktrace: '["s"]', failedReason: 'r', delay: 9 },
      ...{ attemptsStarted: 3, attemptsMade: 2, stalledCounter: 1, parent: '{"id":"1","queueKey":"bull:p"}' },
    });
    expect(job).toMatchObject({
      ...{ id: 'custom', progress: { p: 1 }, returnvalue: 0, stacktrace: ['s'], failedReason: 'r', delay: 9 },
      ...{ attemptsStarted: 3, attemptsMade: 2, stalledCounter: 1, parent: { id: '1', queueKey: 'bull:p' } },
    });
  });

  it.each(['null', '0'])('shows progress %s as 0', (progress) => expect(delivered({ progress }).progress).toBe(0));
});

describe('its forms', () => {
  it('as text is that of its fields, without the queue', () => {
    expect(JSON.parse(JSON.stringify(delivered({}, '{"attempts":2}')))).toMatchObject({
      id: '7',
      data: { a: [1] },
      opts: { attempts: 2 },
    });
    expect(JSON.stringify(delivered())).not.toContain('"queue"');
  });

  it('as JSON has texts for its values, and comes back', () => {
    const job = delivered({ stacktrace: '["s"]', failedReason: 'r', returnvalue: '{"x":1}' });
    const json = job.asJSON();
    expect(json).toMatchObject({ data: '{"a":[1]}', stacktrace: '["s"]', failedReason: '"r"', returnvalue: '{"x":1}' });
    expect(Job.fromJSON(queue, json, 'other')).toMatchObject({ id: job.id, data: { a: [1] }, stacktrace: ['s'] });
    expect(job.asJSONSandbox()).toMatchObject({ queueName: 'q', queueQualifiedName: 'bull:q', prefix: 'bull' });
  });

  it('on the console show the data', () => {
    expect(inspect(delivered())).toMatch(/^Job \{[^]*data: \{ a: \[ 1 \] \}/);
  });

  it('include properties that the user added', () => {
    const job = Object.assign(delivered(), { mine: 1 });
    expect(job.toJSON()).toMatchObject({ mine: 1 });
  });
});

describe('a failed try', () => {
  const traces = (limit: number | undefined) => {
    const job = delivered({ stacktrace: '["a","b"]' }, JSON.stringify({ stackTraceLimit: limit }));
    return JSON.parse(job[RECORD_TRACE]({ stack: 'c' })) as unknown;
  };

  it('adds its stack trace, of which the newest are kept', () => {
    expect(traces(undefined)).toEqual(['a', 'b', 'c']);
    expect(traces(2)).toEqual(['b', 'c']);
    expect(traces(0)).toEqual([]);
  });
});
