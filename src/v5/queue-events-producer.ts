import { COMMANDS } from '../connection/members.js';
import { QueueEventsProducer as BaseQueueEventsProducer } from '../events/queue-events-producer.js';
import { UserClient } from './user-client.js';
import type { QueueEventsProducerOptions } from '../options/queue-events.js';
import type { RedisClient } from './types.js';

/**
 * Adds events of the user's own to a queue's event log, with what BullMQ 6 has dropped.
 * Source: BullMQ 5.81 `QueueEventsProducer`.
 */
export class QueueEventsProducer extends BaseQueueEventsProducer {
  readonly #userClient = new UserClient(this);

  /** @param _Connection a class of connections, which BullMQ 5 takes here; not used */
  constructor(name: string, opts?: QueueEventsProducerOptions, _Connection?: unknown) {
    super(name, opts);
  }

  /** An ioredis client for commands of the user's own; closes with the producer. */
  get client(): Promise<RedisClient> {
    return this.#userClient.connected();
  }

  override close(): Promise<void> {
    return (this.closing ??= Promise.all([this[COMMANDS].close(), this.#userClient.close()]).then(() => {}));
  }

  override disconnect(): Promise<void> {
    this.#userClient.disconnect();
    return super.disconnect();
  }
}
