// Figures for Prometheus at /metrics, and a trace for each job: from the request that added it to what its handler did.
import { createServer } from 'node:http';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { MetricsTime, Queue, Worker } from 'bullmq';
import { BullMQOtel } from 'bullmq-otel';

/** Shows spans on the terminal, one a line. Yours go to a collector: OTLPTraceExporter. */
const exporter = {
  export(spans, done) {
    for (const span of spans) {
      const { traceId, spanId } = span.spanContext();
      console.log('span', traceId, spanId, span.parentSpanContext?.spanId ?? '-', span.name);
    }
    done({ code: 0 });
  },
  shutdown: async () => {},
};
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
const tracer = trace.getTracer('example');

const connection = { url: process.env.REDIS_URL ?? 'redis://localhost:6379' };
const telemetry = new BullMQOtel('example');
const orders = new Queue('orders', { connection, telemetry });
// counts what ended and how long it took, for /metrics
const metrics = { maxDataPoints: MetricsTime.ONE_HOUR, latency: true };
const worker = new Worker('orders', pack, { connection, telemetry, metrics, concurrency: 20 });
worker.on('error', (error) => console.error(error.message));

/** Stands in for the work on an order: a span of its own lies within the job's. */
function pack() {
  return tracer.startActiveSpan('pack', async (span) => span.end());
}

const routes = {
  'POST /orders': () =>
    tracer.startActiveSpan('request', async (span) => {
      const { id } = await orders.add('order', {});
      span.end();
      return id;
    }),
  'GET /metrics': () => orders.exportPrometheusMetrics({ service: 'example' }),
};

const server = createServer(async (request, response) => {
  const answer = await routes[`${request.method} ${request.url}`]?.();
  response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'text/plain; version=0.0.4' });
  response.end(`${answer ?? 'not found'}\n`);
});
server.listen(Number(process.env.PORT ?? 3000), () =>
  console.log(`listening http://localhost:${server.address().port}`),
);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, async () => {
    server.close();
    await worker.close();
    await orders.close();
    process.exit();
  });
}
