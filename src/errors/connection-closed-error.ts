/** Message of {@link ConnectionClosedError}. */
export const CONNECTION_CLOSED_ERROR_MSG = 'Connection is closed.';

/**
 * A command was given to a `Queue`, `Worker` or `QueueEvents` that is closed.
 * Source: BullMQ 6.7.0 `ConnectionClosedError`.
 */
export class ConnectionClosedError extends Error {
  /** What closed it, if that is known. */
  declare readonly cause?: unknown;

  constructor(message: string = CONNECTION_CLOSED_ERROR_MSG, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConnectionClosedError';
  }
}
