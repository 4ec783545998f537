// Pins the spans of FlowProducer, and the context that its jobs carry.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: flow.telemetry', ({ lib }) => {
  const stage = useStage(lib);
  const PRODUCER = 3;

  it('tells a span for the flow, and one for each job', async () => {
    const telemetry = new TestTelemetry();
    const [queueName, top] = [stage.name(), stage.name('top')];
    await stage.flowProducer({ telemetry }).add({
      name: 'parent',
      queueName: top,
      opts: { jobId: 'p' },
      children: [{ name: 'child', queueName, opts: { jobId: 'c' } }],
    });
    expect(telemetry.spans).toMatchObject([
      {
        name: `addFlow ${top}`,
        kind: PRODUCER,
        parent: undefined,
        attributes: { 'bullmq.queue.name': top, 'bullmq.queue.operation': 'addFlow', 'bullmq.flow.name': 'parent' },
        events: [],
        exceptions: [],
        ended: 1,
      },
      ...[
        [top, 'parent', 'p'],
        [queueName, 'child', 'c'],
      ].map(([queue, name, id]) => ({
        name: `addNode ${queue}`,
        kind: PRODUCER,
        parent: undefined,
        attributes: {
          'bullmq.queue.name': queue,
          'bullmq.queue.operation': 'addNode',
          'bullmq.job.name': name,
          'bullmq.job.id': id,
        },
        events: [],
        exceptions: [],
        ended: 1,
      })),
    ]);
  });

  it('tells one span for many flows', async () => {
    const telemetry = new TestTelemetry();
    const queueName = stage.name();
    await stage.flowProducer({ telemetry }).addBulk(['a', 'b'].map((name) => ({ name, queueName })));
    expect(telemetry.spans.map(({ name }) => name)).toEqual([
      'addBulkFlows',
      `addNode ${queueName}`,
      `addNode ${queueName}`,
    ]);
    expect(telemetry.spans[0].attributes).toEqual({
      'bullmq.queue.name': '',
      'bullmq.queue.operation': 'addBulkFlows',
      'bullmq.job.bulk.count': 2,
      'bullmq.job.bulk.names': 'a,b',
    });
  });

  it('jobs carry the context of their own span, what they bring themselves comes first', async () => {
    const telemetry = new TestTelemetry();
    const queueName = stage.name();
    const { job } = await stage.flowProducer({ telemetry }).add({
      name: 'parent',
      queueName,
      opts: { jobId: 'p' },
      children: [
        { name: 'own', queueName, opts: { jobId: 'own', telemetry: { metadata: 'mine' } } },
        { name: 'none', queueName, opts: { jobId: 'none', telemetry: { omitContext: true } } },
      ],
    });
    const queue = stage.queue();
    const carried = async (id: string) => (await fetchJob(queue, id)).opts.telemetry?.metadata || undefined;
    expect(JSON.parse((await carried('p')) as string)).toMatchObject({ span: `addNode ${queueName}` });
    expect(await carried('own')).toBe('mine');
    expect(await carried('none')).toBeUndefined();
    expect(job.opts.telemetry?.metadata).toBe(await carried('p'));
  });

  it('a worker’s span belongs to that of the job', async () => {
    const telemetry = new TestTelemetry();
    const log = new EventLog(
      stage.worker(async () => 1, { telemetry }),
      ['completed'],
    );
    await stage.flowProducer({ telemetry }).add({ name: 'alone', queueName: stage.name(), opts: { jobId: 'x' } });
    await log.get('completed');
    const job = await fetchJob(stage.queue(), 'x');
    const run = telemetry.spans.find(({ name }) => name === `process ${stage.name()}`);
    expect(run?.parent).toEqual({ from: job.opts.telemetry?.metadata });
  });

  it('records why a flow was refused, with the job and those above it', async () => {
    const telemetry = new TestTelemetry();
    const queueName = stage.name();
    const error = await rejection(
      stage.flowProducer({ telemetry }).add({
        name: 'parent',
        queueName,
        children: [{ name: 'child', queueName, opts: { priority: 1.5 } }],
      }),
    );
    expect(error.message).toBe('Priority should not be float');
    expect(telemetry.spans.map(({ exceptions, ended }) => [exceptions, ended])).toEqual([
      [[error.message], 1],
      [[error.message], 1],
      [[error.message], 1],
    ]);
  });
});
