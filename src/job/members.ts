/** Members of jobs that other modules use, as `connection/members.ts` has those of queues: a program may call members of its jobs what it likes. */

export const ADOPT_OPTIONS: unique symbol = Symbol.for('chasquimq.job.adopt options');
export const SHARE_OPTIONS: unique symbol = Symbol.for('chasquimq.job.share options');
export const CHANGED_OPTS: unique symbol = Symbol.for('chasquimq.job.changed opts');
export const OPTIONS_TEXT: unique symbol = Symbol.for('chasquimq.job.options text');
export const RECORD_RESULT: unique symbol = Symbol.for('chasquimq.job.record result');
export const RECORD_COMPLETION: unique symbol = Symbol.for('chasquimq.job.record completion');
export const RECORD_TRACE: unique symbol = Symbol.for('chasquimq.job.record trace');
export const RECORD_FAILURE: unique symbol = Symbol.for('chasquimq.job.record failure');
export const AS_STORED: unique symbol = Symbol.for('chasquimq.job.as stored');
