import { COMMANDS, CONNECTION } from '../connection/members.js';
import { EventEmitter } from 'node:events';
import { Backend, backendOf, type BackendFactory } from '../connection/backend.js';
import { Commands } from '../connection/commands.js';
import { optionsShown, readConnection, targetOf, type Connection } from '../connection/read-connection.js';
import { emitError } from '../errors/emit-error.js';
import { errorFromNative } from '../native/native-error.js';
import { Encoding, nameChildren } from './encoding.js';
import { FlowQueue } from './flow-queue.js';
import { readTree, type JobNode, type NodeOpts } from './flow-tree.js';
import { Job } from '../job/job.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { FlowJob, FlowJobNode, FlowOpts, FlowQueuesOpts } from '../options/flow.js';
import type { FlowProducerOptions } from '../options/queue.js';
import type { NativeAddedException, NativeQueueOptions } from '../native/types.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { FlowSpans } from '../telemetry/flow-spans.js';
import { trace } from '../telemetry/trace.js';
import type { GivenConnection } from '../types/given-connection.js';
import { SpanKind } from '../types/telemetry.js';

// Symbols, not `#` names: a Proxy around a producer has none of those, and a subclass may call its members what it likes.
const PREFIX: unique symbol = Symbol('prefix');
const QUEUES: unique symbol = Symbol('queues');
const LAST_QUEUE: unique symbol = Symbol('last queue');
const SHOWN_BACKEND: unique symbol = Symbol('shown backend');
const ADD_ALL: unique symbol = Symbol('add all');
const QUEUE_OF: unique symbol = Symbol('queue of');
const TARGET_OF: unique symbol = Symbol('target of');
/** @internal Called for each flow of many that is refused because of its root's parent. */
export const REFUSED_OF_MANY: unique symbol = Symbol('refused of many');

/** How many queues a producer keeps at hand. */
const KNOWN_QUEUES = 1000;

/** Events of a {@link FlowProducer}. */
export interface FlowProducerListener {
  /** The connection failed. Not emitted when nobody listens. */
  error: (error: Error) => void;
  /** An open connection was lost, without `close()`. */
  'ioredis:close': () => void;
}

/**
 * Adds flows: trees of jobs in any queues. Each job starts when its children have ended.
 * Source: BullMQ 6.7.0 `FlowProducer`.
 */
export class FlowProducer<B = Backend, ConnectionOptionsType = ConnectionOptions> extends EventEmitter {
  /** The options given. */
  opts: FlowProducerOptions<ConnectionOptionsType>;
  /** The promise of `close()`, once it was called. */
  closing: Promise<void> | undefined = undefined;
  /** @internal */
  readonly [PREFIX]: string;
  /** @internal */
  readonly [CONNECTION]: Connection;
  /** @internal */
  readonly [COMMANDS]: Commands;
  /** @internal */
  readonly [QUEUES] = new Map<string, FlowQueue>();
  /** @internal */
  [LAST_QUEUE]: FlowQueue | undefined = undefined;
  /** @internal */
  [SHOWN_BACKEND]: Backend | undefined;

  /**
   * @param backendFactory gives the backend of a queue, whose connection is then used
   * @throws NotSupportedError for an option or a connection that is not supported yet
   */
  constructor(
    opts: FlowProducerOptions<GivenConnection<ConnectionOptionsType>> = {
      connection: {} as GivenConnection<ConnectionOptionsType>,
    },
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
  ) {
    super();
    this[PREFIX] = opts.prefix ?? 'bull';
    this.opts = optionsShown(opts) as typeof this.opts;
    this[SHOWN_BACKEND] = backendOf(backendFactory, '', this.opts, false);
    const shared = this[SHOWN_BACKEND]?.parts;
    this[CONNECTION] = shared?.connection ?? readConnection(opts.connection, 'commands', opts.skipWaitingForReady);
    this[COMMANDS] =
      shared?.commands.share(this) ?? new Commands(this, this[TARGET_OF](this[PREFIX], ''), this[CONNECTION]);
    this[COMMANDS].open();
  }

  /** `<prefix>:<queue name>:<type>`. With a job id as `type` it is the key by which the parent of that job knows it. */
  toKey = (name: string, type: string): string => `${this[PREFIX]}:${name}:${type}`;

  /** The class of the jobs this object hands out; subclasses may bring their own. */
  protected get Job(): typeof Job {
    return Job;
  }

  /**
   * Adds a flow: all of its jobs, or none. Parents wait until their children have ended, whatever their own delay and
   * priority, which count then.
   * @param opts.queuesOptions default options of the jobs of each queue
   * @returns the jobs, with their ids; undefined when the producer is closed
   * @throws (rejects) Error with BullMQ's text for options it refuses, before anything is sent; and with `code` -5 or -7
   * when the root's parent is missing, or the root exists and has another parent
   */
  async add(flow: FlowJob, opts?: FlowOpts): Promise<JobNode> {
    if (this.closing) return undefined as unknown as JobNode;
    checkDeduplication([flow]);
    const traced = { name: flow.queueName, opts: this.opts };
    return trace(traced, SpanKind.PRODUCER, 'addFlow', flow.queueName, async (span) => {
      span?.setAttribute(TelemetryAttributes.FlowName, flow.name);
      const [tree] = await this[ADD_ALL]([flow], opts?.queuesOptions, (error) => {
        throw error;
      });
      return tree;
    });
  }

  /**
   * Adds many flows in one step. A flow whose root is refused because of its parent is left out, and not reported.
   * @returns as {@link add}
   */
  async addBulk(flows: FlowJob[]): Promise<JobNode[]> {
    if (this.closing) return undefined as unknown as JobNode[];
    checkDeduplication(flows);
    return trace({ name: '', opts: this.opts }, SpanKind.PRODUCER, 'addBulkFlows', '', (span) => {
      span?.setAttributes({
        [TelemetryAttributes.BulkCount]: flows.length,
        [TelemetryAttributes.BulkNames]: flows.map(({ name }) => name).join(','),
      });
      if (flows.length === 0) return [];
      return this[ADD_ALL](flows, undefined, (error) => this[REFUSED_OF_MANY](error));
    });
  }

  /** @internal */
  [REFUSED_OF_MANY](_error: Error): void {}

  /** @internal */
  async [ADD_ALL](
    flows: FlowJob[],
    queuesOptions: FlowQueuesOpts | undefined,
    refused: (error: Error) => void,
  ): Promise<JobNode[]> {
    const spans = this.opts.telemetry && new FlowSpans(this.opts.telemetry);
    const encoding = new Encoding(this[COMMANDS], this.Job, (node) => this[QUEUE_OF](node), queuesOptions, spans);
    let trees: JobNode[];
    try {
      trees = encoding.addAll(flows);
    } finally {
      spans?.end();
    }
    const { exceptions, namedBy, named } = await this[COMMANDS].addFlows(encoding.now, encoding.encoder.take());
    for (const exception of exceptions) adoptException(trees[exception.index]?.job, exception, refused);
    nameChildren(encoding.unnamed, namedBy, named);
    return trees;
  }

  /**
   * A flow that was added, from any of its jobs down. Reads about `maxChildren` children of each kind of a job, in the
   * order: completed, pending, failed, ignored; those that are gone stand as undefined. Two round trips a queue and level.
   * @returns undefined when there is no such job, or the producer is closed
   * @throws (rejects) RangeError for a `maxChildren` that is no whole number of at least 1
   */
  async getFlow(opts: NodeOpts): Promise<JobNode> {
    if (this.closing) return undefined as unknown as JobNode;
    const tree = await readTree(this[COMMANDS], opts.prefix ?? this[PREFIX], opts, (queue, job) => {
      const at = queue.lastIndexOf(':');
      return this.Job.fromNative(this[QUEUE_OF]({ prefix: queue.slice(0, at), queueName: queue.slice(at + 1) }), job);
    });
    return tree as JobNode;
  }

  /** @internal */
  [QUEUE_OF](node: { queueName: string; prefix?: string | null }): FlowQueue {
    const { queueName } = node;
    const prefix = String(node.prefix || this[PREFIX]);
    // most jobs lie in the queue of the one before
    if (this[LAST_QUEUE]?.name === queueName && this[LAST_QUEUE].prefix === prefix) return this[LAST_QUEUE];
    if (queueName === undefined || queueName === null) throw new TypeError('Queue name must be provided');
    const key = `${prefix}:${queueName}`;
    let queue = this[QUEUES].get(key);
    if (!queue) {
      const target = this[TARGET_OF](prefix, queueName);
      queue = new FlowQueue(this, prefix, String(queueName), () => this[COMMANDS].beside(this, target));
      // names may be made for each customer, or each day; jobs hold on to their queue
      if (this[QUEUES].size >= KNOWN_QUEUES) this[QUEUES].clear();
      this[QUEUES].set(key, queue);
    }
    return (this[LAST_QUEUE] = queue);
  }

  /** @internal */
  [TARGET_OF](prefix: string, name: string): NativeQueueOptions {
    return targetOf(name, prefix, this[CONNECTION], this.opts);
  }

  /**
   * Resolves when the connection is usable, and at `close()`.
   * @throws (rejects) the connection error, e.g. with `code` `ECONNREFUSED`
   */
  async waitUntilReady(): Promise<void> {
    await this[COMMANDS].ready();
  }

  /** The connection, as far as tools on top of BullMQ ask for it. */
  getBackend(): B {
    this[SHOWN_BACKEND] ??= new Backend({
      commands: this[COMMANDS],
      connection: this[CONNECTION],
      target: this[TARGET_OF](this[PREFIX], ''),
    });
    return this[SHOWN_BACKEND] as B;
  }

  /** Closes the connection when the commands under way are done. A second call returns the promise of the first. */
  close(): Promise<void> {
    return (this.closing ??= this[COMMANDS].close());
  }

  /** As {@link close}, but waits for answers for 2 seconds at most. */
  async disconnect(): Promise<void> {
    await this[COMMANDS].disconnect();
  }

  // ---- Events

  /** Emits an event, as `QueueBase.emit`, but an error that nobody listens to is dropped. */
  override emit<U extends keyof FlowProducerListener>(event: U, ...args: Parameters<FlowProducerListener[U]>): boolean;
  override emit(event: string, ...args: unknown[]): boolean {
    if (event === 'error' && this.listenerCount('error') === 0) return false;
    try {
      return super.emit(event, ...args);
    } catch (error) {
      return emitError((thrown) => super.emit('error', thrown), error);
    }
  }

  /** Calls `listener` at each event of this name. */
  override on<U extends keyof FlowProducerListener>(event: U, listener: FlowProducerListener[U]): this {
    return super.on(event, listener);
  }

  /** Calls `listener` at the next event of this name. */
  override once<U extends keyof FlowProducerListener>(event: U, listener: FlowProducerListener[U]): this {
    return super.once(event, listener);
  }

  /** Removes a listener. */
  override off<U extends keyof FlowProducerListener>(event: U, listener: FlowProducerListener[U]): this {
    return super.off(event, listener);
  }
}

function adoptException(
  root: Job | undefined,
  { id, error }: NativeAddedException,
  refused: (error: Error) => void,
): void {
  if (!root) return;
  if (error) refused(errorFromNative(error));
  else root.id = id;
}

/** @throws Error for a job that would wait for children, and yield to another one */
function checkDeduplication(nodes: readonly (FlowJob | FlowJobNode)[]): void {
  for (const { opts, children } of nodes) {
    if (!children?.length) continue;
    if (opts && 'deduplication' in opts && opts.deduplication) {
      throw new Error('Deduplication options cannot be used on flow nodes with children');
    }
    checkDeduplication(children);
  }
}
