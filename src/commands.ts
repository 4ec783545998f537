/**
 * The connection of one `Queue`, or of a worker's jobs: commands that are not part of the worker's loop go through it.
 */
import { ConnectionClosedError } from './errors/connection-closed-error.js';
import { errorFromNative } from './errors/error-from-native.js';
import { native, type NativeQueue, type NativeQueueOptions, type QueueMessage } from './native.js';
import { Producer } from './producer.js';

/** The object whose connection this is: it emits what the connection reports. */
export interface CommandsOwner {
  readonly closing: Promise<void> | undefined;
  emit(event: string, ...args: unknown[]): boolean;
}

export class Commands {
  readonly producer = new Producer(() => this.connection());
  private connected: NativeQueue | undefined;
  private closed = false;

  constructor(
    private readonly owner: CommandsOwner,
    private readonly options: NativeQueueOptions,
  ) {}

  /**
   * The connection, opened at the first use. Adds of this tick are sent before the command about to be given, so
   * commands take effect in the order of the calls.
   * @throws ConnectionClosedError after `close()`
   */
  get native(): NativeQueue {
    this.producer.flush();
    return this.connection();
  }

  private connection(): NativeQueue {
    if (this.closed) throw new ConnectionClosedError();
    return (this.connected ??= new native.NativeQueue(this.options, (message) => this.receive(message)));
  }

  private receive(message: QueueMessage): void {
    if (message.added) this.producer.settle(message.added);
    if (message.error) this.owner.emit('error', errorFromNative(message.error));
    if (message.closed && !this.owner.closing) this.owner.emit('ioredis:close');
  }

  /** Waits for commands under way, then closes. Commands given later reject. */
  async close(): Promise<void> {
    if (!this.closed) this.producer.flush();
    this.closed = true;
    await this.connected?.close();
    this.producer.abandon();
  }

  /** Closes at once; commands under way reject. */
  disconnect(): void {
    this.closed = true;
    this.connected?.disconnect();
    this.producer.abandon();
  }
}
