import type { ConnectionOptions } from './connection.js';
import type { KeyPrefixOptions, QueueBaseOptions } from './queue.js';

/** Options of `QueueEvents`. Source: BullMQ 6.7.0 `QueueEventsOptions`. */
export interface QueueEventsOptions<ConnectionOptionsType = ConnectionOptions>
  extends Omit<QueueBaseOptions<ConnectionOptionsType>, 'telemetry'>, KeyPrefixOptions {
  /**
   * Starts listening at construction.
   * @defaultValue true
   */
  autorun?: boolean;
  /**
   * Position after which to start: events with a later id are delivered. `0-0` is the beginning of the log.
   * @defaultValue $, only events from now on
   */
  lastEventId?: string;
  /**
   * Milliseconds that one read waits for events.
   * @defaultValue 10000
   */
  blockingTimeout?: number;
}

/** Options of `QueueEventsProducer`. */
export type QueueEventsProducerOptions<ConnectionOptionsType = ConnectionOptions> = Omit<
  QueueBaseOptions<ConnectionOptionsType>,
  'telemetry'
> &
  KeyPrefixOptions;
