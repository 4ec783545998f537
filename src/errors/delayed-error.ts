/** Default message of {@link DelayedError}. */
export const DELAYED_ERROR = 'bullmq:movedToDelayed';

/**
 * Thrown by a processor that moved its own job to `delayed` with `job.moveToDelayed`: the worker then leaves the job
 * alone and takes the next one.
 * Source: BullMQ 6.7.0 `DelayedError`.
 */
export class DelayedError extends Error {
  constructor(message: string = DELAYED_ERROR) {
    super(message);
    this.name = this.constructor.name;
  }
}
