import type { Commands } from '../connection/commands.js';
import type { QueueBaseOptions } from '../options/queue.js';

/**
 * What a `Job` needs of the queue or worker it belongs to. `Queue`, `Worker` and objects that inherit from one qualify.
 * Source: BullMQ 6.7.0 `MinimalQueue`.
 */
export interface MinimalQueue {
  readonly name: string;
  readonly qualifiedName: string;
  readonly opts: Partial<QueueBaseOptions<unknown>>;
  closing: Promise<void> | undefined;
  toKey: (type: string) => string;
  /** @internal The connection that carries the commands of this queue's jobs. */
  readonly commands: Commands;
  /* eslint-disable @typescript-eslint/no-explicit-any -- EventEmitter's own signature, of which listeners are subtypes */
  emit(event: string | symbol, ...args: any[]): boolean;
  on(event: string | symbol, listener: (...args: any[]) => void): this;
  removeListener(event: string | symbol, listener: (...args: any[]) => void): this;
  /* eslint-enable @typescript-eslint/no-explicit-any */
  waitUntilReady(): Promise<void>;
}
