// Pins Queue#obliterate: what goes, what refuses, what starts anew.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { connection, keysContaining, redisClient, unlinkContaining } from '../support/redis.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

/** Adds a job whenever it is told to. */
const ADDS = `
  const { Queue } = await import(process.env.LIBRARY);
  const queue = new Queue(process.env.QUEUE, { connection: JSON.parse(process.env.CONNECTION) });
  process.stdin.on('data', () => queue.add('job', {}));`;
/** Once it has run a job: adds two jobs when it is told to, and runs one of them without end. */
const HOLDS = `
  const { Queue, Worker } = await import(process.env.LIBRARY);
  const connection = JSON.parse(process.env.CONNECTION);
  const queue = new Queue(process.env.QUEUE, { connection });
  const run = ({ name }) => (name === 'brief' ? Promise.resolve() : new Promise(() => {}));
  const worker = new Worker(queue.name, run, { connection, drainDelay: 60 });
  worker.once('completed', () => console.log('ready'));
  process.stdin.on('data', async () => {
    await queue.add('job', {});
    await queue.add('job', {});
  });
  await queue.add('brief', {});`;
const NONE = { active: 0, completed: 0, delayed: 0, failed: 0, prioritized: 0, waiting: 0, 'waiting-children': 0 };

describe.each(libraries)('$name: queue.obliterate', ({ name, lib }) => {
  const stage = useStage(lib);

  it('of an empty queue does nothing', async () => {
    const queue = stage.queue();
    await queue.obliterate();
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it('takes null for no options', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    await queue.obliterate(null as unknown as undefined);
    expect(await queue.getJobCounts()).toMatchObject(NONE);
  });

  it('removes jobs in every state and leaves no key behind for good', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.log('a row');
      if (job.name === 'fails') throw new Error('no');
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.add('passes', {});
    await queue.add('fails', {});
    await log.get('failed');
    await worker.close();
    await queue.add('waits', {}, { jobId: 'mine' });
    await queue.add('sleeps', {}, { delay: 60_000 });

    await queue.obliterate();

    expect(await queue.getJobCounts()).toEqual(NONE);
    expect(await queue.getJob('1')).toBeUndefined();
    // What remembers an answered command for a while may stay, when it goes by itself.
    const redis = redisClient();
    const keys = await keysContaining(redis, stage.queueName);
    const lifetimes = await Promise.all(keys.map((key) => redis.ttl(key)));
    await redis.quit();
    expect(keys.filter((_, i) => lifetimes[i] === -1)).toEqual([]);
  });

  it('starts the ids at 1 again', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'job', data: {} })));
    await queue.obliterate();
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it('removes more jobs than it takes at a time', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'job', data: {} })));
    await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'job', data: {}, opts: { delay: 60_000 } })));
    await queue.obliterate({ count: 7 });
    expect(await queue.getJobCounts()).toEqual(NONE);
  });

  it('leaves other queues alone', async () => {
    const queue = stage.queue();
    const other = stage.watch(new lib.Queue(`${stage.queueName}-other`, { connection: { ...connection } }));
    await queue.add('job', {});
    await other.add('job', {});
    await queue.obliterate();
    expect(await other.getJobCounts('waiting')).toEqual({ waiting: 1 });
  });

  it('refuses while a job is active, and removes nothing', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active'],
    );
    await queue.addBulk([1, 2, 3].map(() => ({ name: 'job', data: {} })));
    await log.get('active');
    const error = await rejection(queue.obliterate());
    expect(error.message).toBe('Cannot obliterate queue with active jobs');
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 1, waiting: 2 });
  });

  it('with force removes active jobs too, whose end is then an error event and no more', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker((job) => (job.name === 'held' ? gate.opened : Promise.resolve()));
    const log = new EventLog(worker, ['active', 'completed', 'failed', 'error']);
    await queue.add('held', {});
    await log.get('active');

    await queue.obliterate({ force: true });

    expect(await queue.getJobCounts()).toEqual(NONE);
    gate.open();
    await log.get('error');
    const later = await queue.add('later', {});
    expect(later.id).toBe('1');
    await log.get('completed');
    const messages = new Set(stage.takeErrors().map((error) => error.message));
    expect([...messages]).toEqual(['Missing key for job 1. moveToFinished']);
    expect(log.names.filter((name) => name !== 'error')).toEqual(['active', 'active', 'completed']);
  });

  it('is told of as one pause', async () => {
    const queue = stage.queue();
    const log = new EventLog(stage.events(), ['paused', 'added']);
    await queue.add('before', {});
    await log.get('added');
    await queue.obliterate();
    await log.get('paused');
    // BullMQ's log begins anew, and an entry of the same millisecond would lie before the last one
    const told = Date.now();
    await until('the next millisecond', () => Date.now() > told + 1);
    await queue.add('after', {});
    await log.get('added', 2);
    expect(log.names).toEqual(['added', 'paused', 'added']);
  });

  it('leaves a worker that goes on with what is added then', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => job.name),
      ['completed'],
    );
    await queue.add('before', {});
    await log.get('completed');
    await queue.obliterate();
    await queue.add('after', {});
    expect((await log.get('completed', 2))[1]).toBe('after');
    expect(await queue.getJobCounts('completed')).toEqual({ completed: 1 });
  });

  it('keeps a worker that waits from no job that another process adds behind it, nor do deleted keys', async () => {
    // characters of patterns
    const part = '-[a*?]\\';
    const queue = stage.queue({}, part);
    const log = new EventLog(
      stage.worker(async () => undefined, { drainDelay: 60 }, part),
      ['completed'],
    );
    const adder = stage.keep(Program.startText(ADDS, { env: { LIBRARY: name, QUEUE: queue.name } }));
    const redis = redisClient();
    let completed = 0;
    for (const empty of [
      async () => undefined,
      () => queue.obliterate({ force: true }),
      () => unlinkContaining(redis, stage.queueName),
    ]) {
      await empty();
      adder.tell('add');
      await log.get('completed', ++completed);
    }
    await redis.quit();
  });

  it('keeps a worker that waits from no job that another process adds which runs one itself', async () => {
    const queue = stage.queue();
    const other = stage.keep(Program.startText(HOLDS, { env: { LIBRARY: name, QUEUE: queue.name } }));
    await other.said('ready');
    const log = new EventLog(
      stage.worker(async () => undefined, { drainDelay: 60 }),
      ['completed'],
    );
    while (log.names.length === 0) {
      const job = await queue.add('brief', {});
      await until('it to end', async () => (await job.getState()) === 'completed');
    }
    await queue.obliterate({ force: true });
    const before = log.names.length;
    other.tell('add');
    await log.get('completed', before + 1);
  });
});
