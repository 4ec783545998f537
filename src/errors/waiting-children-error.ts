/** Default message of {@link WaitingChildrenError}. */
export const WAITING_CHILDREN_ERROR = 'bullmq:movedToWaitingChildren';

/**
 * Thrown by a processor that parked its own job with `job.moveToWaitingChildren`: the worker then leaves the job alone
 * and takes the next one.
 * Source: BullMQ 6.7.0 `WaitingChildrenError`.
 */
export class WaitingChildrenError extends Error {
  constructor(message: string = WAITING_CHILDREN_ERROR) {
    super(message);
    this.name = this.constructor.name;
  }
}
