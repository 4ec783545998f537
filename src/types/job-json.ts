import type { JobsOptions } from '../options/job.js';
import type { JobProgress } from './job-progress.js';
import type { ParentKeys } from './parent.js';

/** A job as plain data: `data`, `returnvalue`, `stacktrace` and `failedReason` are JSON texts. Times are epoch ms. */
export interface JobJson {
  /** Id of the job. */
  id: string;
  /** Name of the job. */
  name: string;
  /** Data, JSON text. */
  data: string;
  /** Options of the job. */
  opts: JobsOptions;
  /** What `updateProgress` stored last. */
  progress: JobProgress;
  /** Tries that have ended. */
  attemptsMade: number;
  /** Times the job was started. */
  attemptsStarted: number;
  /** Time at which the job ended. */
  finishedOn?: number;
  /** Time of the last start. */
  processedOn?: number;
  /** Time of creation. */
  timestamp: number;
  /** Milliseconds to wait before the start. */
  delay?: number;
  /** 1, the most urgent, and up; 0 is none. */
  priority?: number;
  /** Why the last try failed, JSON text. */
  failedReason: string;
  /** Stack traces, JSON text. */
  stacktrace?: string;
  /** What the processor returned, JSON text. */
  returnvalue: string;
  /** The job that waits for this one. */
  parent?: ParentKeys;
  /** Key of the parent. */
  parentKey?: string;
  /** Id of the scheduler that made the job. */
  repeatJobKey?: string;
  /** The deduplication id, under its older name. */
  debounceId?: string;
  /** The deduplication id. */
  deduplicationId?: string;
  /** Reason with which the job will fail as soon as a worker takes it. */
  deferredFailure?: string;
  /** The `name` of the worker that took the job last. */
  processedBy?: string;
  /** Times the job was recovered from a lost worker. */
  stalledCounter: number;
}

/** {@link JobJson} with what a sandboxed processor needs to know of the queue. */
export type JobJsonSandbox = JobJson & {
  /** Name of the queue. */
  queueName: string;
  /** `<prefix>:<name>` of the queue. */
  queueQualifiedName: string;
  /** Prefix of the queue. */
  prefix: string;
};
