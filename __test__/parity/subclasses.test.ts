// Pins that whoever inherits from a class may give members whatever names come to mind: they meet none of ours.
import { describe, expect, it } from 'vitest';
import type { Job, JobJson } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

/** Names that programs give, and that stand for something inside of one library or the other. */
const METHODS = [
  ...['process', 'receive', 'createEngine', 'processWrapped', 'reportStalled', 'reportLostLocks', 'stopRunning'],
  ...['endPaused', 'closeAll', 'closeConnection', 'addNow', 'addTraced', 'addAll', 'withDefaults', 'allWithDefaults'],
  ...['clients', 'queueOf', 'commandsOf', 'targetOf', 'announce', 'announceAll', 'hearsOf', 'noteListener'],
];
const FIELDS = [
  ...['engine', 'dispatcher', 'manual', 'scope', 'follower', 'readiness', 'runs', 'wrapped', 'maxRunning', 'endRun'],
  ...['commands', 'target', 'connection', 'shownBackend', 'schedulers', 'scheduling', 'maxLenEvents', 'queues'],
  ...['lastQueue', 'listenedTo', 'hearsOfJobs', 'traceAttributes', 'acceptsSignal', 'logger', 'service'],
];

describe.each(libraries)('$name: subclasses', ({ lib }) => {
  const stage = useStage(lib);

  /** Lets a class have members of these names, of which nobody expects anything. */
  function withOwnMembers<C extends new (...args: never[]) => object>(Base: C): C {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- what TypeScript asks of a mixin
    const Plain = Base as unknown as new (...args: any[]) => object;
    class Own extends Plain {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
      constructor(...args: any[]) {
        super(...(args as unknown[]));
        for (const field of FIELDS)
          Object.defineProperty(this, field, { value: field, writable: true, configurable: true });
      }
    }
    for (const name of METHODS) {
      const method = () => {
        throw new Error(`${name} is the subclass's own`);
      };
      Object.defineProperty(Own.prototype, name, { value: method, writable: true, configurable: true });
    }
    return Own as unknown as C;
  }

  it('are given the name by which the server knows workers', () => {
    class Named extends lib.Queue {
      get names(): string[] {
        return [this.base64Name(), this.clientName(), this.clientName(':w:own')];
      }
    }
    const queue = stage.keep(new Named(stage.queueName, { connection: { ...connection }, prefix: 'other' }));
    const base64 = Buffer.from(stage.queueName).toString('base64');
    expect(queue.names).toEqual([base64, `other:${base64}`, `other:${base64}:w:own`]);
  });

  it('guard calls: what they reject with is an event, unless there is no connection', async () => {
    class Guarded extends lib.Queue {
      guard<T>(call: () => Promise<T>, ms?: number): Promise<T | undefined> {
        return this.checkConnectionError(call, ms);
      }
    }
    const queue = stage.keep(new Guarded(stage.queueName, { connection: { ...connection } }));
    const log = new EventLog(queue, ['error']);
    const failing = (error: unknown, ms: number) => queue.guard(() => Promise.reject(error), ms);
    expect(await queue.guard(async () => 5)).toBe(5);
    expect(await failing(new Error('mine'), 0)).toBeUndefined();
    const refused = Object.assign(new Error('no server'), { code: 'ECONNREFUSED' });
    const since = performance.now();
    for (const error of [refused, new Error('connect ECONNREFUSED ::1:1'), new Error('Connection is closed.')]) {
      expect(await failing(error, 40)).toBeUndefined();
    }
    expect(performance.now() - since).toBeGreaterThan(100);
    expect(log.all('error').map(([error]) => (error as Error).message)).toEqual(['mine']);
    await queue.close();
    const closed = performance.now();
    expect(await failing(refused, 60_000)).toBeUndefined();
    expect(performance.now() - closed).toBeLessThan(20_000);
  });

  it('see the schedulers once they were needed', async () => {
    class Seen extends lib.Queue {
      get seen(): unknown {
        return this._jobScheduler;
      }
    }
    const queue = stage.keep(new Seen(stage.queueName, { connection: { ...connection } }));
    expect(queue.seen).toBeUndefined();
    const scheduler = await queue.jobScheduler;
    expect(queue.seen).toBe(scheduler);
  });

  it('of jobs say what is kept of an error, and know keys of their queue', async () => {
    class Brief extends lib.Job {
      protected override updateStacktrace(error: Error): void {
        super.updateStacktrace(Object.assign(new Error(error.message), { stack: `brief: ${error.message}` }));
      }

      key(type: string): string {
        return this.toKey(type);
      }
    }
    class Briefly extends lib.Worker {
      protected override get Job(): never {
        return Brief as never;
      }
    }
    const fail = async () => {
      throw new Error('told at length');
    };
    const queue = stage.queue();
    const added = await queue.add('job', {});
    const worker = stage.watch(new Briefly(stage.queueName, fail, { connection: { ...connection } }));
    await new EventLog(worker, ['failed']).get('failed', 1);
    const found = await queue.getJob(added.id as string);
    expect(found?.stacktrace).toEqual(['brief: told at length']);
    expect(new Brief(queue, 'job', {}).key('meta')).toBe(queue.toKey('meta'));
  });

  it('of queues that give jobs in a way of their own do so in lists, too', async () => {
    class Opening extends lib.Queue {
      override async getJob(id: string): Promise<Job | undefined> {
        const job = await super.getJob(id);
        if (job) job.data = { opened: job.data as unknown };
        return id === '2' ? undefined : job;
      }
    }
    const queue = stage.watch(new Opening(stage.queueName, { connection: { ...connection } }));
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data })));
    const data = [{ opened: 1 }, { opened: 3 }];
    expect((await queue.getWaiting()).map((job) => job.data as unknown)).toEqual(data);
    expect((await queue.getJobs(['waiting'], 0, 1, true)).map((job) => job.id)).toEqual(['1']);
  });

  it('of workers make jobs of what is stored', async () => {
    class Maker extends lib.Worker {
      make(data: JobJson, id: string): Job {
        return this.createJob(data, id);
      }
    }
    const { queueName } = stage;
    const added = await stage.queue().add('job', { a: 1 });
    const worker = stage.watch(new Maker(queueName, null, { connection: { ...connection } }));
    const job = worker.make({ ...added.asJSON(), id: undefined } as never, 'x');
    expect(job).toBeInstanceOf(lib.Job);
    expect([job.id, job.name, job.data, job.queueName]).toEqual(['x', 'job', { a: 1 }, queueName]);
  });

  it('may have members of any names', async () => {
    const opts = { connection: { ...connection } };
    const { queueName } = stage;
    const queue = stage.watch(new (withOwnMembers(lib.Queue))(queueName, opts));
    const events = stage.watch(new (withOwnMembers(lib.QueueEvents))(queueName, opts));
    const flows = stage.watch(new (withOwnMembers(lib.FlowProducer))(opts));
    await events.waitUntilReady();
    const told = new EventLog(events, ['completed']);
    const work = async (job: Job) => `${job.name} done`;
    const worker = stage.watch(new (withOwnMembers(lib.Worker))(queueName, work, opts));
    const log = new EventLog(worker, ['completed', 'failed']);

    await queue.add('one', {});
    await queue.addBulk([
      { name: 'two', data: {} },
      { name: 'three', data: {}, opts: { delay: 10 } },
    ]);
    await flows.add({ name: 'parent', queueName, children: [{ name: 'child', queueName, data: {} }] });
    await queue.upsertJobScheduler('scheduler', { every: 60_000 }, { name: 'scheduled' });
    await log.get('completed', 6);
    await told.get('completed', 6);
    expect(log.names).not.toContain('failed');
    expect((await queue.getWorkers()).length).toBe(1);
    await worker.pause();
    await worker.resume();
    await queue.add('seven', {});
    await log.get('completed', 7);
    for (const opened of [worker, flows, events, queue]) await opened.close();
  });

  it('may handle jobs in a method that is called process', async () => {
    const seen: string[] = [];
    class Mailer extends lib.Worker {
      runs = 0;

      constructor(name: string) {
        super(name, async (job: Job) => this.process(job, 'by the constructor'), { connection: { ...connection } });
      }

      async process(job: Job, how: string): Promise<number> {
        seen.push(`${job.name} ${how}`);
        return ++this.runs;
      }
    }
    const worker = stage.watch(new Mailer(stage.queueName));
    const log = new EventLog(worker, ['completed']);
    await stage.queue().addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {} })));
    await log.get('completed', 3);
    expect([seen, worker.runs]).toEqual([['a by the constructor', 'b by the constructor', 'c by the constructor'], 3]);
  });

  it.each(['Queue', 'QueueEvents', 'FlowProducer'] as const)('a %s can be written as JSON', async (name) => {
    const opts = { connection: { ...connection } };
    const { queueName } = stage;
    const openers = {
      Queue: () => new lib.Queue(queueName, opts),
      QueueEvents: () => new lib.QueueEvents(queueName, opts),
      FlowProducer: () => new lib.FlowProducer(opts),
    };
    const opened = stage.keep<{ close(): Promise<unknown> }>(openers[name]());
    expect(JSON.parse(JSON.stringify({ opened }))).toMatchObject({ opened: { opts } });
  });
});
