// What Jest's users ask of the library LIBRARY (bullmq or chasquimq) that is loaded in the context which Jest makes for a test
// file: what comes from it, errors above all, is of this context's classes, and an error tells where the caller stands.
/* global describe, it, expect, beforeAll, afterAll */
const { randomUUID } = require('node:crypto');
const { FlowProducer, Job, Queue, QueueEvents, QueueEventsProducer, Worker } = require(process.env.LIBRARY);

const connection = JSON.parse(process.env.CONNECTION);
const name = process.env.QUEUE;
const MISSING = '9999';

const queue = new Queue(name, { connection });
const flows = new FlowProducer({ connection });
const events = new QueueEvents(name, { connection });
const custom = new QueueEventsProducer(name, { connection });
const worker = new Worker(name, async (job) => job.data, { connection, autorun: false, metrics: { maxDataPoints: 5 } });
const opened = [worker, events, custom, flows, queue];
/** A job that is not there any more. */
let gone;

beforeAll(async () => {
  await events.waitUntilReady();
  gone = await queue.add('gone', {});
  await gone.remove();
});

afterAll(async () => {
  await queue.obliterate({ force: true });
  for (const object of opened) await object.close();
});

/** What an async function of the user's meets that awaits the call. */
async function met(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

const held = () => queue.add('held', {}, { delay: 60_000 });
const orphan = { parent: { id: MISSING, queue: `bull:${name}` } };

const FAILING = {
  'job.updateData': () => gone.updateData({}),
  'job.updateProgress': () => gone.updateProgress(1),
  'job.log': () => gone.log('row'),
  'job.changePriority': () => gone.changePriority({ priority: 1 }),
  'job.changeDelay': () => gone.changeDelay(1),
  'job.promote': () => gone.promote(),
  'job.retry': () => gone.retry(),
  'job.moveToDelayed': () => gone.moveToDelayed(Date.now() + 1000, 'token'),
  'job.moveToWait': () => gone.moveToWait('token'),
  'job.moveToCompleted': () => gone.moveToCompleted(1, 'token'),
  'job.moveToFailed': () => gone.moveToFailed(new Error('no'), 'token'),
  'job.moveToWaitingChildren': () => gone.moveToWaitingChildren('token'),
  'queue.updateJobProgress': () => queue.updateJobProgress(MISSING, 1),
  'queue.add': () => queue.add('child', {}, orphan),
  'queue.add beside others': () => Promise.all([queue.add('other', {}), queue.add('child', {}, orphan)]),
  'flows.add': () => flows.add({ name: 'child', queueName: name, opts: orphan }),
  'Job.addJobLog': () => Job.addJobLog(queue, MISSING, 'row'),
};

describe.each(Object.entries(FAILING))('an error of %s', (_, call) => {
  it('rejects.toThrow(Error)', () => expect(call()).rejects.toThrow(Error));

  it('is one of this context', async () => {
    const error = await met(call);
    expect([error instanceof Error, Object.getPrototypeOf(error) === Error.prototype]).toEqual([true, true]);
  });

  it('says where the caller stands', async () => {
    expect((await met(call)).stack).toMatch(/\n +at .*met \(.*jest\.probes\.cjs:/);
  });

  it('equals one with its message', async () => {
    const error = await met(call);
    expect(error).toEqual(new Error(error.message));
  });
});

describe('what is of this context', () => {
  const isArray = (value) => expect([value instanceof Array, value.constructor === Array]).toEqual([true, true]);
  const isObject = (value) => expect([value instanceof Object, value.constructor === Object]).toEqual([true, true]);

  const ARRAYS = {
    getJobs: () => queue.getJobs(['delayed']),
    getDelayed: () => queue.getDelayed(),
    getRanges: () => queue.getRanges(['delayed'], 0, 10),
    getWorkers: () => queue.getWorkers(),
    'clients of getWorkers': async () => [].concat((await queue.getWorkers()).map((one) => one)),
    clean: () => queue.clean(0, 100, 'completed'),
    addBulk: () => queue.addBulk([{ name: 'a', data: {}, opts: { delay: 60_000 } }]),
    getJobSchedulers: () => queue.getJobSchedulers(),
    logs: async () => (await queue.getJobLogs((await held()).id)).logs,
    'data of getMetrics': async () => (await queue.getMetrics('completed')).data,
    extendJobLocks: () => worker.extendJobLocks([MISSING], ['token'], 1000),
    'jobs of getFlow': async () => (await flows.getFlow({ id: await family(), queueName: name })).children,
    'unprocessed dependencies': async () => (await (await parent()).getDependencies()).unprocessed,
    'children of getDependencies': async () => (await queue.getDependencies(await family(), 'pending', 0, 9)).items,
  };
  const family = async () => (await tree()).job.id;
  const tree = () =>
    flows.add({ name: 'parent', queueName: name, children: [{ name: 'c', queueName: name, opts: { delay: 60_000 } }] });
  const parent = async () => (await tree()).job;

  it.each(Object.entries(ARRAYS))('array: %s', async (_, call) => isArray(await call()));

  const OBJECTS = {
    getJobCounts: () => queue.getJobCounts(),
    getCountsPerPriority: () => queue.getCountsPerPriority([0, 1]),
    getJobLogs: async () => queue.getJobLogs((await held()).id),
    getMeta: () => queue.getMeta(),
    getMetrics: () => queue.getMetrics('completed'),
    'a worker of getWorkers': async () => (await queue.getWorkers())[0] ?? {},
    getGlobalRateLimit: async () => (await queue.getGlobalRateLimit()) ?? {},
    getDependencies: async () => (await parent()).getDependencies(),
    getDependenciesCount: async () => (await parent()).getDependenciesCount(),
    getChildrenValues: async () => (await parent()).getChildrenValues(),
    'getDependencies of a queue': async () => queue.getDependencies(await family(), 'pending', 0, 9),
    'flows.add': () => tree(),
    'job.data': async () => (await queue.getJob((await queue.add('a', { b: [1] }, { delay: 60_000 })).id)).data,
    'job.opts': async () => (await queue.getJob((await held()).id)).opts,
    'job.toJSON': async () => (await queue.getJob((await held()).id)).toJSON(),
    'job.asJSON': async () => (await held()).asJSON(),
  };
  it.each(Object.entries(OBJECTS))('object: %s', async (_, call) => isObject(await call()));

  const PROMISES = {
    add: () => held(),
    getJob: () => queue.getJob(MISSING),
    getJobCounts: () => queue.getJobCounts(),
    getDelayedCount: () => queue.getDelayedCount(),
    isPaused: () => queue.isPaused(),
    trimEvents: () => queue.trimEvents(1000),
    setGlobalConcurrency: () => queue.setGlobalConcurrency(10),
    removeGlobalConcurrency: () => queue.removeGlobalConcurrency(),
    removeDeduplicationKey: () => queue.removeDeduplicationKey('none'),
    getJobLogs: () => queue.getJobLogs(MISSING),
    waitUntilReady: () => queue.waitUntilReady(),
    updateData: async () => (await held()).updateData(1),
  };
  it.each(Object.entries(PROMISES))('promise: %s', async (_, call) => {
    const promise = call();
    expect(promise).toBeInstanceOf(Promise);
    await promise;
  });
});

describe('values', () => {
  it('toStrictEqual', async () => {
    const job = await queue.add('strict', { a: [1, { b: null }] }, { jobId: randomUUID(), delay: 60_000 });
    await job.log('one');
    await job.updateProgress({ done: [1] });
    expect(await queue.getJobLogs(job.id)).toStrictEqual({ logs: ['one'], count: 1 });
    const stored = await queue.getJob(job.id);
    expect([stored.data, stored.progress]).toStrictEqual([{ a: [1, { b: null }] }, { done: [1] }]);
    expect(await queue.getJobCounts('failed', 'active')).toStrictEqual({ failed: 0, active: 0 });
    expect(await queue.clean(0, 10, 'failed')).toStrictEqual([]);
  });

  it('an event of the user comes with a plain object', async () => {
    const heard = new Promise((resolve) => events.once('mine', (...args) => resolve(args)));
    await custom.publishEvent({ eventName: 'mine', text: 'x' });
    const [args, id] = await heard;
    expect([args, typeof id]).toStrictEqual([{ text: 'x' }, 'string']);
    expect(args.constructor).toBe(Object);
  });

  it('a result, as the one who waits for it and QueueEvents are told', async () => {
    const told = new Map();
    events.on('completed', (args) => told.set(args.jobId, args));
    const job = await queue.add('echo', { a: [1] });
    const done = job.waitUntilFinished(events);
    const run = worker.run();
    expect(await done).toStrictEqual({ a: [1] });
    expect(told.get(job.id)).toStrictEqual({ jobId: job.id, returnvalue: { a: [1] }, prev: 'active' });
    await worker.pause();
    await run;
  });

  it('an error that a processor throws, as `failed` tells it', async () => {
    const failing = new Worker(name, async () => Promise.reject(new RangeError('no')), { connection });
    const [job, error] = await new Promise((resolve) => {
      failing.on('failed', (...args) => args[0].name === 'fails' && resolve(args));
      void queue.add('fails', {});
    });
    expect([error instanceof RangeError, job.failedReason]).toEqual([true, 'no']);
    await failing.close();
    expect((await queue.getJob(job.id)).stacktrace).toBeInstanceOf(Array);
  });
});

it('an error after close', async () => {
  const closed = new Queue(name, { connection });
  await closed.waitUntilReady();
  await closed.close();
  const error = await met(() => closed.getJob('1'));
  expect([error instanceof Error, error.message]).toEqual([true, 'Connection is closed.']);
});

// those that BullMQ hands on are Node's
if (process.env.LIBRARY === 'chasquimq') {
  it('errors of a connection that fails', async () => {
    const lost = new Queue('nowhere', { connection: { host: '127.0.0.1', port: 1, retryStrategy: () => null } });
    const emitted = new Promise((resolve) => lost.once('error', resolve));
    const error = await met(() => lost.waitUntilReady());
    expect([error instanceof Error, (await emitted) instanceof Error]).toEqual([true, true]);
    await lost.close();
  });
}
