/** How programs inherit from the classes: what they override, and which protected members they use. Compiled as `usage.ts` is. */
import { FlowProducer, Job, Queue, QueueBase, QueueEvents, QueueGetters, Worker } from 'library-under-test';
import type {
  BulkJobOptions,
  FlowJob,
  FlowOpts,
  JobNode,
  JobSchedulerTemplateOptions,
  JobsOptions,
  MinimalQueue,
  Processor,
  QueueBaseOptions,
  QueueOptions,
  RepeatOptions,
  WorkerOptions,
} from 'library-under-test';

export class OwnQueue<T, R, N extends string> extends Queue<T, R, N, T, R, N> {
  constructor(name: string, options: QueueOptions) {
    super(name, { ...options, connection: { ...options.connection, connectionName: name } });
  }

  override add(name: N, data: T, opts?: JobsOptions): Promise<Job<T, R, N>> {
    return super.add(name, data, { ...opts, attempts: 2 });
  }

  override addBulk(jobs: { name: N; data: T; opts?: BulkJobOptions }[]): Promise<Job<T, R, N>[]> {
    return super.addBulk(jobs);
  }

  override upsertJobScheduler(
    id: N,
    repeat: Omit<RepeatOptions, 'key'>,
    template?: { name?: N; data?: T; opts?: JobSchedulerTemplateOptions },
  ): Promise<Job<T, R, N>> {
    return super.upsertJobScheduler(id, repeat, template);
  }

  protected override addJob(name: N, data: T, opts?: JobsOptions): Promise<Job<T, R, N>> {
    return super.addJob(name, data, opts);
  }

  async guarded<V>(call: () => Promise<V>): Promise<V | undefined> {
    if (this.closed) return undefined;
    const value: V | undefined = await this.checkConnectionError(call, 10);
    return value ?? (await this.checkConnectionError(call));
  }

  get parts(): unknown[] {
    return [this.libName, this.base64Name(), this.clientName(':w'), this._jobScheduler?.name];
  }
}

export class OwnWorker<T, R, N extends string> extends Worker<T, R, N> {
  constructor(name: string, processor: Processor<T, R, N>, options: WorkerOptions) {
    super(name, processor, options);
  }

  protected override callProcessJob(job: Job<T, R, N>, token: string, signal?: AbortSignal): Promise<R> {
    return this.processFn(job, token, signal);
  }

  override async close(force?: boolean): Promise<void> {
    if (this.running && !this.paused) await super.close(force);
  }

  get schedulers(): string {
    return this._jobScheduler.name;
  }
}

export class OwnJob<T, R, N extends string> extends Job<T, R, N> {
  constructor(queue: MinimalQueue, name: N, data: T, opts?: JobsOptions, id?: string) {
    super(queue, name, data, opts, id);
  }

  protected override updateStacktrace(error: Error): void {
    super.updateStacktrace(Object.assign(new Error(error.message), { stack: error.stack?.split('\n')[0] }));
  }

  get key(): string {
    return this.toKey(`${this.queue.name}:${this.id}`);
  }
}

export class OwnFlows extends FlowProducer {
  override add(flow: FlowJob, opts?: FlowOpts): Promise<JobNode> {
    return super.add({ ...flow, prefix: this.opts.prefix }, opts);
  }
}

export class OwnEvents extends QueueEvents {
  override async run(): Promise<void> {
    await super.run();
  }
}

export class OwnBase extends QueueBase {
  constructor(name: string, options: QueueBaseOptions) {
    super(name, options, undefined, true);
  }
}

export class OwnGetters extends QueueGetters {
  constructor(name: string, options: QueueBaseOptions) {
    super(name, options);
  }
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- what TypeScript asks of a mixin
export const named = <C extends new (...args: any[]) => Queue>(Base: C) =>
  class extends Base {
    get label(): string {
      return this.qualifiedName;
    }
  };
