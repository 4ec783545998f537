/**
 * The time of a run is over (`timeout` of the job, `ttl` of the worker). The job's signal is aborted with it, and the try fails with it. All jobs of a name have one message,
 * by which failed jobs are found; `jobId` says which one it was.
 */
export class JobTimeoutError extends Error {
  /** `ERR_JOB_TIMEOUT`. */
  readonly code = 'ERR_JOB_TIMEOUT';

  constructor(
    /** Name of the job. */
    readonly jobName: string,
    /** Its id. */
    readonly jobId: string | undefined,
    /** Milliseconds that the run had. */
    readonly timeout: number,
  ) {
    super(`Job ${jobName} took longer than ${timeout} ms`);
    this.name = new.target.name;
  }
}
