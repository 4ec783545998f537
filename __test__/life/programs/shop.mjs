// A small program as a user would write it for BullMQ: a shop that takes orders. Its test runs it as it stands, and
// again with the name in the next line changed. What it prints holds nothing that differs between two runs.
import { Job, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq';

const connection = { url: process.env.REDIS_URL };
const ORDERS = `${process.env.QUEUE}-orders`;
const MAILS = `${process.env.QUEUE}-mails`;

/** Notes by topic: the order of topics among each other is left to chance, the order within one is not. */
const notes = new Map();
function note(topic, ...words) {
  if (!notes.has(topic)) notes.set(topic, []);
  notes.get(topic).push(words.map((word) => (typeof word === 'string' ? word : JSON.stringify(word))).join(' '));
}

const orders = new Queue(ORDERS, {
  connection,
  defaultJobOptions: { attempts: 3, backoff: { type: 'exponential', delay: 20 } },
});
const mails = new Queue(MAILS, { connection, defaultJobOptions: { removeOnComplete: true } });
// From the beginning: being ready does not say from when on events are heard.
const orderEvents = new QueueEvents(ORDERS, { connection, lastEventId: '0' });
const mailEvents = new QueueEvents(MAILS, { connection, lastEventId: '0' });
await Promise.all([orderEvents, mailEvents].map((events) => events.waitUntilReady()));

const EVENTS = [
  'added',
  'waiting',
  'delayed',
  'active',
  'progress',
  'completed',
  'failed',
  'retries-exhausted',
  'duplicated',
];
for (const name of EVENTS) {
  orderEvents.on(name, ({ jobId, ...args }) => {
    // The delays of retries and the ids of events depend on the clock.
    if (name === 'delayed') delete args.delay;
    note(`event of order ${jobId}`, name, args);
  });
}

const sent = [];
const mailWorker = new Worker(
  MAILS,
  async (job) => {
    sent.push(`${job.name} to ${job.data.to}`);
    return { sent: true };
  },
  { connection, concurrency: 5 },
);

const orderWorker = new Worker(
  ORDERS,
  async (job, token) => {
    note(
      `run of order ${job.id}`,
      job.name,
      job.data,
      `try ${job.attemptsStarted} of ${job.opts.attempts}`,
      typeof token,
    );
    await job.updateProgress(10);
    await job.log(`looked at by try ${job.attemptsMade + 1}`);
    if (job.data.amount < 0) throw new UnrecoverableError(`bad amount ${job.data.amount}`);
    if (job.data.failures > job.attemptsMade)
      throw new RangeError(`failure ${job.attemptsMade + 1} of ${job.data.failures}`);
    await job.updateData({ ...job.data, paid: true });
    await job.updateProgress({ percent: 100, step: 'paid' });
    await mails.add('receipt', { to: job.data.customer });
    return { total: job.data.amount * 1.19, items: [job.name], note: undefined, at: new Date(0) };
  },
  { connection, concurrency: 3, name: 'till' },
);
orderWorker.on('active', (job, prev) => note(`worker on order ${job.id}`, 'active', prev));
orderWorker.on('progress', (job, progress) => note(`worker on order ${job.id}`, 'progress', progress));
orderWorker.on('completed', (job, result, prev) => note(`worker on order ${job.id}`, 'completed', result, prev));
orderWorker.on('failed', (job, error, prev) =>
  note(`worker on order ${job.id}`, 'failed', error.name, error.message, prev, `after ${job.attemptsMade}`),
);
for (const [name, emitter] of Object.entries({ orders, mails, orderEvents, mailEvents, orderWorker, mailWorker })) {
  emitter.on('error', (error) => note('errors', name, error.message));
}

const plain = await orders.add('book', { customer: 'ann', amount: 10 });
const flaky = await orders.add('lamp', { customer: 'bob', amount: 20, failures: 2 });
const broken = await orders.add('boat', { customer: 'cid', amount: 30, failures: 9 });
const bad = await orders.add('bill', { customer: 'dan', amount: -1 });
const later = await orders.add('sofa', { customer: 'eva', amount: 50 }, { delay: 150, jobId: 'sofa-for-eva' });
note('later', later.id, later.delay, await later.getState());
const again = await orders.add('sofa', { customer: 'eva', amount: 51 }, { jobId: 'sofa-for-eva' });
note('later', again.id, await again.getState(), await orders.getJobCounts('waiting-children', 'prioritized'));

note('results', await plain.waitUntilFinished(orderEvents));
note('results', await flaky.waitUntilFinished(orderEvents));
for (const job of [broken, bad]) {
  const error = await job.waitUntilFinished(orderEvents).catch((reason) => reason);
  note('results', error instanceof Error, error.message);
}
note('results', await later.waitUntilFinished(orderEvents));

for (const { id } of [plain, flaky, broken, bad, later]) {
  const job = await Job.fromId(orders, id);
  const { name, data, opts, progress, returnvalue, failedReason, attemptsMade, attemptsStarted, delay, processedBy } =
    job;
  note(`stored ${id}`, {
    name,
    data,
    progress,
    returnvalue,
    failedReason,
    attemptsMade,
    attemptsStarted,
    delay,
    processedBy,
  });
  // In an order of our own: BullMQ's server sorts them as it pleases.
  note(`stored ${id}`, JSON.stringify(opts, ['attempts', 'backoff', 'delay', 'jobId', 'type']));
  note(
    `stored ${id}`,
    job.stacktrace.map((trace) => trace.split('\n')[0]),
  );
  note(`stored ${id}`, await job.getState(), await job.isCompleted(), await job.isFailed());
  // A worker notes the time and then asks for jobs: one that is added in between is younger than its start, by a little.
  note(`stored ${id}`, job.timestamp <= job.processedOn + 10 && job.processedOn <= job.finishedOn);
  note(`stored ${id}`, await orders.getJobLogs(id));
}
note('counts', await orders.getJobCounts());
note('counts', (await orders.getFailed()).map(({ id }) => id).sort());

const failed = await orders.getJob(broken.id);
await failed.updateData({ customer: 'cid', amount: 30, failures: 0 });
await failed.retry('failed');
note('retried', await failed.waitUntilFinished(orderEvents));
note('retried', await orders.getJobCounts('completed', 'failed', 'waiting', 'active', 'delayed'));
await bad.remove();
note('removed', (await orders.getJob(bad.id)) === undefined, await orders.getFailedCount());

while (sent.length < 4) await new Promise((resolve) => mailWorker.once('completed', resolve));
note('mails', [...sent].sort(), await mails.getJobCounts('completed', 'failed', 'waiting'));

await mails.pause();
await mails.add('advert', { to: 'all' });
note('paused', await mails.isPaused(), await mails.getJobCounts('waiting', 'paused'));
const resumed = new Promise((resolve) => mailEvents.once('completed', resolve));
await mails.resume();
note('paused', Object.keys(await resumed).sort(), sent.at(-1));

await Promise.all([orderWorker.close(), mailWorker.close()]);
await Promise.all([orderEvents.close(), mailEvents.close()]);
await orders.obliterate();
await mails.obliterate();
note('end', await orders.getJobCounts('completed', 'failed'));
await Promise.all([orders.close(), mails.close()]);

for (const topic of [...notes.keys()].sort()) {
  console.log(`${topic}:`);
  for (const words of notes.get(topic)) console.log(`  ${words}`);
}
