/**
 * Somebody has cancelled the job (`queue.cancelJob`). A job that did not run fails with this text; of one that runs the signal is aborted with this error.
 */
export class JobCancelledError extends Error {
  /** `ERR_JOB_CANCELLED`. */
  readonly code = 'ERR_JOB_CANCELLED';

  constructor(
    /** Why; empty where nobody has said it. */
    readonly reason: string = '',
  ) {
    // as lua/lists/cancel.lua words it
    super(reason === '' ? 'The job was cancelled' : `The job was cancelled: ${reason}`);
    this.name = new.target.name;
  }
}
