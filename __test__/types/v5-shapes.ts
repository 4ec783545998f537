/** Types that have another form in BullMQ 5 than in 6, as its programs use them. Compiled as `v5.ts` is. */
import { FlowProducer, Job, JobScheduler, Queue, QueueBase, Repeat, Worker } from 'v5-under-test';
import type {
  BaseJobOptions,
  ClusterOptions,
  CompressableJobOptions,
  ConnectionOptions,
  FlowChildJob,
  FlowJob,
  FlowJobBase,
  JobsOptions,
  Meter,
  MinimalQueue,
  Processor,
  QueueBaseOptions,
  QueueEventsListener,
  QueueOptions,
  RedisOptions,
  RepeatableJob,
  Telemetry,
  WorkerOptions,
  QueueEvents,
} from 'v5-under-test';

const connection: ConnectionOptions = { host: 'localhost', port: 6379 };
const steps = ['a', 'b', 'c'];

// ---- Flows

export interface OwnFlow extends FlowJob {
  tenant: string;
}
export interface OwnChild extends FlowChildJob {
  weight?: number;
}
export const base: FlowJobBase<JobsOptions> = {
  name: 'a',
  queueName: 'q',
  opts: { attempts: 1 },
  children: [{ name: 'b', queueName: 'q' }],
};
export const children: FlowChildJob[] = steps.map((name) => ({ name, queueName: 'q', children: [] }));
export const chain = steps.reduceRight<FlowChildJob | undefined>(
  (child, name) => ({ name, queueName: 'q', children: child ? [child] : undefined }),
  undefined,
);

export function grown(isLeaf: boolean): FlowJob {
  const flow: FlowJob = { name: 'a', queueName: 'q', opts: { debounce: { id: 'x' }, jobId: 'y' } };
  if (!isLeaf) flow.children = children;
  flow.children?.push({ name: 'z', queueName: 'q', opts: { failParentOnFailure: true } });
  return { ...flow, children: flow.children?.map((child) => ({ ...child, opts: { ...child.opts, attempts: 2 } })) };
}

export async function flows(): Promise<void> {
  const producer = new FlowProducer({ connection });
  await producer.add({ name: 'a', queueName: 'q', children: steps.length > 0 ? children : undefined });
  await producer.addBulk([grown(true), base]);
  // @ts-expect-error -- a child has no parent of its own
  await producer.add({ name: 'a', queueName: 'q', children: [{ name: 'b', queueName: 'q', opts: { parent: {} } }] });
}

// ---- Options

export const cluster: ClusterOptions = {
  scaleReads: (nodes: unknown[]) => nodes[0],
  clusterRetryStrategy: (times) => Math.min(times * 5, 100),
  dnsLookup: (address, callback) => callback(null, address),
  redisOptions: { password: 'secret', tls: {} },
};
export const single: RedisOptions = {
  sentinels: [{ host: 'a', port: 1 }],
  name: 'mymaster',
  reconnectOnError: (error) => error.message.includes('READONLY'),
  retryStrategy: (times) => times * 2,
};
export const baseOptions: BaseJobOptions = { repeat: { every: 1000 }, attempts: 3 };
export const compressable: CompressableJobOptions = { debounce: { id: 'x' } };
export interface OwnQueueOptions extends QueueOptions {
  label?: string;
}
export interface OwnJobOptions extends JobsOptions {
  tenant?: string;
}
export const records = (job: RepeatableJob): Record<string, unknown> => job;
export const forWorker = (options: QueueOptions): WorkerOptions => ({
  ...options,
  connection: { ...options.connection } as ConnectionOptions,
});

// ---- Telemetry whose meter has no gauges

export const meter: Meter = {
  createCounter: () => ({ add() {} }),
  createHistogram: () => ({ record() {} }),
};

export function measured(telemetry: Telemetry): unknown[] {
  const options = { connection, telemetry: { ...telemetry, meter } };
  meter.createGauge?.('jobs').record(1);
  return [
    new Queue('a', options),
    new Worker('a', null, options),
    new FlowProducer(options),
    new Repeat('a', options),
    new JobScheduler('a', options),
  ];
}

// ---- Methods and members

export async function version(queue: Queue): Promise<string> {
  const told: string = await queue.getVersion();
  return told.split('-')[0];
}

export function resumed(worker: Worker): void {
  return worker.resume();
}

export function about(queue: MinimalQueue): unknown[] {
  return [queue.name, queue.opts.connection, queue.opts.prefix, queue.client, queue.redisVersion, queue.trace];
}
export const ofQueue = (queue: Queue, worker: Worker): unknown[] => [...about(queue), ...about(worker)];
export const options: JobsOptions = Job.optsFromJSON('{}', { d: 'delay' });

export class OwnQueue extends Queue {
  get parts(): unknown[] {
    return [this._repeat, this._jobScheduler, this.libName];
  }
}

export class OwnBase extends QueueBase {
  constructor(name: string, opts: QueueBaseOptions) {
    super(name, opts);
  }

  guarded(): Promise<number | undefined> {
    return this.checkConnectionError(async () => 1);
  }
}

export class OwnWorker<T, R> extends Worker<T, R> {
  constructor(name: string, processor: Processor<T, R>, opts: WorkerOptions) {
    super(name, processor, opts);
  }

  protected override callProcessJob(job: Job<T, R>, token: string): Promise<R> {
    return this.processFn(job, token);
  }
}

export interface OwnEvents extends QueueEventsListener {
  paid: (args: { amount: string }, id: string) => void;
}

export function emitted(events: QueueEvents): boolean {
  events.on<OwnEvents, 'paid'>('paid', ({ amount }) => console.log(amount));
  return events.emit<OwnEvents, 'paid'>('paid', { amount: '1' }, '0-1');
}
