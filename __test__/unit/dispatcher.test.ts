// Pins how delivered jobs are run and their outcomes told, against an engine that is played by the test.
import { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { Dispatcher } from '../../src/worker/dispatcher.js';
import type { DispatcherOptions, DispatcherOwner } from '../../src/worker/dispatcher-options.js';
import { DelayedError } from '../../src/errors/delayed-error.js';
import { RateLimitError } from '../../src/errors/rate-limit-error.js';
import { UnrecoverableError } from '../../src/errors/unrecoverable-error.js';
import { Job } from '../../src/job/job.js';
import { observeWithin } from '../../src/worker/observe.js';
import { TimeLimits } from '../../src/worker/time-limits.js';
import type { NativeBatch, NativeJobExtra, NativeOthers, WorkerMessage } from '../../src/native/types.js';

interface Flush {
  flush: number;
  handles: number[];
  results: (string | undefined)[];
  /** Tries that failed, then what ended in any other way. */
  others: object[];
}

/** Failed tries as objects. */
function failedTries({ layout, texts }: NativeOthers): object[] {
  const tries: object[] = [];
  for (let at = 0; at < layout.length; at += 5) {
    const [handle, reason, stacktrace, unrecoverable, delay] = layout.subarray(at, at + 5);
    const failed = { handle, kind: 'failed', stacktrace: texts[stacktrace], unrecoverable: unrecoverable === 1 };
    tries.push({ ...failed, ...(reason >= 0 && { reason: texts[reason] }), ...(!isNaN(delay) && { delay }) });
  }
  return tries;
}

/** What became of failed tries, as the engine tells it. */
function failures(...told: [handle: number, state: number, attemptsMade: number, delay: number][]): Float64Array {
  return Float64Array.from(told.flat());
}

/** What the engine does with batches that it delivers (`offers.rs`): an offer's word has its number, the end of its jobs, and the next one. */
class Engine {
  readonly words = new Int32Array(512);
  holdsLease = true;
  heard = 0;
  givenBack = 0;
  readonly held: boolean[] = [];

  offer({ offer, count }: { offer: number; count: number }): void {
    this.words[offer % 512] = ((offer >>> 9) << 24) | (count << 12);
  }

  /** Takes back what is not drawn of an offer. Gives how many jobs are drawn. */
  takeBack(offer: number): number {
    const drawn = this.drawn(offer);
    this.words[offer % 512] = ((offer >>> 9) << 24) | (drawn << 12) | drawn;
    return drawn;
  }

  drawn(offer: number): number {
    return this.words[offer % 512] & 0xfff;
  }
}

function stage(options: Partial<DispatcherOptions> = {}) {
  const owner = Object.assign(new EventEmitter(), { name: 'q', qualifiedName: 'bull:q' });
  const log: string[] = [];
  const errors: unknown[] = [];
  owner.on('active', (job: Job) => log.push(`active ${job.id}`));
  owner.on('completed', (job: Job) => log.push(`completed ${job.id}`));
  owner.on('failed', (job: Job) => log.push(`failed ${job.id}`));
  owner.on('error', (error) => errors.push(error));
  const flushes: Flush[] = [];
  const engine = new Engine();
  const native = {
    words: () => engine.words,
    mayStart: () => engine.holdsLease,
    heard: () => void engine.heard++,
    hold: (held: boolean) => void engine.held.push(held),
    takeBack: () => void engine.givenBack++,
    finish(
      flush: number,
      _now: number,
      handles: Uint32Array,
      lengths: Int32Array,
      text: string,
      others?: NativeOthers | null,
    ) {
      let at = 0;
      const results = [...lengths].map((length) => (length < 0 ? undefined : text.slice(at, (at += length))));
      const ends = others ? [...failedTries(others), ...(others.outcomes ?? [])] : [];
      flushes.push({ flush, handles: [...handles], results, others: ends });
    },
  };
  const observe = observeWithin(undefined);
  const told = { observe, kill: () => false, report: (error: Error) => void errors.push(error) };
  const limits = new TimeLimits({ ttl: undefined, killAfter: Infinity, isToldBegin: false, ...told });
  const dispatcher = new Dispatcher({
    ...{ owner: owner as unknown as DispatcherOwner, native, JobClass: Job, remake: () => undefined },
    ...{ process: () => undefined, concurrency: 1 },
    ownEmit: owner.emit as DispatcherOwner['emit'],
    ...{ acceptsSignal: false, tokenPrefix: 'worker', workerName: 'w' },
    ...{ policy: {}, follow: () => Promise.resolve(new Map()), limits, observe },
    ...options,
  });
  const deliver = dispatcher.deliver.bind(dispatcher);
  dispatcher.deliver = (fetched) => {
    engine.offer(fetched);
    deliver(fetched);
  };
  const acknowledge = (message: WorkerMessage = {}) =>
    dispatcher.acknowledge({ flushed: flushes.length, finishedOn: 300, ...message });
  return { dispatcher, owner, log, errors, flushes, engine, acknowledge };
}

/** `count` jobs with ids from `first`, which is their offer, too; their handles are ten times that. */
function batch(first: number, count: number, opts = '{}', extra?: NativeJobExtra): NativeBatch {
  const layout = new Float64Array(6 * count);
  for (let i = 0; i < count; i++) layout.set([first + i, i === 0 ? 3 : -1, 2, 0, 100, extra ? 0 : -1], 6 * i);
  const text = `job${'{}'.repeat(count)}`;
  const extras = extra ? [extra] : [];
  const base = 10 * first;
  return { base, offer: first, count, processedOn: 200, claim: 2, text, layout, opts: [opts], extras, siblings: [] };
}

/** A tick: everything that needs no I/O has happened. */
const tick = () => new Promise((resolve) => setImmediate(resolve));

describe('running', () => {
  it('keeps to the concurrency, in the order of delivery', async () => {
    const gates: (() => void)[] = [];
    const process = () => new Promise<void>((resolve) => gates.push(resolve));
    const { dispatcher, log } = stage({ concurrency: 2, process });
    dispatcher.deliver(batch(1, 3));
    expect(log).toEqual(['active 1', 'active 2']);
    gates[1]();
    await tick();
    expect(log).toEqual(['active 1', 'active 2', 'active 3']);
  });

  it('reads jobs whose texts are several', async () => {
    const read: unknown[] = [];
    const process = (job: Job): void => void read.push([job.id, job.name, job.data]);
    const { dispatcher } = stage({ concurrency: 4, process });
    const whole = batch(1, 4);
    dispatcher.deliver({ ...whole, text: ['job{}', '{}', '{}{}'] });
    await tick();
    expect(read).toEqual(['1', '2', '3', '4'].map((id) => [id, 'job', {}]));
  });

  it('gives the processor the job, its token and no signal', () => {
    const process = vi.fn();
    const { dispatcher } = stage({ process });
    dispatcher.deliver(batch(1, 1));
    expect(process).toHaveBeenCalledExactlyOnceWith(expect.any(Job), 'worker:2.0', undefined);
    expect(process.mock.calls[0][0]).toMatchObject({
      id: '1',
      token: 'worker:2.0',
      processedBy: 'w',
      processedOn: 200,
    });
  });

  it('starts more when the concurrency is raised', () => {
    const { dispatcher, log } = stage({ process: () => new Promise(() => {}) });
    dispatcher.deliver(batch(1, 3));
    dispatcher.setConcurrency(2);
    expect(log).toEqual(['active 1', 'active 2']);
  });

  it('takes plain values and exceptions like promises', async () => {
    const process = (job: Job) => {
      if (job.id === '2') throw new Error('sync');
      return 5;
    };
    const { dispatcher, flushes } = stage({ process });
    dispatcher.deliver(batch(1, 2));
    await tick();
    expect(flushes).toMatchObject([{ handles: [10], results: ['5'], others: [{ handle: 11, reason: 'sync' }] }]);
  });
});

describe('outcomes', () => {
  it('of a tick travel together, and few do not wait for an answer', async () => {
    const { dispatcher, flushes } = stage({ concurrency: 3 });
    dispatcher.deliver(batch(1, 3));
    await tick();
    dispatcher.deliver(batch(4, 2));
    await tick();
    expect(flushes.map(({ handles }) => handles)).toEqual([
      [10, 11, 12],
      [40, 41],
    ]);
  });

  it('wait for the answer to those before when they would be many', async () => {
    const { dispatcher, flushes, acknowledge } = stage({ concurrency: 15 });
    dispatcher.deliver(batch(1, 15));
    await tick();
    dispatcher.deliver(batch(16, 2));
    await tick();
    expect(flushes.map(({ handles }) => handles.length)).toEqual([15]);
    acknowledge();
    expect(flushes.map(({ handles }) => handles.length)).toEqual([15, 2]);
  });

  it('are announced before the jobs that follow start', async () => {
    const { dispatcher, log, acknowledge } = stage();
    dispatcher.deliver(batch(1, 1));
    await tick();
    acknowledge();
    dispatcher.deliver(batch(2, 1));
    expect(log).toEqual(['active 1', 'completed 1', 'active 2']);
  });

  it('are announced whatever became of the job', async () => {
    const process = (job: Job) => (job.id === '2' ? Promise.reject(new Error('no')) : job.id);
    const { dispatcher, log, acknowledge } = stage({ concurrency: 3, process });
    dispatcher.deliver(batch(1, 3));
    // One flush, or several when the machine takes its time over the tick.
    for (let flush = 0; flush < 3; flush++) {
      await tick();
      acknowledge({ failures: failures([11, 0, 1, 0]) });
    }
    expect(log.slice(3).sort()).toEqual(['completed 1', 'completed 3', 'failed 2']);
  });

  it('are sent though handlers keep the tick from ending', async () => {
    const process = () => {
      const until = performance.now() + 2;
      while (performance.now() < until);
    };
    const { dispatcher, flushes } = stage({ process });
    dispatcher.deliver(batch(1, 10));
    await tick();
    expect(flushes[0].handles.length).toBeLessThan(6);
  });

  it('that were refused are errors, and nothing is announced', async () => {
    const { dispatcher, log, errors, acknowledge } = stage({ concurrency: 2 });
    dispatcher.deliver(batch(1, 2));
    await tick();
    acknowledge({
      rejected: [{ handle: 10, error: { message: 'Missing lock for job 1. moveToFinished', number: -2 } }],
    });
    expect(log).toEqual(['active 1', 'active 2', 'completed 2']);
    expect(errors).toMatchObject([{ message: 'Missing lock for job 1. moveToFinished', code: -2 }]);
  });

  it('update the job', async () => {
    const jobs: Job[] = [];
    const process = (job: Job) => {
      jobs.push(job);
      return job.id === '1' ? 0 : Promise.reject(new Error('why'));
    };
    const { dispatcher, flushes, acknowledge } = stage({ concurrency: 2, process });
    dispatcher.deliver(batch(1, 2));
    await tick();
    expect(flushes[0]).toMatchObject({ handles: [10], results: ['0'] });
    acknowledge({ failures: failures([11, 1, 1, 50]) });
    expect(jobs).toMatchObject([
      { returnvalue: undefined, attemptsMade: 1, finishedOn: 300 },
      { failedReason: 'why', attemptsMade: 1, finishedOn: undefined, delay: 50, stacktrace: [expect.any(String)] },
    ]);
  });

  it('with no JSON form are errors and failures', async () => {
    const { dispatcher, flushes, errors } = stage({ process: () => 1n });
    dispatcher.deliver(batch(1, 1));
    await tick();
    expect(errors).toMatchObject([{ message: 'Do not know how to serialize a BigInt' }]);
    expect(flushes[0].others).toMatchObject([{ kind: 'failed', reason: 'Do not know how to serialize a BigInt' }]);
  });

  it('with long texts travel in calls of their own, one after the other', async () => {
    const text = 'x'.repeat(3_000_000);
    const process = (job: Job) => (job.id === '3' ? Promise.reject(new Error(text)) : job.id === '5' ? 'short' : text);
    const { dispatcher, flushes, acknowledge, log } = stage({ concurrency: 5, process });
    dispatcher.deliver(batch(1, 5, '{"stackTraceLimit":0}'));
    const settled = dispatcher.whenSettled();
    await tick();
    expect(flushes).toHaveLength(1);
    for (let sent = 1; sent <= 4; sent++) {
      acknowledge({ failures: failures([12, 0, 1, 0]) });
      await tick();
      expect(flushes).toHaveLength(Math.min(sent + 1, 4));
    }
    await settled;
    const ends = flushes.map(({ handles, others }) => [
      ...handles,
      ...(others as { handle: number }[]).map((o) => o.handle),
    ]);
    // a promise that rejects settles a tick later than the others
    expect(ends.flat().sort()).toEqual([10, 11, 12, 13, 14]);
    expect(Math.max(...flushes.map(({ results }) => results.join('').length))).toBeLessThan(2 ** 22);
    expect(log.filter((line) => !line.startsWith('active'))).toHaveLength(5);
  });
});

describe('what a processor throws', () => {
  const outcomeOf = async (
    error: unknown,
    opts?: string,
    more?: Partial<DispatcherOptions>,
    extra?: NativeJobExtra,
  ) => {
    const set = stage({ process: () => Promise.reject(error), ...more });
    set.dispatcher.deliver(batch(1, 1, opts, extra));
    await tick();
    return { ...set, outcome: set.flushes[0]?.others[0] };
  };

  it.each([
    [new DelayedError(), { kind: 'moved' }],
    [Object.assign(new Error('x'), { name: 'WaitingError' }), { kind: 'moved' }],
    [Object.assign(new Error('x'), { name: 'WaitingChildrenError' }), { kind: 'moved' }],
    [new RateLimitError(), { kind: 'rateLimited' }],
    [new Error('bullmq:rateLimitExceeded'), { kind: 'rateLimited' }],
    [new RateLimitError('mine'), { kind: 'failed', reason: 'mine' }],
    [new UnrecoverableError('u'), { kind: 'failed', reason: 'u', unrecoverable: true }],
    [Object.assign(new Error('x'), { name: 'UnrecoverableError' }), { unrecoverable: true }],
    [new Error(), { kind: 'failed', reason: '' }],
    [{ message: 'object' }, { kind: 'failed', reason: 'object', stacktrace: '[]' }],
    ['text', { kind: 'failed', stacktrace: '[]' }],
    [undefined, { kind: 'failed', stacktrace: '[]' }],
    [null, { kind: 'failed', stacktrace: '[]' }],
  ])('decides what becomes of the job: %s', async (error, expected) => {
    const { outcome } = await outcomeOf(error);
    expect(outcome).toMatchObject(expected);
    if (!('reason' in expected)) expect(outcome).not.toHaveProperty('reason', undefined);
  });

  const custom = '{"attempts":3,"backoff":{"type":"mine"}}';

  it('waits as long as the custom strategy says', async () => {
    const strategy = vi.fn(() => Promise.resolve(70));
    const error = new Error('x');
    const { outcome } = await outcomeOf(error, custom, { policy: { settings: { backoffStrategy: strategy } } });
    expect(outcome).toMatchObject({ kind: 'failed', delay: 70 });
    expect(strategy).toHaveBeenCalledWith(1, 'mine', error, expect.any(Job));
  });

  it.each([-1, 0])('passes %i of the custom strategy on', async (delay) => {
    const policy = { settings: { backoffStrategy: () => delay } };
    expect((await outcomeOf(new Error('x'), custom, { policy })).outcome).toMatchObject({ delay });
  });

  it.each([
    ['a built-in type', '{"attempts":3,"backoff":{"type":"fixed","delay":5}}', undefined, undefined],
    ['the last attempt', custom, { attemptsMade: 2 }, undefined],
    ['too many starts', custom, { attemptsStarted: 2 }, 2],
  ])('asks no strategy for %s', async (_case, opts, extra, maxStartedAttempts) => {
    const backoffStrategy = vi.fn(() => 1);
    const policy = { maxStartedAttempts, settings: { backoffStrategy } };
    const { outcome } = await outcomeOf(new Error('x'), opts, { policy }, extra);
    expect(backoffStrategy).not.toHaveBeenCalled();
    expect(outcome).not.toHaveProperty('delay');
  });

  it('is let go of when there is no strategy for the type', async () => {
    const { outcome, errors, log } = await outcomeOf(new Error('x'), custom);
    expect(errors).toMatchObject([{ message: expect.stringContaining('Unknown backoff strategy mine.') as string }]);
    expect(outcome).toEqual({ handle: 10, kind: 'moved' });
    expect(log).toEqual(['active 1']);
  });
});

describe('a job that may not run', () => {
  it.each([
    [{ deferredFailure: 'job stalled more than allowable limit' }, undefined, 'job stalled more than allowable limit'],
    [{ attemptsStarted: 3 }, 2, 'job started more than allowable limit'],
  ])('fails without the processor: %j', async (extra, maxStartedAttempts, reason) => {
    const process = vi.fn();
    const { dispatcher, flushes, log } = stage({ process, policy: { maxStartedAttempts } });
    dispatcher.deliver(batch(1, 1, '{"attempts":9}', extra));
    await tick();
    expect(process).not.toHaveBeenCalled();
    expect(log).toEqual(['active 1']);
    expect(flushes[0].others).toMatchObject([{ kind: 'failed', reason, unrecoverable: true }]);
  });
});

describe('drawing', () => {
  const never = () => new Promise(() => {});

  it('takes as many jobs as slots are free', () => {
    const { dispatcher, engine } = stage({ concurrency: 3, process: never });
    dispatcher.deliver(batch(1, 2));
    dispatcher.deliver(batch(3, 5));
    expect([1, 3].map((offer) => engine.drawn(offer))).toEqual([2, 1]);
  });

  it('passes over what the engine has taken back, and says that it is heard', async () => {
    const gates: (() => void)[] = [];
    const process = () => new Promise<void>((resolve) => gates.push(resolve));
    const { dispatcher, engine, log, flushes } = stage({ process });
    dispatcher.deliver(batch(1, 3));
    dispatcher.deliver(batch(4, 1));
    expect([engine.takeBack(1), engine.takeBack(4)]).toEqual([1, 0]);
    gates[0]();
    await tick();
    expect([log, dispatcher.running, dispatcher.left]).toEqual([['active 1'], 0, 0]);
    expect(flushes).toMatchObject([{ handles: [10], others: [] }]);
    expect(engine.heard).toBe(2);
    dispatcher.deliver(batch(6, 1));
    expect(log).toEqual(['active 1', 'active 6']);
  });

  it('takes each job right before it starts, so that the engine can have those behind it', async () => {
    const { dispatcher, engine, log } = stage({
      concurrency: 5,
      process: (job: Job) => (job.id === '3' ? engine.takeBack(1) : undefined),
    });
    dispatcher.deliver(batch(1, 100));
    await tick();
    expect(log).toEqual(['active 1', 'active 2', 'active 3']);
    expect(engine.drawn(1)).toBe(3);
  });

  it('starts nothing under a lease that may be over', () => {
    const { dispatcher, engine, log } = stage({ concurrency: 5, process: never });
    engine.holdsLease = false;
    dispatcher.deliver(batch(1, 2));
    expect([log, dispatcher.left, engine.drawn(1)]).toEqual([[], 0, 0]);
    engine.holdsLease = true;
    dispatcher.deliver(batch(3, 1));
    expect(log).toEqual(['active 3']);
  });

  it('knows the words of offers that have come round', () => {
    const { dispatcher, engine, log } = stage({ concurrency: 5, process: never });
    const later = { ...batch(7, 1), offer: 255 * 512 + 7 };
    dispatcher.deliver(later);
    expect([log, engine.words[7] < 0]).toEqual([['active 7'], true]);
    // not looked at before its word was another's
    const old = { ...batch(9, 1), offer: 9 };
    engine.offer = () => {};
    engine.words[9] = (1 << 24) | (1 << 12);
    dispatcher.deliver(old);
    expect(log).toEqual(['active 7']);
  });
});

describe('pausing', () => {
  const never = () => new Promise(() => {});

  it('leaves what has not started to the engine', async () => {
    const { dispatcher, engine, flushes, log } = stage({ process: never });
    dispatcher.deliver(batch(1, 3));
    dispatcher.pause();
    dispatcher.deliver(batch(4, 1));
    dispatcher.resume();
    dispatcher.deliver(batch(5, 1));
    dispatcher.setConcurrency(2);
    await tick();
    expect([log, flushes]).toEqual([['active 1', 'active 5'], []]);
    expect([1, 4, 5].map((offer) => engine.drawn(offer))).toEqual([1, 0, 1]);
  });

  it('draws no more', async () => {
    let pauseNow = (): void => {};
    const process = (job: Job) => {
      if (job.id === '30') pauseNow();
    };
    const { dispatcher, engine } = stage({ process });
    pauseNow = () => dispatcher.pause();
    dispatcher.deliver(batch(1, 100));
    await tick();
    expect(engine.drawn(1)).toBe(30);
  });

  it('is settled when running jobs are stored', async () => {
    let open = (_value?: unknown): void => {};
    const { dispatcher, acknowledge } = stage({ process: () => new Promise((resolve) => (open = resolve)) });
    const steps: string[] = [];
    dispatcher.deliver(batch(1, 1));
    void dispatcher.whenQuiet().then(() => steps.push('quiet'));
    void dispatcher.whenSettled().then(() => steps.push('settled'));
    await tick();
    expect(steps).toEqual([]);
    open();
    await tick();
    expect(steps).toEqual(['quiet']);
    acknowledge();
    await tick();
    expect(steps).toEqual(['quiet', 'settled']);
  });

  it('forgets all when stopped', async () => {
    let open = (_value?: unknown): void => {};
    const { dispatcher, flushes } = stage({ process: () => new Promise((resolve) => (open = resolve)) });
    dispatcher.deliver(batch(1, 2));
    dispatcher.stop();
    open();
    await tick();
    expect(flushes).toEqual([]);
    await dispatcher.whenSettled();
  });
});

describe('jobs whose time is over', () => {
  it('go back, and their handlers are heard no more', async () => {
    const ends: ((value: string) => void)[] = [];
    const process = () => new Promise((resolve) => ends.push(resolve));
    const { dispatcher, log, errors, flushes, acknowledge } = stage({ process, concurrency: 3 });
    dispatcher.deliver(batch(1, 3));
    ends[0]('in time');
    await tick();
    dispatcher.pause();
    expect(dispatcher.interrupt('over')).toBe(false);
    dispatcher.abandonRunning();
    ends[1]('late');
    await tick();
    acknowledge();
    acknowledge({ flushed: 2 });
    await dispatcher.whenSettled();
    ends[2]('later still');
    await tick();
    expect(flushes).toMatchObject([
      { handles: [10], others: [] },
      { handles: [], others: [11, 12].map((handle) => ({ handle, kind: 'rateLimited' })) },
    ]);
    expect(log).toEqual(['active 1', 'active 2', 'active 3', 'completed 1']);
    expect(errors).toEqual([]);
  });

  it('go back when they throw, and complete when they return', async () => {
    const process = (job: Job, _token: string, signal?: AbortSignal) =>
      new Promise((resolve, reject) => {
        const error = job.id === '2' ? new UnrecoverableError('for good') : new Error(String(signal?.reason));
        signal!.addEventListener('abort', () => (job.id === '1' ? resolve('cleaned up') : reject(error)));
      });
    const { dispatcher, flushes } = stage({ process, concurrency: 3, acceptsSignal: true });
    dispatcher.deliver(batch(1, 3));
    dispatcher.pause();
    expect(dispatcher.interrupt('over')).toBe(true);
    await dispatcher.whenQuiet();
    await tick();
    const failed = { handle: 11, kind: 'failed', reason: 'for good' };
    expect(flushes).toMatchObject([{ handles: [10], others: [failed, { handle: 12, kind: 'rateLimited' }] }]);
  });

  it('do not end by what a strategy answers later', async () => {
    for (const fails of [false, true]) {
      let answers = (_answer: unknown): void => {};
      const backoffStrategy = () => new Promise<number>((resolve) => (answers = resolve as typeof answers));
      const { dispatcher, flushes, errors } = stage({
        process: () => Promise.reject(new Error('boom')),
        policy: { settings: { backoffStrategy } },
      });
      dispatcher.deliver(batch(1, 1, '{"attempts":2,"backoff":{"type":"own"}}'));
      await tick();
      expect(dispatcher.interrupt('over')).toBe(true);
      dispatcher.abandonRunning();
      dispatcher.flush();
      answers(fails ? Promise.reject(new Error('no delay')) : 5);
      await tick();
      expect(flushes).toMatchObject([{ others: [{ handle: 10, kind: 'rateLimited' }] }]);
      expect(errors).toHaveLength(fails ? 1 : 0);
    }
  });
});

describe('cancelling', () => {
  it('aborts the signal of a running job with the reason', async () => {
    const signals: AbortSignal[] = [];
    const process = (_job: Job, _token: string, signal?: AbortSignal) =>
      new Promise((resolve) => {
        signals.push(signal!);
        signal!.addEventListener('abort', resolve);
      });
    const { dispatcher } = stage({ process, acceptsSignal: true });
    dispatcher.deliver(batch(1, 1));
    expect(dispatcher.runningIds()).toEqual(['1']);
    expect(dispatcher.cancel('2')).toBe(false);
    expect(dispatcher.cancel('1', 'why')).toBe(true);
    expect([signals[0].aborted, signals[0].reason]).toEqual([true, 'why']);
    await tick();
    expect(dispatcher.cancel('1')).toBe(false);
  });

  it('has nothing to abort when the processor takes no signal', () => {
    const { dispatcher } = stage({ process: () => new Promise(() => {}) });
    dispatcher.deliver(batch(1, 1));
    expect(dispatcher.cancel('1')).toBe(false);
    dispatcher.cancelAll();
  });
});

describe('jobs that run in batches', () => {
  const process = () => new Promise(() => {});
  const full = { isFull: true, disband: () => {}, goesBack: () => false };

  it('go back at once where they find no room, which others wait for', () => {
    for (const [batches, left, givenBack] of [
      [undefined, 1, 0],
      [full, 0, 1],
    ] as const) {
      const { dispatcher, log, engine } = stage({ batches, concurrency: 3, process });
      dispatcher.deliver(batch(1, 2));
      expect(engine.givenBack).toBe(0);
      // the call has begun with these two
      dispatcher.setConcurrency(2);
      dispatcher.deliver(batch(2, 1));
      expect([log, dispatcher.left, engine.givenBack]).toEqual([['active 1', 'active 2'], left, givenBack]);
    }
  });

  it('go back where a call has begun while the next iteration was made', async () => {
    const iteration: NativeJobExtra = { id: 'repeat:s:5', repeatJobKey: 's' };
    const follow = () => Promise.resolve(new Map());
    const { dispatcher, flushes } = stage({ batches: full, follow, process: () => expect.unreachable() });
    dispatcher.deliver(batch(1, 1, '{"repeat":{"every":5,"count":1}}', iteration));
    await tick();
    expect(flushes).toMatchObject([{ others: [{ handle: 10, kind: 'returned' }] }]);
    expect(dispatcher.running).toBe(0);
  });

  it.each(['resolves', 'rejects'])(
    'go back at a pause while they are held, though what wraps the run %s',
    async (how) => {
      const held: (() => void)[] = [];
      const disband = () => held.splice(0).forEach((end) => end());
      const batches = { isFull: false, disband, goesBack: (job: Job) => job.id === '1' };
      const process = ({ id }: Job) =>
        new Promise<void>((resolve, reject) => {
          if (id === '1') held.push(how === 'resolves' ? resolve : () => reject(new Error('not begun')));
          else resolve();
        });
      const { dispatcher, log, flushes } = stage({ batches, concurrency: 2, process });
      dispatcher.deliver(batch(1, 2));
      await tick();
      dispatcher.pause();
      await dispatcher.whenQuiet();
      dispatcher.flush();
      expect(log).toEqual(['active 1', 'active 2']);
      expect(flushes.flatMap(({ handles, others }) => [...handles, ...others])).toEqual([
        11,
        { handle: 10, kind: 'returned' },
      ]);
    },
  );
});

describe('iterations of schedulers', () => {
  const iteration: NativeJobExtra = { id: 'repeat:s:5', repeatJobKey: 's' };
  const opts = '{"repeat":{"every":5,"count":1}}';
  const none: ReadonlyMap<string, Error> = new Map();

  it('start when they are followed, others at once', async () => {
    let followed = (_failed: ReadonlyMap<string, Error>): void => {};
    const follow = vi.fn(() => new Promise<ReadonlyMap<string, Error>>((resolve) => (followed = resolve)));
    const ran: unknown[] = [];
    const { dispatcher, log } = stage({ follow, concurrency: 9, process: (job) => ran.push(job.id) });
    dispatcher.deliver(batch(1, 1, opts, iteration));
    dispatcher.deliver(batch(2, 1));
    expect(ran).toEqual(['2']);
    expect(follow.mock.calls).toEqual([
      [
        [
          {
            id: 'repeat:s:5',
            scheduler: 's',
            name: 'job',
            opts: { repeat: { every: 5, count: 1 } },
            token: 'worker:2.0',
          },
        ],
      ],
    ]);
    followed(none);
    await tick();
    expect(ran).toEqual(['2', 'repeat:s:5']);
    expect(log.filter((event) => String(event).includes('repeat:s:5'))).not.toEqual([]);
  });

  it('that cannot be followed are let go, and told', async () => {
    const error = new Error('no');
    const follow = () => Promise.resolve(new Map([['repeat:s:5', error]]));
    const { dispatcher, errors, flushes } = stage({ follow, process: () => expect.unreachable() });
    dispatcher.deliver(batch(1, 1, opts, iteration));
    await tick();
    expect(errors).toEqual([error]);
    expect(flushes).toMatchObject([{ others: [{ handle: 10, kind: 'moved' }] }]);
  });

  it('that are not to run now are let go, and nobody is told', async () => {
    const follow = () => Promise.resolve(new Map([['repeat:s:5', null]]));
    const { dispatcher, errors, flushes } = stage({ follow, process: () => expect.unreachable() });
    dispatcher.deliver(batch(1, 1, opts, iteration));
    await tick();
    expect(errors).toEqual([]);
    expect(flushes).toMatchObject([{ others: [{ handle: 10, kind: 'moved' }] }]);
  });

  it('that are not followed yet go back at a pause', async () => {
    let followed = (_failed: ReadonlyMap<string, Error>): void => {};
    const follow = () => new Promise<ReadonlyMap<string, Error>>((resolve) => (followed = resolve));
    const { dispatcher, flushes } = stage({ follow, process: () => expect.unreachable() });
    dispatcher.deliver(batch(1, 2, opts, iteration));
    dispatcher.pause();
    await dispatcher.whenQuiet();
    await tick();
    followed(none);
    await tick();
    expect(flushes).toMatchObject([{ others: [{ handle: 10, kind: 'returned' }] }]);
  });

  it("that have left the worker before they go back are nobody's error", async () => {
    const follow = () => Promise.resolve(new Map([['repeat:s:5', null]]));
    const { dispatcher, errors, acknowledge } = stage({ follow, process: () => expect.unreachable() });
    dispatcher.deliver(batch(1, 1, opts, iteration));
    dispatcher.pause();
    await dispatcher.whenQuiet();
    await tick();
    acknowledge({
      rejected: [{ handle: 10, error: { message: 'Missing key for job repeat:s:5. moveToFinished', number: -1 } }],
    });
    expect(errors).toEqual([]);
  });

  it('that went back at a pause let go of none that came in their place', async () => {
    const follows: ((failed: ReadonlyMap<string, Error>) => void)[] = [];
    const follow = () => new Promise<ReadonlyMap<string, Error>>((resolve) => follows.push(resolve));
    const ran: unknown[] = [];
    const { dispatcher, errors, flushes } = stage({ follow, process: (job) => ran.push(job.id) });
    dispatcher.deliver(batch(1, 1, opts, iteration));
    dispatcher.pause();
    dispatcher.resume();
    dispatcher.deliver(batch(2, 1, opts, { ...iteration, id: 'repeat:s:10' }));
    follows[0](new Map([['repeat:s:5', new Error('no')]]));
    await tick();
    expect([ran, errors]).toEqual([[], []]);
    follows[1](none);
    await tick();
    expect([ran, errors]).toEqual([['repeat:s:10'], []]);
    expect(flushes).toMatchObject([{ others: [{ handle: 10, kind: 'returned' }] }, { handles: [20], others: [] }]);
  });
});
