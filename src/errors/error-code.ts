/**
 * The `code` of an error raised by the engine.
 * Source: BullMQ 6.7.0 `ErrorCode`.
 */
export enum ErrorCode {
  /** The job is not there, or is there no more. */
  JobNotExist = -1,
  /** The worker does not hold the job: its lease has run out, or the job is in the waiting list again. */
  JobLockNotExist = -2,
  /** The job is not in the state that the call needs. */
  JobNotInState = -3,
  /** The job has children that have not ended. */
  JobPendingChildren = -4,
  /** The parent is not there. */
  ParentJobNotExist = -5,
  /** Another worker holds the job. */
  JobLockMismatch = -6,
  /** The job is there, and has another parent. */
  ParentJobCannotBeReplaced = -7,
  /** A job scheduler made the job, and keeps it. */
  JobBelongsToJobScheduler = -8,
  /** The job has children that failed. */
  JobHasFailedChildren = -9,
  /** There is a job with the id of the scheduler's next one. */
  SchedulerJobIdCollision = -10,
  /** There are jobs with the ids of the scheduler's next one and of the one that follows it. */
  SchedulerJobSlotsBusy = -11,
}
