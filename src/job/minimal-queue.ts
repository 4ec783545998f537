import type { COMMANDS } from '../connection/members.js';
import type { Commands } from '../connection/commands.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { QueueBaseOptions } from '../options/queue.js';
import type { Span, SpanKind } from '../types/telemetry.js';

/**
 * What a `Job` needs of the queue or worker it belongs to. `Queue`, `Worker` and objects that inherit from one qualify.
 * Source: BullMQ 6.7.0 `MinimalQueue`.
 */
export interface MinimalQueue<ConnectionOptionsType = ConnectionOptions> {
  /** Name of the queue. */
  readonly name: string;
  /** `<prefix>:<name>`. */
  readonly qualifiedName: string;
  /** The options given. */
  opts: QueueBaseOptions<ConnectionOptionsType>;
  /** The promise of `close()`, once it was called. */
  closing: Promise<void> | undefined;
  /** `<qualified name>:<type>`. */
  toKey: (type: string) => string;
  /** @internal The connection that carries the commands of this queue's jobs. */
  readonly [COMMANDS]: Commands;
  /* eslint-disable @typescript-eslint/no-explicit-any -- EventEmitter's own signature, of which listeners are subtypes */
  /** As of an `EventEmitter`. */
  emit(event: string | symbol, ...args: any[]): boolean;
  /** As of an `EventEmitter`. */
  on(event: string | symbol, listener: (...args: any[]) => void): this;
  /** As of an `EventEmitter`. */
  removeListener(event: string | symbol, listener: (...args: any[]) => void): this;
  /* eslint-enable @typescript-eslint/no-explicit-any */
  /** Resolves when the connection is usable. */
  waitUntilReady(): Promise<void>;
  /** Runs an operation within a span, if there is telemetry. */
  trace<T>(
    spanKind: SpanKind,
    operation: string,
    destination: string,
    callback: (span?: Span, dstPropagationMetadata?: string) => Promise<T> | T,
    srcPropagationMetadata?: string,
  ): Promise<T>;
}

/** The queue of a job, whatever its connection. */
export type JobQueue = MinimalQueue<unknown>;
