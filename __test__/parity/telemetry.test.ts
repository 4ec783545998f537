// What a telemetry library is told: spans, their attributes and parents, and figures of jobs.
import { SpanKind } from 'bullmq';
import { describe, expect, it } from 'vitest';
import type { JobsOptions, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { TestTelemetry, type TestSpan } from '../support/telemetry.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: telemetry', ({ lib }) => {
  const stage = useStage(lib);

  /** Names as they are told, without the queue's. */
  const operations = (telemetry: TestTelemetry): string[] => telemetry.names.map((name) => name.split(' ')[0]);

  /** Attributes that are the operation's own. */
  function own(span: TestSpan): Record<string, unknown> {
    const { 'bullmq.queue.name': queue, 'bullmq.queue.operation': operation, ...rest } = span.attributes;
    expect(queue).toBe(stage.queueName);
    expect(operation).toBe(span.name.split(' ')[0]);
    for (const key of Object.keys(rest)) if (rest[key] === undefined) delete rest[key];
    return rest;
  }

  describe('of a queue', () => {
    it('add is a span, and its context travels with the job', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      const job = await queue.add('paint', 1);
      const [span] = telemetry.spans;
      expect(span).toMatchObject({
        name: `add ${queue.name}.paint`,
        kind: SpanKind.PRODUCER,
        ended: 1,
        exceptions: [],
      });
      expect(own(span)).toEqual({ 'bullmq.job.name': 'paint', 'bullmq.job.id': '1' });
      const metadata = JSON.stringify({ span: span.name });
      expect(job.opts.telemetry).toEqual({ metadata });
      expect((await queue.getJob('1'))?.opts.telemetry).toEqual({ metadata });
    });

    it('addJob is for subclasses with a span of their own: it makes none', async () => {
      class Traced extends lib.Queue {
        override async add(name: string, data: unknown) {
          return await this.trace(SpanKind.PRODUCER, 'enqueue', this.name, (_span, metadata) =>
            this.addJob(name, data, { telemetry: { metadata } }),
          );
        }
      }
      const telemetry = new TestTelemetry();
      const { name, opts } = stage.queue({ telemetry });
      const queue = new Traced(name, opts);
      const job = await queue.add('paint', 1);
      expect(operations(telemetry)).toEqual(['enqueue']);
      expect(job.opts.telemetry).toEqual({ metadata: JSON.stringify({ span: `enqueue ${name}` }) });
      await queue.close();
    });

    it('add is a span around addJob, which sees the context', async () => {
      const seen: unknown[] = [];
      class Seeing extends lib.Queue {
        protected override addJob(...args: [name: string, data: unknown, opts?: JobsOptions]) {
          seen.push(args[2]?.telemetry);
          return super.addJob(...args);
        }
      }
      const { name, opts } = stage.queue({ telemetry: new TestTelemetry() });
      const queue = new Seeing(name, opts);
      await queue.add('paint', 1);
      expect(seen).toEqual([{ metadata: JSON.stringify({ span: `add ${name}.paint` }) }]);
      await queue.close();
    });

    it('add replaces metadata that the caller brings', async () => {
      const queue = stage.queue({ telemetry: new TestTelemetry() });
      const job = await queue.add('paint', 1, { telemetry: { metadata: 'mine' } });
      expect(job.opts.telemetry).toEqual({ metadata: JSON.stringify({ span: `add ${queue.name}.paint` }) });
    });

    it('add keeps the context to itself when told', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      const job = await queue.add('paint', 1, { telemetry: { omitContext: true } });
      expect(job.opts.telemetry).toEqual({ omitContext: true });
      expect((await queue.getJob('1'))?.opts.telemetry).toEqual({ omitContext: true });
      expect(operations(telemetry)).toEqual(['add']);
    });

    it('what an operation throws is recorded, and its span ends', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      await expect(queue.add('paint', 1, { priority: 1.5 })).rejects.toThrow('Priority should not be float');
      expect(telemetry.spans).toMatchObject([{ exceptions: ['Priority should not be float'], ended: 1 }]);
    });

    it('addBulk is one span; its context travels with the jobs that bring none', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      const jobs = await queue.addBulk([
        { name: 'a', data: 1 },
        { name: 'b', data: 1, opts: { telemetry: { metadata: 'mine' } } },
        { name: 'c', data: 1, opts: { telemetry: { omitContext: true } } },
      ]);
      const [span] = telemetry.spans;
      expect(span).toMatchObject({ name: `addBulk ${queue.name}`, kind: SpanKind.PRODUCER, ended: 1 });
      expect(own(span)).toEqual({ 'bullmq.job.bulk.names': ['a', 'b', 'c'], 'bullmq.job.bulk.count': 3 });
      expect(jobs.map((job) => job.opts.telemetry?.metadata || undefined)).toEqual([
        JSON.stringify({ span: span.name }),
        'mine',
        undefined,
      ]);
      expect(jobs[2].opts.telemetry?.omitContext).toBe(true);
    });

    it.each<[string, (queue: Queue) => Promise<unknown>, Record<string, unknown>, SpanKind?]>([
      ['pause', (queue) => queue.pause(), {}],
      ['resume', (queue) => queue.resume(), {}],
      ['rateLimit', (queue) => queue.rateLimit(5), { 'bullmq.queue.rate.limit': 5 }],
      ['drain', (queue) => queue.drain(), { 'bullmq.queue.drain.delay': false }],
      ['trimEvents', (queue) => queue.trimEvents(9), { 'bullmq.queue.event.max.length': 9 }],
      ['retryJobs', (queue) => queue.retryJobs(), { 'bullmq.queue.options': '{}' }, SpanKind.PRODUCER],
      ['promoteJobs', (queue) => queue.promoteJobs({ count: 5 }), { 'bullmq.queue.options': '{"count":5}' }],
      ['removeDeduplicationKey', (queue) => queue.removeDeduplicationKey('d'), { 'bullmq.job.deduplication.key': 'd' }],
      [
        'remove',
        (queue) => queue.remove('x'),
        { 'bullmq.job.id': 'x', 'bullmq.job.options': '{"removeChildren":true}' },
      ],
      [
        'clean',
        (queue) => queue.clean(7, 5, 'failed'),
        {
          'bullmq.queue.grace': 7,
          'bullmq.job.type': 'failed',
          'bullmq.queue.clean.limit': 5,
          'bullmq.queue.clean.count': 0,
        },
      ],
      ['close', (queue) => queue.close(), {}],
    ])('%s is a span', async (operation, operate, attributes, kind = SpanKind.INTERNAL) => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      await operate(queue);
      expect(telemetry.spans).toMatchObject([{ name: `${operation} ${queue.name}`, kind, ended: 1, events: [] }]);
      expect(own(telemetry.spans[0])).toEqual(attributes);
    });

    it('updateJobProgress is a span', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      await queue.add('paint', 1);
      await queue.updateJobProgress('1', { half: true });
      expect(operations(telemetry)).toEqual(['add', 'updateJobProgress']);
      expect(own(telemetry.spans[1])).toEqual({ 'bullmq.job.id': '1', 'bullmq.job.progress': '{"half":true}' });
    });

    it('obliterate is a span around pause', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      await queue.obliterate();
      expect(operations(telemetry)).toEqual(['obliterate', 'pause']);
    });

    it('recordJobCountsMetric tells the gauge', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      await queue.add('paint', 1);
      await queue.recordJobCountsMetric('waiting', 'active');
      const options = { description: 'Number of jobs in the queue by state', unit: '{jobs}' };
      const of = (state: string, value: number): object => ({
        instrument: 'bullmq.queue.jobs',
        options,
        value,
        attributes: { 'bullmq.queue.name': queue.name, 'bullmq.queue.jobs.state': state },
      });
      expect(telemetry.measures).toEqual([of('waiting', 1), of('active', 0)]);
    });

    it('trace runs what it is given within a span', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      const given = await queue.trace(
        SpanKind.CLIENT,
        'paint',
        '',
        (span, metadata) => {
          span?.setAttribute('mine', 1);
          return [metadata, telemetry.contextManager.active()];
        },
        'source',
      );
      expect(telemetry.spans).toMatchObject([{ name: 'paint', parent: { from: 'source' }, ended: 1 }]);
      expect(own(telemetry.spans[0])).toEqual({ mine: 1 });
      expect(given[1]).toMatchObject({ span: 'paint' });
    });

    it('trace just runs it where there is no telemetry', async () => {
      const given = await stage.queue().trace(SpanKind.CLIENT, 'paint', '', (...told) => told.filter(Boolean));
      expect(given).toEqual([]);
    });
  });

  describe('of a flow producer', () => {
    it('add is a span around one for each job; their contexts travel with the jobs', async () => {
      const telemetry = new TestTelemetry();
      const flows = stage.flowProducer({ telemetry });
      const { queueName } = stage;
      const children = [
        { name: 'brush', queueName, opts: { jobId: 'brush' } },
        { name: 'paint', queueName, opts: { jobId: 'paint', telemetry: { metadata: 'mine' } } },
        { name: 'wall', queueName, opts: { jobId: 'wall', telemetry: { omitContext: true } } },
      ];
      const tree = await flows.add({ name: 'house', queueName, opts: { jobId: 'house' }, children });
      expect(telemetry.names).toEqual([`addFlow ${queueName}`, ...Array<string>(4).fill(`addNode ${queueName}`)]);
      expect(telemetry.spans.every(({ kind, ended }) => kind === SpanKind.PRODUCER && ended === 1)).toBe(true);
      expect(telemetry.spans.map(own)).toEqual([
        { 'bullmq.flow.name': 'house' },
        ...['house', 'brush', 'paint', 'wall'].map((name) => ({ 'bullmq.job.name': name, 'bullmq.job.id': name })),
      ]);
      const told = tree.children!.map(({ job }) => job.opts.telemetry?.metadata || undefined);
      expect(told).toEqual([JSON.stringify({ span: `addNode ${queueName}` }), 'mine', undefined]);
    });

    it('addBulk is a span around one for each job', async () => {
      const telemetry = new TestTelemetry();
      const { queueName } = stage;
      const children = [{ name: 'c', queueName }];
      await stage.flowProducer({ telemetry }).addBulk([
        { name: 'a', queueName },
        { name: 'b', queueName, children },
      ]);
      expect(operations(telemetry)).toEqual(['addBulkFlows', 'addNode', 'addNode', 'addNode']);
      expect(telemetry.spans[0]).toMatchObject({
        name: 'addBulkFlows',
        attributes: { 'bullmq.queue.name': '', 'bullmq.job.bulk.count': 2, 'bullmq.job.bulk.names': 'a,b' },
      });
    });

    it('what is refused is recorded', async () => {
      const telemetry = new TestTelemetry();
      const flows = stage.flowProducer({ telemetry });
      const flow = { name: 'a', queueName: stage.queueName, opts: { priority: 1.5 } };
      await expect(flows.add(flow)).rejects.toThrow('Priority should not be float');
      expect(telemetry.spans).toMatchObject([
        { exceptions: ['Priority should not be float'], ended: 1 },
        { exceptions: ['Priority should not be float'], ended: 1 },
      ]);
    });

    it('a parent with a deduplication id is refused before there is a span', async () => {
      const telemetry = new TestTelemetry();
      const flows = stage.flowProducer({ telemetry });
      const { queueName } = stage;
      const flow = { name: 'a', queueName, opts: { deduplication: { id: 'd' } }, children: [{ name: 'b', queueName }] };
      const refusal = 'Deduplication options cannot be used on flow nodes with children';
      await expect(flows.add(flow)).rejects.toThrow(refusal);
      await expect(flows.addBulk([flow])).rejects.toThrow(refusal);
      expect(telemetry.spans).toEqual([]);
    });
  });

  describe('of a worker', () => {
    it('one that is paused at once takes no job', async () => {
      const ran = { first: 0, second: 0 };
      const first = stage.worker(async () => void ran.first++, { telemetry: new TestTelemetry() });
      await first.pause();
      const second = stage.worker(async () => void ran.second++);
      const log = new EventLog(second, ['completed']);
      await stage.queue().addBulk(Array.from({ length: 20 }, (_, data) => ({ name: 'job', data })));
      await log.get('completed', 20);
      expect(ran).toEqual({ first: 0, second: 20 });
    });

    /** Runs one job to an end; gives the telemetry, which has heard of the worker only. */
    async function runOne(
      processor: (attempt: number) => unknown,
      options: object = {},
    ): Promise<{ telemetry: TestTelemetry; worker: ReturnType<typeof stage.worker> }> {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry: new TestTelemetry() });
      const worker = stage.worker(async (job) => processor(job.attemptsMade), { telemetry, name: 'w', autorun: false });
      await queue.add('paint', 1, options);
      worker.run().catch(() => {});
      return { telemetry, worker };
    }

    const counters = (telemetry: TestTelemetry): string[] =>
      telemetry.measures.map(({ instrument }) => instrument).filter((name) => name !== 'bullmq.job.duration');

    it('a job that completes is a span, within which its processor runs', async () => {
      let active: unknown;
      const { telemetry, worker } = await runOne(() => {
        active = telemetry.contextManager.active();
        return { done: true };
      });
      const span = await telemetry.ended(`process ${stage.queueName}`);
      expect(active).toMatchObject({ span: span.name, from: JSON.stringify({ span: `add ${stage.queueName}.paint` }) });
      expect(span).toMatchObject({
        kind: SpanKind.CONSUMER,
        parent: { from: JSON.stringify({ span: `add ${stage.queueName}.paint` }) },
        events: [['job completed', { 'bullmq.job.result': '{"done":true}' }]],
        exceptions: [],
      });
      expect(own(span)).toEqual({
        'bullmq.worker.id': worker.id,
        'bullmq.worker.name': 'w',
        'bullmq.job.id': '1',
        'bullmq.job.name': 'paint',
        'bullmq.job.attempts.made': 1,
        'bullmq.job.attempt_finished_timestamp': expect.any(Number),
        'bullmq.job.processed.timestamp': expect.any(Number),
      });
      const end = await telemetry.ended(`complete ${stage.queueName}`);
      expect(end.kind).toBe(SpanKind.INTERNAL);
      expect(own(end)).toEqual({ 'bullmq.job.id': '1', 'bullmq.job.name': 'paint' });
      const attributes = {
        'bullmq.queue.name': stage.queueName,
        'bullmq.job.name': 'paint',
        'bullmq.job.state': 'completed',
      };
      expect(telemetry.measures).toEqual([
        {
          instrument: 'bullmq.jobs.completed',
          options: { description: 'Number of jobs completed', unit: '1' },
          value: 1,
          attributes,
        },
        {
          instrument: 'bullmq.job.duration',
          options: { description: 'Job processing duration', unit: 'ms' },
          value: expect.any(Number),
          attributes,
        },
      ]);
    });

    it.each<[string, boolean]>([
      ['completed', false],
      ['failed', false],
      ['completed', true],
      ['failed', true],
    ])('%s is emitted within the span, which ends then (by hand: %s)', async (event, byHand) => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry });
      const worker = stage.worker(
        async () => {
          if (event === 'failed') throw new Error('boom');
        },
        { telemetry, autorun: false },
      );
      const process = `process ${queue.name}`;
      const heard = new Promise((resolve) =>
        worker.on(event as 'completed', () => {
          const ended = telemetry.spans.filter(({ name }) => name === process).map((span) => span.ended);
          resolve([telemetry.contextManager.active().span, ended]);
        }),
      );
      await queue.add('paint', 1);
      if (byHand) await worker.processJob(await worker.getNextJob('token'), 'token', () => false);
      else worker.run().catch(() => {});
      expect(await heard).toEqual([process, [0]]);
      await telemetry.ended(process);
    });

    it('a job that fails, and is tried again at once, then fails for good', async () => {
      const { telemetry } = await runOne(
        () => {
          throw new Error('boom');
        },
        { attempts: 2 },
      );
      const last = await telemetry.ended(`process ${stage.queueName}`, 2);
      await telemetry.ended(`fail ${stage.queueName}`);
      expect(last.events).toEqual([['job failed', { 'bullmq.job.failed.reason': 'boom' }]]);
      expect(last.attributes['bullmq.job.attempts.made']).toBe(2);
      expect(operations(telemetry).filter((name) => !/Stalled/.test(name))).toEqual([
        'process',
        'retry',
        'process',
        'fail',
      ]);
      expect(counters(telemetry)).toEqual(['bullmq.jobs.retried', 'bullmq.jobs.failed']);
    });

    it.each([false, true])(
      'a job that fails without being run has a span, linked to its add (by hand: %s)',
      async (byHand) => {
        const telemetry = new TestTelemetry();
        const queue = stage.queue({ telemetry });
        const worker = stage.worker(
          async (job, token) => {
            await job.moveToWait(token);
            throw new lib.WaitingError();
          },
          { telemetry, autorun: false, maxStartedAttempts: 1 },
        );
        await queue.add('paint', 1);
        const process = `process ${queue.name}`;
        const heard = new Promise((resolve) => {
          worker.on('failed', () => resolve(telemetry.contextManager.active().span));
        });
        if (byHand) {
          for (const token of ['a', 'b']) await worker.processJob(await worker.getNextJob(token), token, () => false);
        } else {
          worker.run().catch(() => {});
        }
        expect(await heard).toBe(process);
        const last = await telemetry.ended(process, 2);
        const reason = 'job started more than allowable limit';
        expect(last.events).toEqual([['job failed', { 'bullmq.job.failed.reason': reason }]]);
        expect(last.parent).toEqual({ from: JSON.stringify({ span: `add ${queue.name}.paint` }) });
        expect(last.attributes).toMatchObject({ 'bullmq.job.id': '1', 'bullmq.job.name': 'paint' });
      },
    );

    it('a job that is tried again after a pause', async () => {
      const { telemetry } = await runOne(
        (attempt) => {
          if (attempt === 0) throw new Error('boom');
        },
        { attempts: 2, backoff: 10 },
      );
      await telemetry.ended(`complete ${stage.queueName}`);
      expect(operations(telemetry).filter((name) => !/Stalled/.test(name))).toEqual([
        'process',
        'delay',
        'process',
        'complete',
      ]);
      expect(counters(telemetry)).toEqual(['bullmq.jobs.delayed', 'bullmq.jobs.completed']);
    });

    it('a job that moves itself', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue();
      const worker = stage.worker(
        async (job, token) => {
          if (job.attemptsStarted > 1) return;
          await job.moveToWait(token);
          throw new lib.WaitingError();
        },
        { telemetry, autorun: false },
      );
      await queue.add('paint', 1);
      worker.run().catch(() => {});
      const first = await telemetry.ended(`process ${queue.name}`);
      await telemetry.ended(`complete ${queue.name}`);
      expect(first).toMatchObject({ events: [], exceptions: [], parent: undefined });
      expect(first.attributes).not.toHaveProperty('bullmq.job.attempts.made');
      expect(counters(telemetry)).toEqual(['bullmq.jobs.waiting', 'bullmq.jobs.completed']);
    });

    it('pause, resume, rateLimit and close are spans', async () => {
      const telemetry = new TestTelemetry();
      const worker = stage.worker(async () => {}, { telemetry, name: 'w', skipStalledCheck: true });
      await worker.waitUntilReady();
      await worker.pause(true);
      await worker.resume();
      await worker.rateLimit(5);
      await worker.close();
      expect(operations(telemetry)).toEqual(['pause', 'resume', 'rateLimit', 'close']);
      const by = { 'bullmq.worker.id': worker.id, 'bullmq.worker.name': 'w' };
      expect(telemetry.spans.map(own)).toEqual([
        { ...by, 'bullmq.worker.do.not.wait.active': true },
        by,
        { 'bullmq.worker.id': worker.id, 'bullmq.worker.rate.limit': 5 },
        { ...by, 'bullmq.worker.force.close': false },
      ]);
      expect(telemetry.spans.every(({ ended, kind }) => ended === 1 && kind === SpanKind.INTERNAL)).toBe(true);
    });

    it.each([
      ['completes', 'complete'],
      ['fails', 'fail'],
      ['is retried', 'retry'],
    ])('a job run by hand that %s has its end in its span', async (name, operation) => {
      const telemetry = new TestTelemetry();
      const worker = stage.worker(
        async () => {
          if (name !== 'completes') throw new Error('boom');
        },
        { telemetry, autorun: false },
      );
      await stage.queue().add('paint', 1, { attempts: name === 'is retried' ? 2 : 1 });
      await worker.processJob(await worker.getNextJob('token'), 'token', () => false);
      const end = await telemetry.ended(`${operation} ${stage.queueName}`);
      expect(end.within).toBe(`process ${stage.queueName}`);
    });

    it('a result that has no JSON form is an exception of its process span', async () => {
      const { telemetry } = await runOne(() => {
        const result: { self?: unknown } = {};
        return (result.self = result);
      });
      const { exceptions } = await telemetry.ended(`process ${stage.queueName}`);
      // BullMQ records the text of the error
      expect(exceptions).toHaveLength(1);
      expect(stage.takeErrors().map(({ message }) => message)).toEqual([
        expect.stringMatching(/^Converting circular structure to JSON/),
      ]);
    });

    it('jobs taken and ended by hand', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue({ telemetry: new TestTelemetry() });
      const worker = stage.worker(null, { telemetry, name: 'w' });
      await queue.add('paint', 1);
      const job = await worker.getNextJob('token');
      await job.moveToCompleted('done', 'token', false);
      expect(operations(telemetry)).toEqual(['getNextJob', 'complete']);
      expect(telemetry.spans[0].parent).toEqual({ from: JSON.stringify({ span: `add ${queue.name}.paint` }) });
      expect(own(telemetry.spans[0])).toEqual({
        'bullmq.worker.id': worker.id,
        'bullmq.worker.name': 'w',
        'bullmq.worker.options': '{"block":true}',
        'bullmq.job.id': '1',
      });
      expect(counters(telemetry)).toEqual(['bullmq.jobs.completed']);
    });

    it('the span of a job ends with its handler, though the worker was closed by force', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue();
      const gates = [stage.gate(), stage.gate()];
      const worker = stage.worker(
        async (job) => {
          await gates[Number(job.id) - 1].opened;
          if (job.name === 'throws') throw new Error('no');
        },
        { telemetry, concurrency: 2 },
      );
      const active = new EventLog(worker, ['active']);
      await queue.addBulk(['returns', 'throws'].map((name) => ({ name, data: {} })));
      await active.get('active', 2);
      await worker.close(true);
      const spans = () => telemetry.spans.filter(({ name }) => name.startsWith('process'));
      expect(spans().map(({ ended }) => ended)).toEqual([0, 0]);
      for (const gate of gates) gate.open();
      await telemetry.ended(`process ${queue.name}`, 2);
      expect(spans().map(({ ended, events }) => [ended, events])).toEqual([
        [1, []],
        [1, []],
      ]);
    });

    it('a job that stalled is told by the scan that found it', async () => {
      const telemetry = new TestTelemetry();
      const queue = stage.queue();
      const dead = stage.worker(() => new Promise(() => {}), { lockDuration: 100, stalledInterval: 100 });
      const active = new EventLog(dead, ['active']);
      await queue.add('paint', 1);
      await active.get('active');
      await dead.close(true);
      const worker = stage.worker(async () => {}, { telemetry, stalledInterval: 100 });
      await new EventLog(worker, ['stalled']).get('stalled');
      const scans = telemetry.spans.filter(({ name, events }) => /^moveStalled/.test(name) && events.length > 0);
      expect(scans.map(({ events }) => events)).toEqual([[['job stalled', { 'bullmq.job.id': '1' }]]]);
      expect(scans[0].attributes['bullmq.worker.stalled.jobs']).toEqual(['1']);
    });
  });
});
