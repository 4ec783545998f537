import type { JobsOptions } from '../options/job.js';
import type { JobJson, JobJsonSandbox } from './job-json.js';
import type { JobProgress } from './job-progress.js';
import type { ParentKeys } from './parent.js';

/**
 * The part of a job that a backoff strategy may rely on; see `Job` for what each member means.
 * Source: BullMQ 6.7.0 `MinimalJob`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
export interface MinimalJob<
  DataType = any,
  ReturnType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> {
  name: NameType;
  data: DataType;
  opts: JobsOptions;
  id?: string;
  progress: ProgressType;
  returnvalue: ReturnType;
  stacktrace: string[] | null;
  delay: number;
  timestamp: number;
  attemptsMade: number;
  failedReason: string;
  finishedOn?: number;
  processedOn?: number;
  parentKey?: string;
  parent?: ParentKeys;
  repeatJobKey?: string;
  asJSON(): JobJson;
  asJSONSandbox(): JobJsonSandbox;
  updateData(data: DataType): Promise<void>;
  updateProgress(progress: ProgressType): Promise<void>;
  log(logRow: string): Promise<number>;
  get queueName(): string;
  get prefix(): string;
  get queueQualifiedName(): string;
}
/* eslint-enable @typescript-eslint/no-explicit-any */
