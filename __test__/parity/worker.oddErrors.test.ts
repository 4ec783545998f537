// Pins what becomes of a job whose processor throws, returns or leaves behind what cannot be looked at: where nobody can tell how
// it ended it stays active, until it is recovered as stalled, and its worker goes on.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { BackoffStrategy, Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

type Process = (job: Job) => unknown;

const oddity = (): never => {
  throw new RangeError('oddity');
};
const boom = (): never => {
  throw new Error('boom');
};
const throws = (thrown: unknown) => (): never => {
  throw thrown;
};
const withMember = (member: string, value: unknown): Error => Object.assign(new Error('boom'), { [member]: value });
const withGetter = (member: string, get: () => unknown): Error =>
  Object.defineProperty(new Error('boom'), member, { get });
/** Gives `value` the first times it is asked, then throws. */
const wearsOut = (value: unknown, times: number) => (): unknown => (times-- > 0 ? value : oddity());

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** Every trap of it throws. */
const trapped = (target: object): object => new Proxy(target, new Proxy({}, { get: () => oddity }));

function circle(): object {
  const circle: Record<string, unknown> = {};
  return (circle.circle = circle);
}

/** Changes its job, then ends as `end` does. */
function changing(
  change: (job: Record<string, unknown> & { opts: Record<string, unknown> }) => void,
  end: Process,
): Process {
  return (job) => {
    change(job as unknown as Parameters<typeof change>[0]);
    return end(job);
  };
}

const done = (): string => 'done';

/** What leaves a job active, and the number of `error` events that tell of it. */
const UNTELLABLE: Record<string, [Process, errors: number, backoffStrategy?: BackoffStrategy]> = {
  'an error whose message throws': [throws(withGetter('message', oddity)), 1],
  'an error whose message throws when it is read again': [throws(withGetter('message', wearsOut('boom', 1))), 1],
  'an error whose stack throws': [throws(withGetter('stack', oddity)), 1],
  'an error whose name throws': [throws(withGetter('name', oddity)), 1],
  'a proxy whose traps throw': [throws(trapped({})), 1],
  'a proxy of an error whose traps throw': [throws(trapped(new Error('boom'))), 1],
  'a revoked proxy': [throws(revoked()), 1],
  'a promise of a revoked proxy': [() => Promise.reject(revoked()), 1],
  'a thenable that rejects with a revoked proxy': [
    () => ({ then: (_: unknown, no: Process) => no(revoked() as Job) }),
    1,
  ],
  'a stack that is a BigInt': [throws(withMember('stack', 1n)), 1],
  'a stack that refers to itself': [throws(withMember('stack', circle())), 1],
  'a stack with a toJSON that throws': [throws(withMember('stack', { toJSON: oddity })), 1],
  'a message that is a symbol': [throws(withMember('message', Symbol('boom'))), 1],
  'a message whose toString throws': [throws(withMember('message', { toString: oddity })), 1],
  'a message without a prototype': [throws(withMember('message', Object.create(null))), 1],
  'no options, and a result': [changing((job) => (job.opts = null as never), done), 2],
  'no options, and an error': [changing((job) => (job.opts = undefined as never), boom), 1],
  'options that are a revoked proxy, and a result': [changing((job) => (job.opts = revoked() as never), done), 2],
  'options that are a revoked proxy, and an error': [changing((job) => (job.opts = revoked() as never), boom), 1],
  'a backoff that is a revoked proxy': [
    changing(({ opts }) => Object.assign(opts, { attempts: 2, backoff: revoked() }), boom),
    1,
  ],
  'a stackTraceLimit that is a BigInt': [changing(({ opts }) => (opts.stackTraceLimit = 1n), boom), 1],
  'a frozen job, and a result': [changing(Object.freeze, done), 2],
  'a frozen job, and an error': [changing(Object.freeze, boom), 1],
  'a job without a prototype, and a result': [changing((job) => Object.setPrototypeOf(job, null), done), 2],
  'a job without a prototype, and an error': [changing((job) => Object.setPrototypeOf(job, null), boom), 1],
  'attemptsMade that is a BigInt': [changing((job) => (job.attemptsMade = 1n), boom), 1],
  'a failedReason that cannot be set': [
    changing((job) => void Object.defineProperty(job, 'failedReason', { get: oddity }), boom),
    1,
  ],
  'a stacktrace that is no array': [changing((job) => (job.stacktrace = 'odd'), boom), 1],
  'a stacktrace that is frozen': [changing((job) => (job.stacktrace = Object.freeze(['odd'])), boom), 1],
  'a stacktrace with a BigInt': [changing((job) => (job.stacktrace = [1n]), boom), 1],
  'a strategy that throws': [boom, 1, oddity],
  'a strategy that rejects': [boom, 1, () => Promise.reject(new Error('odd'))],
  'a strategy that gives a thenable that throws': [boom, 1, () => ({ then: oddity }) as never],
  'a strategy that gives what is no number': [boom, 1, () => ({ valueOf: oddity, toString: oddity }) as never],
};

describe.each(libraries)('$name: worker.oddErrors', ({ lib }) => {
  const stage = useStage(lib);

  afterEach(() => vi.restoreAllMocks());

  describe.each(['a worker that runs', 'jobs taken by hand'] as const)('%s', (how) => {
    it('lets go of jobs of which nobody can tell how they ended, and goes on', async () => {
      const queue = stage.queue();
      const names = Object.keys(UNTELLABLE);
      const errors = new Map<string, Error[]>();
      let current = '';
      const process = async (job: Job): Promise<unknown> => {
        if (job.stalledCounter > 0) return 'again';
        errors.set((current = job.name), []);
        return UNTELLABLE[job.name]?.[0](job) ?? 'last';
      };
      const backoffStrategy: BackoffStrategy = (...args) => (UNTELLABLE[current]?.[2] ?? oddity)(...args);
      // jobs are let go of for a whole lease: long enough to run them all before the first comes back
      const worker = stage.worker(how === 'a worker that runs' ? process : async (job) => process(job), {
        ...{ lockDuration: 4_000, stalledInterval: 200, settings: { backoffStrategy } },
        autorun: how === 'a worker that runs',
      });
      worker.on('error', (error) => errors.get(current)?.push(error));
      const log = new EventLog(worker, ['completed', 'failed', 'stalled']);
      const opts: JobsOptions = { attempts: 2, backoff: { type: 'mine' } };
      const isTried = (name: string): boolean => UNTELLABLE[name]?.[2] !== undefined;
      await queue.addBulk(names.map((name) => ({ name, data: {}, opts: isTried(name) ? opts : {} })));
      await queue.add('last', {});
      if (how === 'jobs taken by hand') {
        for (let taken; (taken = await worker.getNextJob('token', { block: false }));) {
          expect(await worker.processJob(taken, 'token', () => false)).toBeUndefined();
        }
        await worker.startStalledCheckTimer();
      }
      await log.get('completed');
      expect(Object.fromEntries([...errors].map(([name, { length }]) => [name, length]))).toEqual({
        ...Object.fromEntries(names.map((name) => [name, UNTELLABLE[name]?.[1]])),
        last: 0,
      });
      expect(await queue.getJobCountByTypes('active')).toBe(names.length);
      await log.when('all to be recovered', () => log.all('stalled').length === names.length);
      expect(log.all('failed')).toEqual([]);
      stage.takeErrors();
    });
  });

  /** Runs one job, and gives how it ended: result or reason, with the messages of the `error` events. */
  async function run(process: Process, opts: JobsOptions = {}): Promise<[end: unknown, errors: string[], Job]> {
    const queue = stage.queue();
    const { id } = await queue.add('job', { a: 1 }, opts);
    const worker = stage.worker(async (job) => (job.attemptsStarted > 1 ? 'again' : process(job)));
    const log = new EventLog(worker, ['completed', 'failed', 'drained']);
    await log.get('drained');
    const [told] = log.entries.slice(-2);
    const end = told?.args[1];
    const errors = stage.takeErrors().map(({ message }) => message);
    return [end instanceof Error ? end.message : end, errors, await fetchJob(queue, id)];
  }

  it.each<[string, Process, reason: RegExp, errors: number]>([
    ['a BigInt', () => 1n, /^Do not know how to serialize a BigInt$/, 1],
    ['what refers to itself', circle, /^Converting circular structure/, 1],
    ['what has a toJSON that throws', () => ({ toJSON: oddity }), /^oddity$/, 1],
    ['a revoked proxy', revoked, /^Cannot perform 'get' on a proxy that has been revoked$/, 0],
    ['a proxy whose traps throw', () => trapped({}), /^oddity$/, 0],
    ['a thenable that throws', () => ({ then: oddity }), /^oddity$/, 0],
    ['a thenable that cannot be read', () => Object.defineProperty({}, 'then', { get: oddity }), /^oddity$/, 0],
  ])('a processor that returns %s fails its job', async (_, process, reason, errors) => {
    const [end, emitted, job] = await run(process);
    expect(end).toMatch(reason);
    expect(emitted).toEqual(errors === 0 ? [] : [end]);
    expect([job.failedReason, job.attemptsMade, await job.getState()]).toEqual([end, 1, 'failed']);
  });

  it.each([
    ['stack', /failedReason/],
    ['message', /^oddity$/],
    ['name', /^oddity$/],
  ])('of a frozen job, and an error whose %s throws, what is met first is told', async (member, told) => {
    const queue = stage.queue();
    const worker = stage.worker(changing(Object.freeze, throws(withGetter(member, oddity))) as () => Promise<unknown>);
    const log = new EventLog(worker, ['error']);
    await queue.add('job', {});
    const [error] = await log.get<[Error]>('error');
    expect(error.message).toMatch(told);
    expect(stage.takeErrors()).toEqual([error]);
  });

  it('a thenable counts once, whatever else it says', async () => {
    const then = (yes: (value: unknown) => void, no: Process): never => {
      yes(1);
      yes(2);
      no(new Error('odd') as unknown as Job);
      return oddity();
    };
    expect((await run(() => ({ then }))).slice(0, 2)).toEqual([1, []]);
  });

  it("a promise's own `then` is not asked", async () => {
    const process = (): unknown => Object.assign(Promise.resolve('own'), { then: oddity });
    const queue = stage.queue();
    const worker = stage.worker(process as () => Promise<unknown>);
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.add('job', {});
    await log.when('its end', () => log.entries.length > 0);
    expect(log.entries.map(({ event, args }) => [event, args[1]])).toEqual([['completed', 'own']]);
  });

  it('a stack that is an object is stored as it is at each failure', async () => {
    const queue = stage.queue();
    const stack = { failures: 0 };
    const error = withMember('stack', stack);
    const worker = stage.worker(async () => {
      stack.failures += 1;
      throw error;
    });
    const log = new EventLog(worker, ['failed']);
    const ids: string[] = [];
    for (let jobs = 1; jobs <= 3; jobs += 1) {
      ids.push(String((await queue.add('job', {})).id));
      await log.get('failed', jobs);
    }
    const stored = await Promise.all(ids.map(async (id) => (await fetchJob(queue, id)).stacktrace));
    expect(stored).toEqual([[{ failures: 1 }], [{ failures: 2 }], [{ failures: 3 }]]);
  });

  it('a backoff of null is none', async () => {
    const [end, errors, job] = await run(
      changing(({ opts }) => (opts.backoff = null), boom),
      { attempts: 2, backoff: 9e9 },
    );
    expect([end, errors, job.attemptsMade]).toEqual(['again', [], 2]);
  });

  it('a job that is sealed or frozen can be read', async () => {
    for (const close of [Object.seal, Object.freeze]) {
      stage.queueName += '-';
      const queue = stage.queue();
      const read: unknown[] = [];
      const worker = stage.worker(async (job) => {
        close(job);
        (job.data as { b?: number }).b = 2;
        job.opts.delay = 3;
        read.push(job.data, job.opts.delay, job.opts.attempts, job.returnvalue, job.stacktrace);
      });
      const log = new EventLog(worker, ['active']);
      await queue.add('job', { a: 1 }, { attempts: 5 });
      await log.get('active');
      await worker.close();
      expect(read).toEqual([{ a: 1, b: 2 }, 3, 5, null, []]);
      stage.takeErrors();
    }
  });

  it.each(['active', 'completed', 'failed', 'error'] as const)(
    'what a listener of `%s` throws stops nothing',
    async (event) => {
      vi.spyOn(console, 'error').mockImplementation(() => {}); // where what listeners of `error` throw is printed
      const queue = stage.queue();
      await queue.addBulk(['odd', 'fails', 'done', 'done'].map((name) => ({ name, data: {} })));
      const worker = stage.worker(async (job) => (job.name === 'fails' ? boom() : job.name === 'odd' ? 1n : 'done'));
      let thrown = 0;
      worker.on(event, () => {
        thrown++;
        oddity();
      });
      const log = new EventLog(worker, ['drained']);
      await log.get('drained');
      expect(await queue.getJobCounts('completed', 'failed', 'active')).toEqual({ completed: 2, failed: 2, active: 0 });
      expect(thrown).toBe({ active: 4, completed: 2, failed: 2, error: 2 }[event]);
      stage.takeErrors();
    },
  );
});
