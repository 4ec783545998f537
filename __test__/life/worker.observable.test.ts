// Processors that give an observable: its last value is the result, its error fails the try, and what ends a run unsubscribes it.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { JobTimeoutError, UnrecoverableError } from '../../src/index.js';
import type { Job, JobsOptions, ObservableLike, WorkerOptions, Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { fetchJob, useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, Gate } from '../support/waiting.js';

type Observer = Parameters<ObservableLike<unknown>['subscribe']>[0];
type Handler = (job: Job, token?: string, signal?: AbortSignal) => unknown;

/** A time that is soon over. */
const SOON_MS = 20;
const NEVER_MS = 3_600_000;
/** Children are processes of their own, which take a while to start. */
const START_MS = 60_000;
const FILE = fileURLToPath(new URL('programs/observable.cjs', import.meta.url));
const ENDS_LATER = (): void => {};

/** The smallest observable: `begin` gives what tears it down. */
class Observable implements ObservableLike<unknown> {
  constructor(private readonly begin: (observer: Observer) => () => void) {}

  subscribe(observer: Observer): { unsubscribe(): void } {
    return { unsubscribe: this.begin(observer) };
  }

  '@@observable'(): this {
    return this;
  }
}

/** Tells values, then its end. */
const of = (...values: unknown[]): Observable =>
  new Observable((observer) => {
    for (const value of values) observer.next(value);
    observer.complete();
    return ENDS_LATER;
  });

/** Tells a value, and never its end. */
class Endless extends Observable {
  readonly subscribed: Gate;
  readonly tornDown: Gate;
  observer: Observer | undefined;

  constructor() {
    super((observer) => {
      this.observer = observer;
      observer.next('first');
      this.subscribed.open();
      return () => this.tornDown.open();
    });
    this.subscribed = new Gate();
    this.tornDown = new Gate();
  }
}

describe('a processor that gives an observable', () => {
  const stage = useStage(chasquimq);

  function worker(handler: Handler | string, opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(handler as never, opts) as unknown as Worker;
  }

  const add = async (name = 'job', opts: JobsOptions = {}, data: unknown = {}): Promise<string> =>
    (await stage.queue().add(name, data, opts)).id!;

  const stored = async (id: string): Promise<Job> => (await fetchJob(stage.queue(), id)) as unknown as Job;

  const logOf = (watched: Worker): EventLog =>
    new EventLog(watched, ['active', 'completed', 'failed', 'progress', 'error']);

  it.each([
    ['gives it at once', () => of(1, 2, 3)],
    ['promises it', () => Promise.resolve(of(1, 2, 3))],
  ])('that %s has its last value as the result', async (_, handler) => {
    const events = stage.globalLog();
    const id = await add();
    const [, result] = await logOf(worker(handler)).get<[Job, number]>('completed');
    expect(result).toBe(3);
    expect((await stored(id)).returnvalue).toBe(3);
    const [{ returnvalue }] = await events.get<[{ returnvalue: unknown }]>('completed');
    expect(returnvalue).toBe(3);
  });

  it('of no value has no result', async () => {
    const id = await add();
    const [, result] = await logOf(worker(() => of())).get<[Job, unknown]>('completed');
    expect(result).toBeUndefined();
    expect((await stored(id)).returnvalue).toBeNull();
  });

  it('waits for its end, and holds the slot until then', async () => {
    await add('endless');
    await add('next');
    const endless = new Endless();
    const log = logOf(worker(({ name }) => (name === 'next' ? 'next' : endless)));
    await endless.subscribed.opened;
    endless.observer!.next('last');
    expect(log.names).toEqual(['active']);
    endless.observer!.complete();
    await log.get('completed', 2);
    expect(log.all<[Job, unknown]>('completed').map(([, result]) => result)).toEqual(['last', 'next']);
  });

  it('fails its try with the error, which counts as one that is thrown', async () => {
    const [again, forGood] = [await add('again', { attempts: 2 }), await add('for good', { attempts: 2 })];
    const handler: Handler = ({ name, attemptsStarted }) =>
      new Observable((observer) => {
        observer.next('before');
        if (name === 'for good') observer.error(new UnrecoverableError('for good'));
        else if (attemptsStarted === 1) observer.error(new Error('once'));
        else observer.complete();
        return ENDS_LATER;
      });
    const log = logOf(worker(handler));
    await log.when('both to end', () => log.all('completed').length === 1 && log.all('failed').length === 2);
    expect(await stored(again)).toMatchObject({ attemptsMade: 2, returnvalue: 'before' });
    expect(await stored(forGood)).toMatchObject({ attemptsMade: 1, failedReason: 'for good', returnvalue: null });
  });

  it('fails its try when it throws as it is subscribed', async () => {
    const id = await add();
    const throws = new Observable(() => {
      throw new Error('not today');
    });
    await logOf(worker(() => throws)).get('failed');
    expect((await stored(id)).failedReason).toBe('not today');
  });

  it('is unsubscribed when the time of its job is over', async () => {
    const id = await add('job', { timeout: SOON_MS });
    const endless = new Endless();
    // takes no signal
    const log = logOf(worker(() => endless));
    const [, error] = await log.get<[Job, Error]>('failed');
    await endless.tornDown.opened;
    expect(error).toBeInstanceOf(JobTimeoutError);
    endless.observer!.complete();
    expect(await stored(id)).toMatchObject({ failedReason: 'Job job took longer than 20 ms', returnvalue: null });
  });

  it('is not subscribed when the time was over before', async () => {
    await add('job', { timeout: SOON_MS });
    const endless = new Endless();
    const handler: Handler = async (_job, _token, signal) => {
      await new Promise((resolve) => signal!.addEventListener('abort', resolve));
      return endless;
    };
    await logOf(worker(handler)).get('failed');
    expect(endless.observer).toBeUndefined();
  });

  it.each([0, NEVER_MS])('is unsubscribed when its job is cancelled, with a ttl of %d', async (ttl) => {
    const id = await add();
    const endless = new Endless();
    const cancelled = worker(() => endless, ttl ? { ttl } : {});
    const log = logOf(cancelled);
    await endless.subscribed.opened;
    expect(cancelled.cancelJob(id, 'no longer wanted')).toBe(true);
    await log.get('failed');
    await endless.tornDown.opened;
    expect((await stored(id)).failedReason).toBe('no longer wanted');
  });

  it('is unsubscribed when somebody cancels it as it begins', async () => {
    const id = await add();
    const tornDown = new Gate();
    const cancelled = worker(
      () =>
        new Observable(() => {
          cancelled.cancelJob(id, 'at once');
          return tornDown.open;
        }),
    );
    await logOf(cancelled).get('failed');
    await tornDown.opened;
  });

  it('fails with what its teardown throws', async () => {
    const id = await add();
    const begun = new Gate();
    const cancelled = worker(
      () =>
        new Observable(() => {
          setImmediate(begun.open);
          return () => {
            throw new Error('torn down badly');
          };
        }),
    );
    const log = logOf(cancelled);
    await begun.opened;
    cancelled.cancelAllJobs();
    await log.get('failed');
    expect((await stored(id)).failedReason).toBe('torn down badly');
  });

  it('is unsubscribed when the worker has to close, and its job goes back', async () => {
    const id = await add();
    const endless = new Endless();
    const closing = worker(() => endless);
    await endless.subscribed.opened;
    await closing.close({ timeout: 0 });
    await endless.tornDown.opened;
    expect(await (await stored(id)).getState()).toBe('waiting');
    expect(await stored(id)).toMatchObject({ attemptsMade: 0 });
  });

  it('is observed for a job that a user takes', async () => {
    const ids = [await add(), await add()];
    const endless = new Endless();
    const manual = worker(({ id }) => (id === ids[0] ? of(1, 2) : endless), { autorun: false });
    const next = await manual.processJob(await manual.getNextJob('mine'), 'mine', () => true);
    expect((await stored(ids[0])).returnvalue).toBe(2);
    const ended = manual.processJob(next as Job, 'mine', () => false);
    await endless.subscribed.opened;
    expect(manual.cancelJob(ids[1], 'enough')).toBe(true);
    await ended;
    await endless.tornDown.opened;
    expect((await stored(ids[1])).failedReason).toBe('enough');
  });

  it('is observed for a batch: its last value is what the call gives', async () => {
    const ids = [await add(), await add()];
    const log = logOf(worker(() => of('first', ['a', 'b']), { batch: { size: 2 } }));
    await log.get('completed', 2);
    expect(await Promise.all(ids.map(async (id) => (await stored(id)).returnvalue as unknown))).toEqual(['a', 'b']);
  });

  it('is observed within the span of its run', async () => {
    await add();
    const telemetry = new TestTelemetry();
    const context: unknown[] = [];
    const handler: Handler = async () => {
      await Promise.resolve();
      return new Observable((observer) => {
        context.push(telemetry.contextManager.active());
        observer.complete();
        return ENDS_LATER;
      });
    };
    await logOf(worker(handler, { telemetry: telemetry as never })).get('completed');
    const [span] = telemetry.spans.filter(({ name }) => name.startsWith('process'));
    expect(context).toEqual([expect.objectContaining({ span: span.name })]);
    expect(span.ended).toBe(1);
  });

  it('is known by its form alone', async () => {
    await add();
    const subscribes = { subscribe: () => ({}), value: 5 };
    const [, result] = await logOf(worker(() => subscribes)).get<[Job, unknown]>('completed');
    expect(result).toBe(subscribes);
  });

  it('fails where what it gives throws when it is looked at', async () => {
    const id = await add();
    const odd = Object.defineProperty({}, 'subscribe', {
      get: () => {
        throw new Error('do not look');
      },
    });
    await logOf(worker(() => odd)).get('failed');
    expect((await stored(id)).failedReason).toBe('do not look');
    stage.takeErrors();
  });

  describe('and is a file', () => {
    it('has its last value as the result', async () => {
      const id = await add('job', {}, ['a', 'b']);
      await logOf(worker(FILE)).get('completed', 1, START_MS);
      expect((await stored(id)).returnvalue).toBe('b');
    });

    it.each(['is cancelled', 'takes too long'])('is unsubscribed when its job %s', async (why) => {
      const cancelled = worker(FILE);
      const log = logOf(cancelled);
      // its child is there then
      await add('job', {}, []);
      await log.get('completed', 1, START_MS);
      const isCancelled = why === 'is cancelled';
      const id = await add('endless', isCancelled ? {} : { timeout: 300 }, []);
      await log.get('progress');
      if (isCancelled) cancelled.cancelJob(id, 'no longer wanted');
      await log.when('its teardown', () => log.all('progress').length === 2);
      await log.get('failed');
      expect(log.all<[Job, string]>('progress').map(([, progress]) => progress)).toEqual([
        'subscribed',
        'unsubscribed',
      ]);
      const reason = isCancelled ? 'no longer wanted' : 'Job endless took longer than 300 ms';
      expect((await stored(id)).failedReason).toBe(reason);
    });
  });
});
