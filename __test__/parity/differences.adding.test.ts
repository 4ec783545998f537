// Pins wanted differences in adding jobs, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { QueueOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { connection, server } from '../support/redis.js';
import { sideOf } from '../support/sides.js';
import { fetchJob, useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, rejection } from '../support/waiting.js';

/** A way to the server that stops in the midst of what is sent. */
class SlowWay {
  readonly held: Promise<void>;
  port = 0;
  /** How much may still pass. */
  #rest = Infinity;
  #tellHeld: () => void = () => undefined;
  #later: (() => void)[] = [];

  private constructor(private readonly listener: Server) {
    this.held = new Promise((resolve) => (this.#tellHeld = resolve));
  }

  static async open(): Promise<SlowWay> {
    const listener = createServer((client) => {
      const upstream = connect(server.port, server.host, () => undefined).on('error', () => client.destroy());
      upstream.pipe(client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy()));
      client.on('data', (data) => way.#pass(data, upstream));
    });
    const way = new SlowWay(listener);
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    way.port = (listener.address() as AddressInfo).port;
    return way;
  }

  #pass(data: Buffer, upstream: Socket): void {
    const now = data.subarray(0, this.#rest);
    const later = data.subarray(now.length);
    this.#rest -= now.length;
    upstream.write(now);
    if (later.length === 0) return;
    this.#later.push(() => upstream.write(later));
    this.#tellHeld();
  }

  hold(after: number): void {
    this.#rest = after;
  }

  release(): void {
    this.#rest = Infinity;
    for (const pass of this.#later.splice(0)) pass();
  }

  async close(): Promise<void> {
    this.listener.close();
  }
}

describe.each(libraries)('$name: differences, adding', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);
  /** `code` and class of the rejection, or what the promise gave. */
  const outcome = (promise: Promise<unknown>) =>
    promise.then(
      (value) => ['gave', value],
      (error: Error & { code?: unknown }) => ['rejected', error.code ?? error.name],
    );

  it('add-bulk-missing-parent', async () => {
    const queue = stage.queue();
    const parent = { id: 'none', queue: queue.qualifiedName };
    const jobs = [
      { name: 'child', data: {}, opts: { parent } },
      { name: 'other', data: {} },
    ];
    const told = await outcome(queue.addBulk(jobs).then((added) => added.map(({ id }) => Number(id) < 0)));
    expect(told).toEqual(of({ bullmq: ['gave', [true, false]], chasquimq: ['rejected', -5] }));
    expect((await queue.getJobs()).map((job) => job.name)).toEqual(['other']);
  });

  it('flow-child-ids', async () => {
    const child = { name: 'child', queueName: stage.queueName };
    const { children = [] } = await stage
      .flowProducer()
      .add({ name: 'parent', queueName: stage.queueName, children: [child, child] });
    const [a = '', b = ''] = children.map(({ job }) => job.id);
    expect([a, b].every((id) => /^[\da-f-]{36}$/.test(id)) && a !== b).toBe(true);
    expect(a.slice(0, 18) === b.slice(0, 18)).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('telemetry-of-flow-nodes', async () => {
    const { job } = await stage
      .flowProducer({ telemetry: new TestTelemetry() })
      .add({ name: 'parent', queueName: stage.queueName });
    const stored = await fetchJob(stage.queue(), job.id);
    expect(stored.opts.telemetry?.metadata !== undefined).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it.each([{ priority: NaN }, { delay: Infinity }, { attempts: NaN }])('job-option-numbers: %o', async (opts) => {
    const told = await outcome(
      stage
        .queue()
        .add('job', {}, opts)
        .then(() => 'a job'),
    );
    expect(told[1] === 'RangeError').toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('job-option-number-texts', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { delay: '60000' as unknown as number });
    expect(await (await fetchJob(queue, id)).getState()).toBe(of({ bullmq: 'waiting', chasquimq: 'delayed' }));
  });

  it('negative-delay', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { delay: -5 });
    expect((await fetchJob(queue, id)).delay).toBe(of({ bullmq: -5, chasquimq: 0 }));
  });

  it('job-names', async () => {
    const queue = stage.queue();
    const error = await rejection(queue.add({} as string, {}));
    expect(error instanceof TypeError).toBe(of({ bullmq: false, chasquimq: true }));
    const job = await queue.add(5 as unknown as string, {});
    expect(job.name).toBe(of<unknown>({ bullmq: 5, chasquimq: '5' }));
  });

  it('retention-texts', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 3 }, () => ({ name: 'job', data: {} })));
    await queue.add('last', {}, { removeOnComplete: '200' as unknown as number });
    const worker = stage.worker(async () => undefined);
    await new Promise<void>((resolve) => worker.on('completed', (job) => job.name === 'last' && resolve()));
    expect(await queue.getCompletedCount()).toBe(of({ bullmq: 3, chasquimq: 4 }));
  });

  it('deduplication-options', async () => {
    const deduplication = { id: { odd: true } as unknown as string };
    const error = await rejection(stage.queue().add('job', {}, { deduplication }));
    expect(/script/i.test(error.message)).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('opts-parent', async () => {
    const queue = stage.queue();
    const parent = await queue.add('parent', {});
    const at = { id: parent.id ?? '', queue: queue.qualifiedName };
    const child = await queue.add('child', {}, { parent: at });
    await child.removeChildDependency();
    const { opts } = await fetchJob(queue, child.id);
    expect(opts.parent).toEqual(of({ bullmq: at, chasquimq: undefined }));
  });

  it('options-not-given', async () => {
    const queue = stage.queue();
    const added = await queue.add('job', 1);
    const [bulk] = await queue.addBulk([{ name: 'job', data: 1 }]);
    const { job: parent } = await stage.flowProducer().add({ name: 'job', queueName: stage.queueName });
    expect([added, bulk, parent].map(({ opts }) => Object.keys(opts).sort())).toEqual(
      of({
        bullmq: [
          ['attempts', 'backoff', 'jobId'],
          ['attempts', 'backoff', 'jobId', 'telemetry'],
          ['attempts', 'backoff', 'parent', 'telemetry'],
        ],
        chasquimq: [
          ['attempts', 'backoff'],
          ['attempts', 'backoff'],
          ['attempts', 'backoff'],
        ],
      }),
    );
    expect(Object.keys((await fetchJob(queue, added.id)).opts).sort()).toEqual(['attempts', 'backoff']);
  });

  it('lazy-job-fields', async () => {
    const job = await stage.queue().add('job', { a: 1 });
    expect(Object.keys(job).includes('data')).toBe(of({ bullmq: true, chasquimq: false }));
    expect(JSON.parse(JSON.stringify(job))).toMatchObject({ data: { a: 1 } });
  });

  it('pending-adds', async () => {
    const queue = stage.queue({ maxPendingAdds: 10 } as Partial<QueueOptions>);
    const jobs = Array.from({ length: 10 }, () => ({ name: 'job', data: {} }));
    const adding = queue.addBulk(jobs);
    const further = await outcome(queue.add('job', {}).then(() => 'done'));
    expect(further[0]).toBe(of({ bullmq: 'gave', chasquimq: 'rejected' }));
    expect(await adding).toHaveLength(10);
  });

  it('add-bulk-is-atomic', async () => {
    const way = stage.keep(await SlowWay.open());
    const queue = stage.queue({ connection: { ...connection, host: '127.0.0.1', port: way.port } });
    await queue.add('first', {});
    way.hold(20_000);
    const adding = queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'job', data: 'x'.repeat(10_000) })));
    await way.held;
    const between = await stage.queue().add('between', {});
    way.release();
    const ids = (await adding).map(({ id }) => Number(id));
    expect(ids.every((id, i) => id === (ids[0] ?? 0) + i)).toBe(of({ bullmq: false, chasquimq: true }));
    expect(new Set([...ids, Number(between.id)]).size).toBe(11);
  });

  it.each(['a\ud800', '\udc00b'])('half-surrogates: %j', async (text) => {
    const queue = stage.queue();
    const { id } = await queue.add(text, {}, { jobId: text, deduplication: { id: text } });
    const carried = text.replaceAll(/\ud800|\udc00/g, of({ bullmq: '\ufffd'.repeat(3), chasquimq: '\ufffd' }));
    expect(id).toBe(carried);
    expect((await queue.getJob(text))?.name).toBe(of({ bullmq: undefined, chasquimq: carried }));
    expect(await queue.getDeduplicationJobId(text)).toBe(of({ bullmq: null, chasquimq: carried }));
  });

  it('publish-event-objects', async () => {
    const producer = stage.watch(new lib.QueueEventsProducer(stage.queueName, { connection: { ...connection } }));
    const told = await outcome(producer.publishEvent({ eventName: 'odd', list: ['a', 'b', 'c'] }).then(() => 'done'));
    expect(told[0]).toBe(of({ bullmq: 'gave', chasquimq: 'rejected' }));
  });

  it('keep-last-if-active', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const runs: string[] = [];
    const worker = stage.worker(async (job) => {
      runs.push(String(job.id));
      if (job.name === 'active') await gate.opened;
    });
    const log = new EventLog(worker, ['active', 'completed']);
    const deduplication = { id: 'd', keepLastIfActive: true };
    await queue.add('active', {}, { deduplication });
    await log.get('active');
    await queue.add('kept', {}, { jobId: 'x', deduplication });
    await queue.add('there', {}, { jobId: 'x' });
    gate.open();
    await log.get('completed', of({ bullmq: 3, chasquimq: 2 }));
    expect(runs).toEqual(of({ bullmq: ['1', 'x', 'x'], chasquimq: ['1', 'x'] }));
  });
});
