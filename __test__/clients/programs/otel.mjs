// What bullmq-otel tells OpenTelemetry of queues QUEUE and QUEUE-child: spans with their parents across producer and worker, and
// metrics. Says a line for each span, without what differs from run to run.
import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider } from '@opentelemetry/sdk-metrics';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import * as bullmq from 'bullmq';
import { BullMQOtel } from 'bullmq-otel';

const { QUEUE, CONNECTION } = process.env;
const connection = JSON.parse(CONNECTION);
const CHILD = `${QUEUE}-child`;

const exporter = new InMemorySpanExporter();
const measures = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: measures, exportIntervalMillis: 3_600_000 });
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));

const telemetry = new BullMQOtel({ tracerName: 'test', meterName: 'test', version: '1', enableMetrics: true });
const tracer = trace.getTracer('program');
const options = { connection, telemetry };
const queue = new bullmq.Queue(QUEUE, options);
const flows = new bullmq.FlowProducer(options);
const events = new bullmq.QueueEvents(QUEUE, { connection, lastEventId: '0-0' });

async function work(job) {
  // a span of the program's own, which belongs to the job's
  await tracer.startActiveSpan(`work on ${job.name}`, async (span) => span.end());
  if (job.name === 'unsure' && job.attemptsMade === 0) throw new Error('not yet');
  if (job.name === 'bad') throw new Error('no good');
  if (job.name === 'adds') await queue.add('added', {}, { jobId: 'added' });
  return job.data;
}

const workers = [QUEUE, CHILD].map(
  (name) => new bullmq.Worker(name, work, { ...options, name: 'busy', concurrency: 1 }),
);
const end = async (job) => (await job).waitUntilFinished(events).catch(() => {});

await tracer.startActiveSpan('request', async (span) => {
  await end(queue.add('plain', 1, { jobId: 'plain' }));
  for (const job of await queue.addBulk(['x', 'y'].map((jobId) => ({ name: 'bulk', data: jobId, opts: { jobId } })))) {
    await end(job);
  }
  span.end();
});
await end(queue.add('unsure', 2, { jobId: 'unsure', attempts: 2, backoff: 1 }));
await end(queue.add('bad', 3, { jobId: 'bad' }));
await end(queue.add('late', 4, { jobId: 'late', delay: 10 }));
await end(queue.add('adds', 5, { jobId: 'adds' }));
await end(queue.getJob('added'));
await end(queue.add('alone', 6, { jobId: 'alone', telemetry: { omitContext: true } }));
const children = [1, 2].map((n) => ({ name: 'child', queueName: CHILD, data: n, opts: { jobId: `child-${n}` } }));
const flow = { name: 'parent', queueName: QUEUE, data: {}, opts: { jobId: 'parent' }, children };
await end((await flows.add(flow)).job);
await workers[0].pause();
await queue.add('waits', 7, { jobId: 'waits', delay: 3_600_000 });
const late = await queue.getJob('waits');
await late.promote();
await late.remove();
const bad = await queue.getJob('bad');
await bad.retry('failed');
await queue.pause();
await queue.resume();
await queue.drain();
await queue.upsertJobScheduler('hourly', { every: 3_600_000 }, { name: 'tick' });
await queue.removeJobScheduler('hourly');
await queue.clean(0, 100, 'completed');
await queue.obliterate({ force: true });
await Promise.all([...workers, events, flows, queue].map((opened) => opened.close()));

const spans = exporter.getFinishedSpans();
const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
const plain = (text) => text.replaceAll(QUEUE, 'QUEUE').replaceAll(/\d{13}/g, 'TIME');

/** The names of what it lies in, outermost first. */
function path(span) {
  const parent = byId.get(span.parentSpanContext?.spanId);
  return parent ? [...path(parent), span.name] : [span.name];
}

/** Attributes whose values are told apart from run to run. */
const VOLATILE = /timestamp|duration|worker\.id|token|finished|processed|\.id$/;
const attributesOf = (attributes) =>
  Object.entries(attributes)
    .map(([name, value]) => [name, VOLATILE.test(name) && name !== 'bullmq.job.id' ? `a ${typeof value}` : value])
    .sort(([a], [b]) => (a < b ? -1 : 1));

for (const span of spans) {
  const happened = span.events.map(({ name, attributes }) => [name, attributes?.['exception.message']]);
  const told = [path(span).join(' > '), span.kind, span.status.code, attributesOf(span.attributes), happened];
  console.log('span', plain(JSON.stringify(told)));
}
await reader.forceFlush();
for (const { metrics: found } of measures.getMetrics().at(-1).scopeMetrics) {
  for (const { descriptor, dataPoints } of found) {
    for (const { attributes, value } of dataPoints) {
      const amount = typeof value === 'number' ? value : value.count;
      console.log(
        'metric',
        plain(JSON.stringify([descriptor.name, descriptor.unit, attributesOf(attributes), amount])),
      );
    }
  }
}
await reader.shutdown();
