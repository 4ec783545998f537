/** How programs handle options and their types: copied, extended, taken apart, handed on. Compiled as `usage.ts` is. */
import { FlowProducer, Job, Queue, QueueEvents, QueueEventsProducer, Worker } from 'library-under-test';
import type {
  BackendFactory,
  ClusterOptions,
  CompressableJobOptions,
  ConnectionOptions,
  DatabaseType,
  DeduplicationOptions,
  IQueueBackend,
  JobsOptions,
  MinimalQueue,
  ParentKeyOpts,
  Processor,
  QueueBaseOptions,
  QueueOptions,
  RedisOptions,
  RedisQueueBackend,
  RepeatableOptions,
  Telemetry,
  WorkerListener,
  WorkerOptions,
} from 'library-under-test';

const shared: ConnectionOptions = { host: 'localhost', port: 6379 };
declare const typed: { host: string; port: number };

export function blocking(connection: ConnectionOptions): ConnectionOptions {
  return { ...connection, maxRetriesPerRequest: null };
}

export function forWorker(options: QueueOptions): WorkerOptions {
  return { ...options, connection: { ...options.connection, connectionName: 'worker' }, concurrency: 3 };
}

export function told({ connection }: QueueBaseOptions): unknown[] {
  const plain: object = connection;
  const host: unknown = 'host' in connection ? connection.host : (connection as RedisOptions).path;
  return [plain, host, Object.keys(connection), Object.assign({}, connection, { db: 3 })];
}
export const byConnection = new WeakMap<ConnectionOptions, Queue>();
export const ofCluster: ClusterOptions = {
  redisOptions: { tls: {} },
  scaleReads: 'slave',
  nodes: [{ host: 'a', port: 1 }],
};

/** What is given as `connection` decides no type: one queue can stand in the place of another. */
const first = new Queue('first', { connection: { host: 'a' } });
const second: typeof first = new Queue('second', { connection: { port: 1 } });
export const queues = new Map([['first', first]])
  .set('second', second)
  .set('third', new Queue('x', { connection: typed }));
export class Held {
  queue: Queue = new Queue('held', { connection: { host: 'a', port: 1 } });
  worker = new Worker('held', async () => {}, { connection: typed });
  events: QueueEvents = new QueueEvents('held', { connection: typed });
  flows: FlowProducer = new FlowProducer({ connection: typed });
  producer: QueueEventsProducer = new QueueEventsProducer('held', { connection: typed });

  renew(options: QueueOptions, forWorkers: WorkerOptions): void {
    this.queue = new Queue('other', options);
    this.worker = new Worker('other', async () => {}, forWorkers);
  }
}

/** Types that are aliases, and no interfaces, go where any record does. */
export const records = (
  ...all: [DeduplicationOptions, CompressableJobOptions, RepeatableOptions, ParentKeyOpts]
): Record<string, unknown>[] => all;
export interface OwnDeduplication extends DeduplicationOptions {
  reason: string;
}
export interface OwnJobOptions extends JobsOptions {
  tenant?: string;
}
export interface OwnWorkerOptions extends Omit<WorkerOptions, 'connection'> {
  queue: string;
}

export function about(queue: MinimalQueue): unknown[] {
  const { name, qualifiedName, opts, closing, toKey, trace } = queue;
  return [name, qualifiedName, opts.connection, opts.telemetry, closing, toKey('meta'), trace];
}
export const ofQueue = (queue: Queue, worker: Worker): unknown[] => [...about(queue), ...about(worker)];
export const read: JobsOptions[] = [Job.optsFromJSON('{}'), Job.optsFromJSON('{}', { d: 'delay' })];
export const kinds: DatabaseType[] = ['redis', 'valkey', 'dragonfly'];

export function sharing<B extends IQueueBackend = RedisQueueBackend>(owner: Queue, backend: B): B[] {
  const factory: BackendFactory<B> = (name, { skipVersionCheck }, options) =>
    name && !skipVersionCheck && !options?.blocking ? backend : (owner.getBackend() as unknown as B);
  return [new Queue('shared', { connection: shared }, factory).getBackend()];
}

/** Types that are taken from others. */
export type Added = Parameters<Queue['add']>;
export type Bulk = Parameters<Queue['addBulk']>[0][number];
export type Template = NonNullable<Parameters<Queue['upsertJobScheduler']>[2]>;
export type Found = NonNullable<Awaited<ReturnType<Queue['getJob']>>>;
export type Ended = Parameters<WorkerListener<{ to: string }, number>['completed']>;
export type DataOf<Q> = Q extends Queue<infer Data, infer _Result, infer _Name> ? Data : never;
export const data: DataOf<Queue<{ to: string }, number, 'mail'>> = { to: 'ana' };
export const ended = (...[job, result]: Ended): string => job.data.to + result.toFixed();
export const forward = (queue: Queue, ...args: Added): Promise<Found> => queue.add(...args);
export const bulk: Bulk = { name: 'mail', data: {}, opts: { jobId: 'a' } };
export const template: Template = { name: 'mail', data: {}, opts: { attempts: 3 } };
export const jobOptions = { attempts: 3, backoff: { type: 'exponential', delay: 10 } } satisfies JobsOptions;
export const workerOptions = { connection: { host: 'a' }, limiter: { max: 1, duration: 5 } } satisfies WorkerOptions;
export const made = new Worker('mail', async (job: Job<{ to: string }>) => job.data.to, workerOptions);
export const port: Pick<Queue, 'add' | 'close'> = { add: async () => ({}) as Job, close: async () => {} };

export function worker<T, R>(name: string, processor: Processor<T, R>, telemetry?: Telemetry): Worker<T, R> {
  const options: WorkerOptions = { connection: shared, ...(telemetry && { telemetry }) };
  return new Worker<T, R>(name, processor, options);
}

export function onEach<E extends keyof WorkerListener>(of: Worker, event: E, listener: WorkerListener[E]): () => void {
  of.on(event, listener);
  return () => of.off(event, listener);
}
