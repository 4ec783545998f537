import { COMMANDS } from '../connection/members.js';
import type { Backend, BackendFactory } from '../connection/backend.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { QueueEventsProducerOptions } from '../options/queue-events.js';
import { QueueBase } from '../queue/queue-base.js';
import type { GivenConnection } from '../types/given-connection.js';

/** Number of events the log is trimmed to, about, unless the caller says otherwise. */
const MAX_EVENTS = 1000;

/**
 * Adds events of the user's own to a queue's event log; `QueueEvents` emits them like any other.
 * Source: BullMQ 6.7.0 `QueueEventsProducer`.
 */
export class QueueEventsProducer<B = Backend, ConnectionOptionsType = ConnectionOptions> extends QueueBase<
  B,
  ConnectionOptionsType
> {
  /** @throws as `Queue` */
  constructor(
    name: string,
    opts?: QueueEventsProducerOptions<GivenConnection<ConnectionOptionsType>>,
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
  ) {
    super(name, { connection: {} as GivenConnection<ConnectionOptionsType>, ...opts }, backendFactory);
    this[COMMANDS].open();
  }

  /**
   * Publishes an event.
   * @param argsObj `eventName`, and the event's fields, which listeners get as texts; one with a `jobId` is also emitted as
   * `<eventName>:<jobId>`
   * @param maxEvents number of events the log is trimmed to, about
   * @throws (rejects) TypeError for a field that is an object; RangeError for a `maxEvents` that is no number of 0 or more
   */
  async publishEvent<T extends { eventName: string }>(argsObj: T, maxEvents = MAX_EVENTS): Promise<void> {
    const { eventName, ...given } = argsObj;
    // As in BullMQ a field of this name is the event's name.
    const { event = eventName, ...fields } = given as Record<string, unknown>;
    const most = Number(maxEvents);
    if (!(most >= 0)) throw new RangeError('maxEvents must be a number of 0 or more');
    const texts = Object.entries(fields).flatMap(([field, value]) => [field, toText(field, value)]);
    await this[COMMANDS].native.publishEvent(Date.now(), toText('eventName', event), texts, most);
  }
}

function toText(field: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'object' && !(value instanceof Date) && !Buffer.isBuffer(value)) {
    throw new TypeError(`The field "${field}" of an event must be a text or a number: use JSON.stringify`);
  }
  // eslint-disable-next-line @typescript-eslint/no-base-to-string -- what is left has a text of its own
  return String(value);
}
