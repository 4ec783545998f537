import { CLOSE, COMMANDS, CONNECTION, TARGET } from '../connection/members.js';
import { EventEmitter } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { Backend, backendOf, type BackendFactory } from '../connection/backend.js';
import { Commands } from '../connection/commands.js';
import { optionsShown, readConnection, targetOf, type Connection } from '../connection/read-connection.js';
import { CONNECTION_CLOSED_ERROR_MSG, ConnectionClosedError } from '../errors/connection-closed-error.js';
import { emitError } from '../errors/emit-error.js';
import { Job } from '../job/job.js';
import type { NativeQueueOptions } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { KeyPrefixOptions, QueueBaseOptions } from '../options/queue.js';
import { trace } from '../telemetry/trace.js';
import type { MinimalQueue } from '../job/minimal-queue.js';
import type { GivenConnection } from '../types/given-connection.js';
import type { Span, SpanKind } from '../types/telemetry.js';

// A symbol, not a `#` name: a Proxy around a queue has no such, and a subclass may call its members what it likes.
const SHOWN_BACKEND: unique symbol = Symbol('shown backend');

/** Milliseconds that `checkConnectionError` waits after an error. */
const CONNECTION_ERROR_DELAY = 5000;

/**
 * What `Queue`, `Worker` and `QueueEvents` share: a name, options, a connection, and events that never crash the process.
 * Source: BullMQ 6.7.0 `QueueBase`.
 */
export class QueueBase<B = Backend, ConnectionOptionsType = ConnectionOptions>
  extends EventEmitter
  implements MinimalQueue<ConnectionOptionsType>
{
  /** Name of the queue, without its prefix. */
  readonly name: string;
  /** `<prefix>:<name>`, by which jobs of other queues refer to this one. */
  readonly qualifiedName: string;
  /** A shallow copy of the options given, unknown keys included. */
  opts: QueueBaseOptions<ConnectionOptionsType> & KeyPrefixOptions;
  /** The promise of `close()`, once it was called. */
  closing: Promise<void> | undefined = undefined;
  /** Whether `close()` has done its work. */
  protected closed = false;
  /** @internal */
  readonly [COMMANDS]: Commands;
  /** @internal */
  [SHOWN_BACKEND]: Backend | undefined = undefined;
  /** @internal What the engine needs to find the queue. */
  readonly [TARGET]: NativeQueueOptions;
  /** @internal What the `connection` option says. */
  readonly [CONNECTION]: Connection;

  /**
   * @param backendFactory gives the backend of another, whose queue and connection are then used
   * @param hasBlockingConnection whether the connection waits for what happens in the queue
   * @param commands an open connection to use instead of an own one
   * @throws Error `Queue name must be provided` or `Queue name cannot contain :`; NotSupportedError for an option or a
   * connection that is not supported yet
   */
  constructor(
    name: string,
    opts?: QueueBaseOptions<GivenConnection<ConnectionOptionsType>> & KeyPrefixOptions,
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
    hasBlockingConnection = false,
    commands?: Commands,
  ) {
    super();
    if (!name) throw new Error('Queue name must be provided');
    if (name.includes(':')) throw new Error('Queue name cannot contain :');

    this.name = name;
    this.opts = optionsShown(opts ?? {}) as typeof this.opts;
    const { connection, prefix, skipWaitingForReady } = this.opts;
    const backend = backendOf(backendFactory, name, this.opts, hasBlockingConnection);
    const use = hasBlockingConnection ? 'blocking' : 'commands';
    this[CONNECTION] = backend?.parts.connection ?? readConnection(connection, use, skipWaitingForReady);
    this[TARGET] = backend?.parts.target ?? targetOf(name, prefix ?? 'bull', this[CONNECTION], this.opts);
    this.qualifiedName = `${this[TARGET].prefix}:${this[TARGET].name}`;
    // what waits on its connection needs its own
    if (!hasBlockingConnection) this[SHOWN_BACKEND] = backend;
    this[COMMANDS] =
      commands ?? this[SHOWN_BACKEND]?.parts.commands.share(this) ?? new Commands(this, this[TARGET], this[CONNECTION]);
  }

  /** `<qualified name>:<type>`. With a job id as `type` it is the key by which the parent of that job knows it. */
  toKey = (type: string): string => `${this.qualifiedName}:${type}`;

  /** The queue's name in base64. */
  protected base64Name(): string {
    return Buffer.from(this.name).toString('base64');
  }

  /** What `CLIENT LIST` shows of the queue's workers: `<prefix>:<name in base64>`, and behind it `suffix`. */
  protected clientName(suffix = ''): string {
    return `${this[TARGET].prefix}:${this.base64Name()}${suffix}`;
  }

  /** The class of the jobs this object hands out; subclasses may bring their own. */
  protected get Job(): typeof Job {
    return Job;
  }

  /**
   * Resolves when the connection is usable, and at `close()`.
   * @throws (rejects) the connection error, e.g. with `code` `ECONNREFUSED`
   */
  async waitUntilReady(): Promise<void> {
    await this[COMMANDS].ready();
  }

  /** The connection, as far as tools on top of BullMQ ask for it: `(await getBackend().client).status`, `.info()`. */
  getBackend(): B {
    return (this[SHOWN_BACKEND] ??= new Backend({
      commands: this[COMMANDS],
      target: this[TARGET],
      connection: this[CONNECTION],
    })) as B;
  }

  /**
   * Runs `fn`. An error of it is emitted as `error`, unless there is no connection, which is reported anyway.
   * @param delayInMs milliseconds to wait after an error, unless `close()` was called; 0 for none
   * @returns what `fn` resolves with; undefined after an error
   */
  protected async checkConnectionError<T>(
    fn: () => Promise<T>,
    delayInMs = CONNECTION_ERROR_DELAY,
  ): Promise<T | undefined> {
    try {
      return await fn();
    } catch (error) {
      if (!isConnectionError(error)) this.emit('error', error);
      if (!this.closing && delayInMs) await setTimeout(delayInMs);
      return undefined;
    }
  }

  /**
   * Runs an operation within a span, if there is telemetry.
   * @param destination behind the operation in the span's name; may be empty
   * @param callback gets the span, and the metadata to store with what it produces
   * @param srcPropagationMetadata of the producer that caused the operation
   */
  trace<T>(
    spanKind: SpanKind,
    operation: string,
    destination: string,
    callback: (span?: Span, dstPropagationMetadata?: string) => Promise<T> | T,
    srcPropagationMetadata?: string,
  ): Promise<T> {
    return trace(this, spanKind, operation, destination, callback, srcPropagationMetadata);
  }

  /**
   * Emits an event. What a listener throws is emitted as `error`; what then throws, too, is printed.
   * @returns whether there were listeners, and nothing that they threw had to be printed
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override emit(event: string | symbol, ...args: any[]): boolean {
    try {
      return super.emit(event, ...(args as unknown[]));
    } catch (error) {
      return emitError((thrown) => super.emit('error', thrown), error);
    }
  }

  /** Closes the connection when the commands under way are done. A second call returns the promise of the first. */
  close(): Promise<void> {
    return (this.closing ??= this[CLOSE]());
  }

  /** @internal What every `close()` ends with. */
  async [CLOSE](): Promise<void> {
    await this[COMMANDS].close();
    this.closed = true;
  }

  /** Closes the connection as soon as what was called before is answered, after 2 seconds at the latest. */
  disconnect(): Promise<void> {
    return this[COMMANDS].disconnect();
  }
}

function isConnectionError(error: unknown): boolean {
  if (error instanceof ConnectionClosedError) return true;
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  return code === 'ECONNREFUSED' || message === CONNECTION_CLOSED_ERROR_MSG || /ECONNREFUSED/.test(String(message));
}
