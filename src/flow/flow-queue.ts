import { COMMANDS } from '../connection/members.js';
import type { Commands } from '../connection/commands.js';
import type { KeyPrefixOptions, QueueBaseOptions } from '../options/queue.js';
import type { JobQueue } from '../job/minimal-queue.js';
import { trace } from '../telemetry/trace.js';
import type { Span, SpanKind, Telemetry } from '../types/telemetry.js';

/** The producer, as its queues see it. */
interface Owner {
  readonly closing: Promise<void> | undefined;
  readonly opts: { telemetry?: Telemetry };
  emit(event: 'error', error: Error): boolean;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: string | symbol, listener: (...args: unknown[]) => void): unknown;
  waitUntilReady(): Promise<void>;
}

/** The queue of a flow's jobs, as those need it. Their commands go by the connection of the producer. */
export class FlowQueue implements JobQueue {
  readonly qualifiedName: string;
  readonly opts: QueueBaseOptions<unknown> & KeyPrefixOptions;
  // not enumerable: jobs show their queue to whoever spreads them, and the options of the owner hold a password
  readonly #owner: Owner;
  readonly #open: () => Commands;
  #opened: Commands | undefined = undefined;

  constructor(
    owner: Owner,
    readonly prefix: string,
    readonly name: string,
    open: () => Commands,
  ) {
    this.#owner = owner;
    this.#open = open;
    this.qualifiedName = `${prefix}:${name}`;
    this.opts = { prefix, connection: undefined };
  }

  toKey = (type: string): string => `${this.qualifiedName}:${type}`;

  get closing(): Promise<void> | undefined {
    return this.#owner.closing;
  }

  get [COMMANDS](): Commands {
    return (this.#opened ??= this.#open());
  }

  emit(event: string | symbol, ...args: unknown[]): boolean {
    return (this.#owner.emit as (event: string | symbol, ...args: unknown[]) => boolean).call(
      this.#owner,
      event,
      ...args,
    );
  }

  on(event: string | symbol, listener: (...args: unknown[]) => void): this {
    this.#owner.on(event as 'error', listener);
    return this;
  }

  removeListener(event: string | symbol, listener: (...args: unknown[]) => void): this {
    this.#owner.removeListener(event, listener);
    return this;
  }

  waitUntilReady(): Promise<void> {
    return this.#owner.waitUntilReady();
  }

  trace<T>(
    spanKind: SpanKind,
    operation: string,
    destination: string,
    callback: (span?: Span, metadata?: string) => Promise<T> | T,
    metadata?: string,
  ): Promise<T> {
    const traced = { name: this.name, opts: this.#owner.opts };
    return trace(traced, spanKind, operation, destination, callback, metadata);
  }
}
