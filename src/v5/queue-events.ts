import { QueueEvents as BaseQueueEvents } from '../events/queue-events.js';
import { UserClient } from './user-client.js';
import type { QueueEventsListener as BaseQueueEventsListener } from '../events/queue-events-listener.js';
import type { QueueEventsOptions } from '../options/queue-events.js';
import type { Given } from './connection.js';
import type { QueueEventsListener, RedisClient } from './types.js';

// A symbol, not a `#` name: a Proxy around queue events has no such, and a subclass may call its members what it likes.
const USER_CLIENT: unique symbol = Symbol('user client');

type ArgsOf<T> = T extends (...args: infer Args) => void ? Args : never;
type KeyOf<T extends object> = Extract<keyof T, string>;

/** An event of which BullMQ 5 tells another one beside it. */
const DEDUPLICATED = 'deduplicated';

/**
 * Listens to everything that happens in a queue, with what BullMQ 6 has dropped: each `deduplicated` is also told as
 * `debounced`.
 * Source: BullMQ 5.81 `QueueEvents`.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- the interface below tells types alone: the methods are inherited
export class QueueEvents extends BaseQueueEvents {
  /** @internal */
  readonly [USER_CLIENT] = new UserClient(this, true);

  /** @param _Connection a class of connections, which BullMQ 5 takes here; not used */
  constructor(name: string, opts?: QueueEventsOptions<Given>, _Connection?: unknown) {
    super(name, opts);
  }

  /** An ioredis client for commands of the user's own; closes with the events. */
  get client(): Promise<RedisClient> {
    return this[USER_CLIENT].connected();
  }

  /** Resolves with {@link client} when the connection is usable. Without ioredis: with nothing. */
  override async waitUntilReady(): Promise<void & RedisClient> {
    await super.waitUntilReady();
    return this[USER_CLIENT].offered();
  }

  override close(): Promise<void> {
    if (this.closing) return this.closing;
    const closed = super.close();
    return (this.closing = Promise.all([closed, this[USER_CLIENT].close()]).then(() => {}));
  }

  override emit<QEL extends BaseQueueEventsListener = QueueEventsListener, U extends KeyOf<QEL> = KeyOf<QEL>>(
    event: U,
    ...args: ArgsOf<QEL[U]>
  ): boolean;
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    const emit = super.emit.bind(this) as (event: string | symbol, ...args: unknown[]) => boolean;
    // Node tells `errorMonitor`, a symbol, through here
    if (typeof event === 'string' && `${event}:`.startsWith(`${DEDUPLICATED}:`)) {
      const [{ jobId, deduplicationId: debounceId }, id] = args as [Record<string, string>, string];
      emit(event.replace(DEDUPLICATED, 'debounced'), { jobId, debounceId }, id);
    }
    return emit(event, ...args);
  }
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- see the class
export interface QueueEvents {
  on<QEL extends BaseQueueEventsListener = QueueEventsListener, U extends KeyOf<QEL> = KeyOf<QEL>>(
    event: U,
    listener: QEL[U],
  ): this;
  once<QEL extends BaseQueueEventsListener = QueueEventsListener, U extends KeyOf<QEL> = KeyOf<QEL>>(
    event: U,
    listener: QEL[U],
  ): this;
  off<QEL extends BaseQueueEventsListener = QueueEventsListener, U extends KeyOf<QEL> = KeyOf<QEL>>(
    event: U,
    listener: QEL[U],
  ): this;
}
