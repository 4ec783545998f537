import { COMMANDS } from '../connection/members.js';
import { FlowProducer as BaseFlowProducer, REFUSED_OF_MANY } from '../flow/flow-producer.js';
import { engineOptions } from './job-options.js';
import { Job } from './job.js';
import { ServerKind } from './server-kind.js';
import { UserClient } from './user-client.js';
import type { DatabaseType } from '../types/database-type.js';
import type { FlowJob as BaseFlowJob, FlowOpts } from '../options/flow.js';
import type { FlowProducerOptions } from '../options/queue.js';
import type { FlowChildJob, FlowJob } from './flow.js';
import type { Given } from './connection.js';
import type { QueueBaseOptions } from './options.js';
import type { NodeOpts } from '../flow/flow-tree.js';
import type { RedisClient } from './types.js';

// Symbols, not `#` names: a Proxy around a producer has none of those, and a subclass may call its members what it likes.
const USER_CLIENT: unique symbol = Symbol('user client');
const SERVER: unique symbol = Symbol('server');

/** A job of a flow with its children. Source: BullMQ 5.81 `JobNode`. */
export interface JobNode {
  /** The job. */
  job: Job;
  /** The jobs that it waits for. */
  children?: JobNode[];
}

/**
 * Adds flows, with what BullMQ 6 has dropped.
 * Source: BullMQ 5.81 `FlowProducer`.
 */
export class FlowProducer extends BaseFlowProducer {
  /** @internal */
  readonly [USER_CLIENT] = new UserClient(this);
  /** @internal */
  readonly [SERVER] = new ServerKind(this[COMMANDS]);

  /** @param _Connection a class of connections, which BullMQ 5 takes here; not used */
  constructor(opts?: QueueBaseOptions<Given>, _Connection?: unknown) {
    super(opts as FlowProducerOptions<Given>);
  }

  protected override get Job(): typeof Job {
    return Job;
  }

  /** An ioredis client for commands of the user's own; closes with the producer. */
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

  /** Resolves with {@link client} when the connection is usable. Without ioredis: with nothing. */
  override async waitUntilReady(): Promise<void & RedisClient> {
    await super.waitUntilReady();
    await this[SERVER].ask();
    return this[USER_CLIENT].offered();
  }

  override async add(flow: FlowJob, opts?: FlowOpts): Promise<JobNode> {
    return (await super.add(engineFlow(flow), opts)) as JobNode;
  }

  /** Rejects when the root of a flow names a parent that is missing; the other flows are there. */
  override async addBulk(flows: FlowJob[]): Promise<JobNode[]> {
    return (await super.addBulk(flows.map(engineFlow))) as JobNode[];
  }

  /** @internal */
  override [REFUSED_OF_MANY](error: Error): void {
    throw error;
  }

  override async getFlow(opts: NodeOpts): Promise<JobNode> {
    return (await super.getFlow(opts)) as JobNode;
  }

  override close(): Promise<void> {
    if (this.closing) return this.closing;
    const closed = super.close();
    return (this.closing = Promise.all([closed, this[USER_CLIENT].close()]).then(() => {}));
  }

  override disconnect(): Promise<void> {
    this[USER_CLIENT].disconnect();
    return super.disconnect();
  }
}

/** A flow with the options that the engine takes; the object given where they are those that it has. */
function engineFlow(flow: FlowJob | FlowChildJob): BaseFlowJob {
  const opts = engineOptions(flow.opts);
  const children = flow.children?.map(engineFlow);
  const isTheirs = opts !== flow.opts || children?.some((child, i) => child !== flow.children?.[i]);
  return isTheirs ? { ...flow, ...(opts && { opts }), ...(children && { children }) } : flow;
}
