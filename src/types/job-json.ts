import type { JobsOptions } from '../options/job.js';
import type { JobProgress } from './job-progress.js';
import type { ParentKeys } from './parent.js';

/** A job as plain data: `data`, `returnvalue`, `stacktrace` and `failedReason` are JSON texts. Times are epoch ms. */
export interface JobJson {
  id: string;
  name: string;
  data: string;
  opts: JobsOptions;
  progress: JobProgress;
  attemptsMade: number;
  attemptsStarted: number;
  finishedOn?: number;
  processedOn?: number;
  timestamp: number;
  delay?: number;
  priority?: number;
  failedReason: string;
  stacktrace?: string;
  returnvalue: string;
  parent?: ParentKeys;
  parentKey?: string;
  repeatJobKey?: string;
  debounceId?: string;
  deduplicationId?: string;
  deferredFailure?: string;
  processedBy?: string;
  stalledCounter: number;
}

/** {@link JobJson} with what a sandboxed processor needs to know of the queue. */
export type JobJsonSandbox = JobJson & {
  queueName: string;
  queueQualifiedName: string;
  prefix: string;
};
