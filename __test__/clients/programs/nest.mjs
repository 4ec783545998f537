// A Nest application on queues QUEUE and QUEUE-child: processors with worker events, a listener of queue events, a service
// with a queue and a flow producer. Says, list by list, what each of them saw. Decorators are called by hand, as a compiler does.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as nest from '@nestjs/bullmq';
import * as bullmq from 'bullmq';

const { QUEUE, CONNECTION } = process.env;
const connection = JSON.parse(CONNECTION);
const CHILD = `${QUEUE}-child`;
const WORKER_EVENTS = ['active', 'completed', 'failed', 'progress', 'paused', 'resumed', 'error'];
const QUEUE_EVENTS =
  'added waiting active delayed completed failed progress removed duplicated paused resumed waiting-children';
const seen = { worker: [], queue: [], child: [] };

/** A method for each event, each decorated; `note` is told of what happens. */
function listening(Class, decorator, events, note) {
  for (const event of events) {
    const { [event]: method } = { [event]: (...args) => note(event, ...args) };
    Object.defineProperty(Class.prototype, event, { value: method, configurable: true });
    decorator(event)(Class.prototype, event, Object.getOwnPropertyDescriptor(Class.prototype, event));
  }
}

class Mails extends nest.WorkerHost {
  async process(job, token) {
    await job.log(`try ${job.attemptsMade}`);
    await job.updateProgress({ at: job.attemptsMade });
    if (job.name === 'unsure' && job.attemptsMade === 0) throw new Error('not yet');
    if (job.name === 'bad') throw new bullmq.UnrecoverableError('never');
    const children = Object.values(await job.getChildrenValues()).sort();
    return { did: job.data, children, token: typeof token };
  }
}
listening(Mails, nest.OnWorkerEvent, WORKER_EVENTS, (event, first, second) => {
  const job = first?.id ? [first.id, first.name, first.attemptsMade] : first;
  seen.worker.push([event, job, second instanceof Error ? second.message : second]);
});
nest.Processor({ name: QUEUE }, { concurrency: 1, metrics: { maxDataPoints: 60 } })(Mails);

class Children extends nest.WorkerHost {
  async process(job) {
    return job.data;
  }
}
listening(Children, nest.OnWorkerEvent, ['completed'], (event, job, result) =>
  seen.child.push([event, job.id, result]),
);
nest.Processor(CHILD)(Children);

class Listener extends nest.QueueEventsHost {}
listening(Listener, nest.OnQueueEvent, QUEUE_EVENTS.split(' '), (event, told, id) => {
  seen.queue.push([event, told, typeof id]);
});
// from the beginning: BullMQ's hears nothing of what happens before its first read
nest.QueueEventsListener(QUEUE, { lastEventId: '0-0' })(Listener);

class Service {
  constructor(queue, flows, children) {
    Object.assign(this, { queue, flows, children });
  }
}
nest.InjectQueue(QUEUE)(Service, undefined, 0);
nest.InjectFlowProducer('flows')(Service, undefined, 1);
nest.InjectQueue(CHILD)(Service, undefined, 2);
Reflect.defineMetadata('design:paramtypes', [Object, Object, Object], Service);

class Application {}
Module({
  imports: [
    nest.BullModule.forRoot({ connection }),
    nest.BullModule.registerQueue({ name: QUEUE, defaultJobOptions: { removeOnComplete: 50 } }),
    nest.BullModule.registerQueueAsync({ name: CHILD, useFactory: () => ({ defaultJobOptions: { attempts: 2 } }) }),
    nest.BullModule.registerFlowProducer({ name: 'flows' }),
  ],
  providers: [Service, Mails, Children, Listener],
})(Application);
for (const Class of [Service, Mails, Children, Listener]) Injectable()(Class);

const app = await NestFactory.createApplicationContext(Application, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const { queue, flows, children } = app.get(Service);
const mails = app.get(Mails);
const events = app.get(Listener).queueEvents;
await Promise.all([events, mails.worker, queue].map((opened) => opened.waitUntilReady()));

/** Ends with what the job gave, or why it failed. */
const ending = (job) => job.waitUntilFinished(events).catch((error) => error.message);
const endings = [];
const end = async (job) => endings.push(await ending(await job));

await end(queue.add('plain', { to: 'ana' }, { jobId: 'plain' }));
await end(queue.add('unsure', 1, { jobId: 'unsure', attempts: 2, backoff: { type: 'fixed', delay: 10 } }));
await end(queue.add('bad', null, { jobId: 'bad', attempts: 3 }));
await end(queue.add('late', [1], { jobId: 'late', delay: 20 }));
await end(queue.add('plain', 'again', { jobId: 'plain' }));
for (const job of await queue.addBulk(['x', 'y'].map((data) => ({ name: 'bulk', data, opts: { jobId: data } })))) {
  await end(job);
}
const child = (n) => ({ name: 'child', queueName: CHILD, data: n, opts: { jobId: `child-${n}` } });
const flow = { name: 'parent', queueName: QUEUE, data: {}, opts: { jobId: 'parent' }, children: [child(1), child(2)] };
await end((await flows.add(flow)).job);

await queue.pause();
await queue.resume();
await mails.worker.pause();
mails.worker.resume();
await queue.remove('late');
await end(queue.add('last', {}, { jobId: 'last' }));

seen.child.sort(([, a], [, b]) => (a < b ? -1 : 1));
const counts = [await queue.getJobCounts(), await children.getJobCounts()];
const { logs } = await queue.getJobLogs('unsure');
const { data } = await queue.getMetrics('completed');
const opts = (await children.getJob('child-1')).opts;
const classes = [queue instanceof bullmq.Queue, mails.worker instanceof bullmq.Worker, flows.constructor.name];
await app.close();
const closed = mails.worker.closing !== undefined && !mails.worker.isRunning();
const told = { endings, ...seen, counts, logs, metrics: Array.isArray(data), attempts: opts.attempts, classes, closed };
for (const [name, value] of Object.entries(told)) {
  for (const line of Array.isArray(value) ? value : [value]) {
    console.log(
      name,
      JSON.stringify(line)
        .replaceAll(QUEUE, 'QUEUE')
        .replaceAll(/\d{13}/g, 'TIME'),
    );
  }
}
