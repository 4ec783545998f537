// bull-board over queues QUEUE and QUEUE-child, with jobs of every kind in them, and OTHER as it is, if there is one. Run with as-bullmq.mjs before it: what the
// board's own code requires as `bullmq` is then the library under test, too.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const { QUEUE, OTHER, CONNECTION } = process.env;
const connection = JSON.parse(CONNECTION);
const require = createRequire(import.meta.url);

const { FlowProducer, Queue, QueueEvents, Worker } = require('bullmq');
const { createBullBoard } = require('@bull-board/api');
const { BullMQAdapter } = require('@bull-board/api/bullMQAdapter');
const { ExpressAdapter } = require('@bull-board/express');

export const queues = [QUEUE, `${QUEUE}-child`, OTHER].flatMap((name) => (name ? new Queue(name, { connection }) : []));
const [queue, children] = queues;
const flows = new FlowProducer({ connection });
const events = new QueueEvents(QUEUE, { connection });
const worker = await fill();
const adapters = queues.map((each) => new BullMQAdapter(each));
const server = await serve();
export const base = `http://127.0.0.1:${server.address().port}`;

/** The board has its flow producer from the queue: it shares the queue's backend. */
export async function hasOurFlows() {
  const board = await adapters[0].getFlowProducer();
  return [board instanceof FlowProducer, board.getBackend() === queue.getBackend()];
}

export async function close() {
  server.close();
  await Promise.all([worker, events, flows, ...queues].map((opened) => opened.close()));
  process.exit();
}

async function serve() {
  const adapter = new ExpressAdapter();
  createBullBoard({ queues: adapters, serverAdapter: adapter });
  const listening = createServer(require('express')().use('/', adapter.getRouter())).listen(0, '127.0.0.1');
  await new Promise((ready) => listening.once('listening', ready));
  return listening;
}

/** Brings the queues into a state with jobs of every kind. */
async function fill() {
  const process = async (job) => {
    await job.log('a line');
    await job.updateProgress({ done: 1 });
    if (job.name === 'bad') throw new Error('no good');
    return { took: job.data };
  };
  const options = { connection, metrics: { maxDataPoints: 60 }, name: 'busy' };
  const workers = [new Worker(QUEUE, process, options), new Worker(children.name, process, options)];
  await events.waitUntilReady();
  const done = await queue.add('good', { a: 1 }, { jobId: 'good' });
  await done.waitUntilFinished(events);
  const bad = await queue.add('bad', {}, { jobId: 'bad' });
  await bad.waitUntilFinished(events).catch(() => {});
  const ended = await flows.add(flow('ended'));
  await ended.job.waitUntilFinished(events);
  await workers[1].close();
  await workers[0].pause();

  await flows.add(flow('open'));
  await queue.add('waits', [1], { jobId: 'waits' });
  await queue.add('late', null, { jobId: 'late', delay: 3_600_000 });
  await queue.add('urgent', 'text', { jobId: 'urgent', priority: 5 });
  await queue.upsertJobScheduler('hourly', { every: 3_600_000 }, { name: 'tick', data: { t: 1 } });
  await queue.setGlobalConcurrency(7);
  await queue.setGlobalRateLimit(10, 1000);
  return workers[0];
}

function flow(id) {
  const child = (n) => ({ name: 'child', queueName: children.name, data: n, opts: { jobId: `${id}-${n}` } });
  return { name: 'parent', queueName: QUEUE, data: {}, opts: { jobId: id }, children: [child('x'), child('y')] };
}
