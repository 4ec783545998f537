import { COMMANDS } from '../connection/members.js';
import { QueueEventsProducer as BaseQueueEventsProducer } from '../events/queue-events-producer.js';
import { UserClient } from './user-client.js';
import type { QueueEventsProducerOptions } from '../options/queue-events.js';
import type { Given } from './connection.js';
import type { RedisClient } from './types.js';

// A symbol, not a `#` name: a Proxy around a producer has no such, and a subclass may call its members what it likes.
const USER_CLIENT: unique symbol = Symbol('user client');

/**
 * Adds events of the user's own to a queue's event log, with what BullMQ 6 has dropped.
 * Source: BullMQ 5.81 `QueueEventsProducer`.
 */
export class QueueEventsProducer extends BaseQueueEventsProducer {
  /** @internal */
  readonly [USER_CLIENT] = new UserClient(this);

  /** @param _Connection a class of connections, which BullMQ 5 takes here; not used */
  constructor(name: string, opts?: QueueEventsProducerOptions<Given>, _Connection?: unknown) {
    super(name, opts);
  }

  /** An ioredis client for commands of the user's own; closes with the producer. */
  get client(): Promise<RedisClient> {
    return this[USER_CLIENT].connected();
  }

  override close(): Promise<void> {
    return (this.closing ??= Promise.all([this[COMMANDS].close(), this[USER_CLIENT].close()]).then(() => {}));
  }

  override disconnect(): Promise<void> {
    this[USER_CLIENT].disconnect();
    return super.disconnect();
  }
}
