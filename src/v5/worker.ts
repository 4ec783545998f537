import { COMMANDS } from '../connection/members.js';
import { Worker as BaseWorker } from '../worker/worker.js';
import { Job } from './job.js';
import { Repeat } from './repeat.js';
import { ServerKind } from './server-kind.js';
import { UserClient } from './user-client.js';
import type { DatabaseType } from '../types/database-type.js';
import type { Backend } from '../connection/backend.js';
import type { Processor as BaseProcessor } from '../worker/processor.js';
import {
  forceOf,
  type GetNextJobOptions,
  type WorkerCloseOptions,
  type WorkerOptions as BaseWorkerOptions,
} from '../options/worker.js';
import type { Given } from './connection.js';
import type { WorkerOptions } from './options.js';
import type { JobProgress } from '../types/job-progress.js';
import type { RedisClient } from './types.js';
import type { Processor, WorkerListener } from './listeners.js';

// Symbols, not `#` names: a Proxy around a worker has none of those, and a subclass may call its members what it likes.
const USER_CLIENT: unique symbol = Symbol('user client');
const BLOCKING_USER_CLIENT: unique symbol = Symbol('blocking user client');
const SERVER: unique symbol = Symbol('server');
const REPEATING: unique symbol = Symbol('repeating');

/**
 * Processes the jobs of a queue, with what BullMQ 6 has dropped.
 * Source: BullMQ 5.81 `Worker`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
/* eslint-disable @typescript-eslint/no-unsafe-declaration-merging -- the interface below tells types alone: the methods are inherited */
export class Worker<
  DataType = any,
  ResultType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> extends BaseWorker<DataType, ResultType, NameType, Backend, ProgressType> {
  /* eslint-enable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-declaration-merging */
  /** @internal */
  readonly [USER_CLIENT] = new UserClient(this);
  /** @internal */
  readonly [BLOCKING_USER_CLIENT] = new UserClient(this, true);
  /** @internal */
  readonly [SERVER] = new ServerKind(this[COMMANDS]);
  /** @internal */
  [REPEATING]: Repeat | undefined = undefined;

  /** @param _Connection a class of connections, which BullMQ 5 takes here; not used */
  constructor(
    name: string,
    processor?: string | URL | null | Processor<DataType, ResultType, NameType, ProgressType>,
    opts?: WorkerOptions<Given>,
    _Connection?: unknown,
  ) {
    // its jobs are of the class below
    const process = processor as string | BaseProcessor<DataType, ResultType, NameType, ProgressType>;
    super(name, process, opts as BaseWorkerOptions<Given>);
  }

  protected override get Job(): typeof Job {
    return Job;
  }

  /** An ioredis client for commands of the user's own; closes with the worker. */
  get client(): Promise<RedisClient> {
    return this[USER_CLIENT].connected();
  }

  /** Version of the server; undefined until `waitUntilReady` was called. */
  get redisVersion(): string {
    return this[SERVER].version as string;
  }

  /** Which server it is; `redis` until `waitUntilReady` was called. */
  get databaseType(): DatabaseType {
    return this[SERVER].type;
  }

  /** What repeats. It uses the connection of the worker's jobs, and closes with it. */
  get repeat(): Promise<Repeat> {
    return Promise.resolve((this[REPEATING] ??= new Repeat(this.name, this.opts, undefined, this)));
  }

  /** Resolves with a client of its own for commands that block when the connection is usable. Without ioredis: with nothing. */
  override async waitUntilReady(): Promise<void & RedisClient> {
    await super.waitUntilReady();
    await this[SERVER].ask();
    return this[BLOCKING_USER_CLIENT].offered();
  }

  override close(options: boolean | WorkerCloseOptions = false): Promise<void> {
    if (this.closing) return super.close(options);
    const clients = [this[USER_CLIENT], this[BLOCKING_USER_CLIENT]];
    const closed = super.close(options);
    // else it was refused
    if (!this.closing) return closed;
    // jobs that end meanwhile may use them
    const end = async (): Promise<void> => {
      if (!forceOf(options)) await closed;
      await Promise.all([closed, ...clients.map((client) => client.close())]);
    };
    return (this.closing = end());
  }
}

/** Methods that hand out jobs: these are of the class above. */
export interface Worker<DataType, ResultType, NameType extends string, ProgressType extends JobProgress> {
  /** The promise is for those who wait for it: in BullMQ 5 there is none. */
  resume(): void & Promise<void>;
  getNextJob(token: string, opts?: GetNextJobOptions): Promise<Job<DataType, ResultType, NameType, ProgressType>>;
  processJob(
    job: Job<DataType, ResultType, NameType, ProgressType>,
    token: string,
    fetchNextCallback?: () => boolean,
  ): Promise<void | Job<DataType, ResultType, NameType, ProgressType>>;
  on<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    listener: WorkerListener<DataType, ResultType, NameType, ProgressType>[U],
  ): this;
  once<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    listener: WorkerListener<DataType, ResultType, NameType, ProgressType>[U],
  ): this;
  off<U extends keyof WorkerListener<DataType, ResultType, NameType, ProgressType>>(
    event: U,
    listener: WorkerListener<DataType, ResultType, NameType, ProgressType>[U],
  ): this;
}
