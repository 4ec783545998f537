/** Default message of {@link UnrecoverableError}. */
export const UNRECOVERABLE_ERROR = 'bullmq:unrecoverable';

/**
 * Thrown by a processor to fail its job at once, whatever attempts are left. An error of another class whose `name` is
 * `UnrecoverableError` does the same.
 * Source: BullMQ 6.7.0 `UnrecoverableError`.
 */
export class UnrecoverableError extends Error {
  constructor(message: string = UNRECOVERABLE_ERROR) {
    super(message);
    this.name = this.constructor.name;
  }
}
