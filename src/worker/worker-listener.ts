import type { Job } from '../job/job.js';
import type { IoredisListener } from '../types/ioredis-listener.js';
import type { JobProgress } from '../types/job-progress.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */

/** Events of a `Worker` object about its own jobs. Source: BullMQ 6.7.0 `WorkerListener`. */
export interface WorkerListener<
  DataType = any,
  ResultType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> extends IoredisListener {
  /** The job is about to be processed. */
  active: (job: Job<DataType, ResultType, NameType, ProgressType>, prev: string) => void;
  /** `close` is done. */
  closed: () => void;
  /** `close` was called. */
  closing: (msg: string) => void;
  /** The job's result is stored. */
  completed: (job: Job<DataType, ResultType, NameType, ProgressType>, result: ResultType, prev: string) => void;
  /** No job is waiting. */
  drained: () => void;
  /** Something other than a job failed: the connection, a step of the worker, a listener. */
  error: (failedReason: Error) => void;
  /** A try of the job has failed, whether or not there will be another. */
  failed: (job: Job<DataType, ResultType, NameType, ProgressType> | undefined, error: Error, prev: string) => void;
  /** `pause` is done. */
  paused: () => void;
  /** `job.updateProgress` was called. */
  progress: (job: Job<DataType, ResultType, NameType, ProgressType>, progress: ProgressType) => void;
  /** The worker is connected. */
  ready: () => void;
  /** `resume` was called. */
  resumed: () => void;
  /** This worker put the job of a lost worker back in the waiting list. */
  stalled: (jobId: string, prev: string) => void;
  /** The worker could not renew its lease in time. */
  lockRenewalFailed: (jobIds: string[]) => void;
  /** Not emitted: the engine renews the worker's one lease on a thread of its own. */
  locksRenewed: (data: { count: number; jobIds: string[] }) => void;
}
