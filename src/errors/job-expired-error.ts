import { UnrecoverableError } from './unrecoverable-error.js';

/** `failedReason` of a job that has expired. It is what the functions in the server write (`lua/rules/expiry.lua`). */
export const JOB_EXPIRED_ERROR = 'job expired before it started';

/** The job had not started by the time that its option `expireAfter` names. It has failed for good, and never ran. */
export class JobExpiredError extends UnrecoverableError {
  /** `ERR_JOB_EXPIRED`. */
  readonly code = 'ERR_JOB_EXPIRED';

  constructor() {
    super(JOB_EXPIRED_ERROR);
  }
}
