/** Default message of {@link WaitingError}. */
export const WAITING_ERROR = 'bullmq:movedToWait';

/**
 * Thrown by a processor that moved its own job back to the waiting list with `job.moveToWait`: the worker then leaves the job
 * alone and takes the next one.
 * Source: BullMQ 6.7.0 `WaitingError`.
 */
export class WaitingError extends Error {
  constructor(message: string = WAITING_ERROR) {
    super(message);
    this.name = this.constructor.name;
  }
}
