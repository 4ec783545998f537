/** Default message of {@link RateLimitError}, and the text by which a worker recognises it. */
export const RATE_LIMIT_ERROR = 'bullmq:rateLimitExceeded';

/**
 * Thrown by a processor to put its job back at the front of the waiting list without counting an attempt. Recognised by its
 * message: with any other message the job fails like after any other error.
 * Source: BullMQ 6.7.0 `RateLimitError`.
 */
export class RateLimitError extends Error {
  constructor(message: string = RATE_LIMIT_ERROR) {
    super(message);
    this.name = this.constructor.name;
  }
}
