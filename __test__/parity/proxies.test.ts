// Pins that programs may put a Proxy before an object, or inherit from one: its methods then run with another `this`.
import { describe, expect, it } from 'vitest';
import type { FlowProducer, Queue, QueueEvents } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { connection } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

/** Makes the object when it is first used, as programs do for one that all of their modules share. */
function lazily<T extends object>(make: () => T): T {
  let made: T | undefined;
  return new Proxy({} as T, { get: (_, name) => (made ??= make())[name as keyof T] });
}

/** What stands before an object. */
const WRAPPERS: [string, <T extends object>(make: () => T) => T][] = [
  ['a Proxy that makes it', lazily],
  ['a Proxy around it', (make) => new Proxy(make(), {})],
  ['an object that inherits from it', (make) => Object.create(make()) as ReturnType<typeof make>],
];

describe.each(libraries)('$name: proxies', ({ lib }) => {
  const stage = useStage(lib);

  describe.each(WRAPPERS)('%s', (_, wrap) => {
    const queueOf = (): Queue => wrap(() => stage.queue());

    it('adds jobs and reads them', async () => {
      const queue = queueOf();
      const job = await queue.add('a', { n: 1 });
      const bulk = await queue.addBulk([
        { name: 'b', data: {} },
        { name: 'c', data: {}, opts: { delay: 60_000 } },
      ]);
      expect([job, ...bulk].map(({ id, name }) => [id, name])).toEqual([
        ['1', 'a'],
        ['2', 'b'],
        ['3', 'c'],
      ]);
      expect((await fetchJob(queue, '1')).data).toEqual({ n: 1 });
      expect((await queue.getJobs(['waiting', 'delayed'])).map(({ name }) => name).sort()).toEqual(['a', 'b', 'c']);
      expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 2, delayed: 1 });
      await job.updateData({ n: 2 });
      await bulk[1]?.promote();
      await bulk[0]?.remove();
      expect((await fetchJob(queue, '1')).data).toEqual({ n: 2 });
      expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 2, delayed: 0 });
    });

    it('makes job schedulers', async () => {
      const queue = queueOf();
      const next = await queue.upsertJobScheduler('nightly', { every: 60_000 }, { name: 'run', data: { n: 1 } });
      expect([next.name, next.data]).toEqual(['run', { n: 1 }]);
      expect((await queue.getJobScheduler('nightly'))?.name).toBe('run');
      expect(await queue.getJobSchedulersCount()).toBe(1);
      expect(await queue.removeJobScheduler('nightly')).toBe(true);
      expect(await queue.getJobSchedulers()).toEqual([]);
    });

    it('administers the queue', async () => {
      const queue = queueOf();
      await queue.waitUntilReady();
      await queue.add('a', {});
      await queue.pause();
      expect(await queue.isPaused()).toBe(true);
      await queue.resume();
      expect(await queue.isPaused()).toBe(false);
      await queue.setGlobalConcurrency(3);
      expect(await queue.getGlobalConcurrency()).toBe(3);
      const worker = stage.worker(null);
      await worker.waitUntilReady();
      await until('the worker', async () => (await queue.getWorkers()).length === 1);
      await queue.obliterate();
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
    });

    it('tells the events of a queue', async () => {
      const queue = queueOf();
      const heard: string[] = [];
      queue.on('waiting', ({ name }) => heard.push(name));
      queue.once('paused', () => heard.push('paused'));
      await queue.add('a', {});
      await queue.pause();
      await queue.pause();
      expect(heard).toEqual(['a', 'paused']);
    });

    it('closes a queue', async () => {
      const queue = queueOf();
      await queue.add('a', {});
      await queue.close();
      expect(await stage.queue().getJobCounts('waiting')).toEqual({ waiting: 1 });
    });

    it('adds flows and reads them', async () => {
      const { queueName } = stage;
      const flows: FlowProducer = wrap(() => stage.flowProducer());
      await flows.waitUntilReady();
      const { job, children } = await flows.add({
        name: 'parent',
        queueName,
        children: [{ name: 'child', queueName }],
      });
      const [other] = await flows.addBulk([{ name: 'other', queueName }]);
      expect([job.name, children?.[0]?.job.name, other?.job.name]).toEqual(['parent', 'child', 'other']);
      expect(await job.getState()).toBe('waiting-children');
      const found = await flows.getFlow({ id: job.id as string, queueName });
      expect(found.children?.map((child) => child.job.name)).toEqual(['child']);
      await flows.close();
    });

    it('tells the events of all and of single jobs', async () => {
      const events: QueueEvents = wrap(() => stage.events());
      await events.waitUntilReady();
      const heard: unknown[] = [];
      events.on('added', ({ name }) => heard.push(`${name} added`));
      events.on('completed:2' as 'completed', ({ returnvalue }) => heard.push(returnvalue));
      const queue = stage.queue();
      const worker = stage.worker(async ({ name }) => `${name} done`);
      const log = new EventLog(worker, ['completed']);
      const jobs = [];
      for (const name of ['a', 'b', 'c']) jobs.push(await queue.add(name, {}));
      await log.get('completed', 3);
      await until('the events', () => heard.length === 4);
      expect(heard.filter((text) => text !== 'b done')).toEqual(['a added', 'b added', 'c added']);
      expect(await jobs[2]?.waitUntilFinished(events, 60_000)).toBe('c done');
      const late = await queue.add('late', {}, { delay: 50 });
      expect(await late.waitUntilFinished(events, 60_000)).toBe('late done');
    });

    it('publishes events', async () => {
      const producer = wrap(() =>
        stage.watch(new lib.QueueEventsProducer(stage.queueName, { connection: { ...connection } })),
      );
      const log = new EventLog(stage.events(), ['painted']);
      await producer.publishEvent({ eventName: 'painted', colour: 'red' });
      expect((await log.get<[unknown]>('painted'))[0]).toEqual({ colour: 'red' });
    });
  });

  it('a Proxy around a worker pauses it, resumes it and closes it', async () => {
    const done: string[] = [];
    const worker = new Proxy(
      stage.worker(async ({ name }) => void done.push(name)),
      {},
    );
    const log = new EventLog(worker, ['completed', 'paused', 'resumed', 'closing', 'closed']);
    const queue = stage.queue();
    await worker.waitUntilReady();
    await queue.add('a', {});
    await log.get('completed');
    await worker.pause();
    expect([worker.isPaused(), worker.isRunning()]).toEqual([true, false]);
    await queue.add('b', {});
    await worker.resume();
    expect(worker.isPaused()).toBe(false);
    await log.get('completed', 2);
    worker.concurrency = 2;
    expect(worker.concurrency).toBe(2);
    await worker.close();
    await queue.add('c', {});
    expect(done).toEqual(['a', 'b']);
    expect(log.names.filter((name) => name !== 'completed')).toEqual(['paused', 'resumed', 'closing', 'closed']);
    expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 1, completed: 2 });
  });

  it('a Proxy around a worker without a processor hands out jobs', async () => {
    const worker = new Proxy(stage.worker(null), {});
    const queue = stage.queue();
    await queue.add('a', {});
    const job = await worker.getNextJob('token');
    expect(job?.name).toBe('a');
    await job?.moveToCompleted('done', 'token', false);
    expect(await queue.getJobCounts('completed')).toEqual({ completed: 1 });
  });
});
