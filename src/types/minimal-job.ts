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
  /** As `name` of a `Job`. */
  name: NameType;
  /** As `data` of a `Job`. */
  data: DataType;
  /** As `opts` of a `Job`. */
  opts: JobsOptions;
  /** As `id` of a `Job`. */
  id?: string;
  /** As `progress` of a `Job`. */
  progress: ProgressType;
  /** As `returnvalue` of a `Job`. */
  returnvalue: ReturnType;
  /** As `stacktrace` of a `Job`. */
  stacktrace: string[] | null;
  /** As `delay` of a `Job`. */
  delay: number;
  /** As `timestamp` of a `Job`. */
  timestamp: number;
  /** As `attemptsMade` of a `Job`. */
  attemptsMade: number;
  /** As `failedReason` of a `Job`. */
  failedReason: string;
  /** As `finishedOn` of a `Job`. */
  finishedOn?: number;
  /** As `processedOn` of a `Job`. */
  processedOn?: number;
  /** As `parentKey` of a `Job`. */
  parentKey?: string;
  /** As `parent` of a `Job`. */
  parent?: ParentKeys;
  /** As `repeatJobKey` of a `Job`. */
  repeatJobKey?: string;
  /** As `asJSON` of a `Job`. */
  asJSON(): JobJson;
  /** As `asJSONSandbox` of a `Job`. */
  asJSONSandbox(): JobJsonSandbox;
  /** As `updateData` of a `Job`. */
  updateData(data: DataType): Promise<void>;
  /** As `updateProgress` of a `Job`. */
  updateProgress(progress: ProgressType): Promise<void>;
  /** As `log` of a `Job`. */
  log(logRow: string): Promise<number>;
  /** As `queueName` of a `Job`. */
  get queueName(): string;
  /** As `prefix` of a `Job`. */
  get prefix(): string;
  /** As `queueQualifiedName` of a `Job`. */
  get queueQualifiedName(): string;
}
/* eslint-enable @typescript-eslint/no-explicit-any */
