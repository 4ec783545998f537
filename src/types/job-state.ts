/** How a job can end. */
export type FinishedStatus = 'completed' | 'failed';

/** The field of a finished job that holds its result. */
export type FinishedPropValAttribute = 'returnvalue' | 'failedReason';

/** The states of a job; a job is in exactly one of them. */
export type JobState = FinishedStatus | 'active' | 'delayed' | 'prioritized' | 'waiting' | 'waiting-children';

/** What getters and counts accept: a state, or an older name that is still understood (`wait` is `waiting`). */
export type JobType = JobState | 'repeat' | 'wait';
