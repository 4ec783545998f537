/** What is told of jobs, and who handles them: these jobs have what BullMQ 6 has dropped. Source: BullMQ 5.81. */
import type { Job } from './job.js';
import type { JobProgress } from '../types/job-progress.js';
import type { QueueListener as BaseQueueListener } from '../queue/queue-listener.js';
import type { WorkerListener as BaseWorkerListener } from '../worker/worker-listener.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */

/** Events of a `Queue` object about what it did itself. */
export interface QueueListener<JobBase extends Job = Job> extends Omit<BaseQueueListener, 'waiting'> {
  /** `add` has added a job, in whatever state. */
  waiting: (job: JobBase) => void;
}

/** Handles one job. `signal` is given only to a function that declares three parameters. */
export type Processor<T = any, R = any, N extends string = string, P extends JobProgress = JobProgress> = (
  job: Job<T, R, N, P>,
  token?: string,
  signal?: AbortSignal,
) => Promise<R>;

/** Events of a `Worker` object about its own jobs. */
export interface WorkerListener<
  DataType = any,
  ResultType = any,
  NameType extends string = string,
  ProgressType extends JobProgress = JobProgress,
> extends Omit<BaseWorkerListener, 'active' | 'completed' | 'failed' | 'progress'> {
  /** The job is about to be processed. */
  active: (job: Job<DataType, ResultType, NameType, ProgressType>, prev: string) => void;
  /** The job's result is stored. */
  completed: (job: Job<DataType, ResultType, NameType, ProgressType>, result: ResultType, prev: string) => void;
  /** A try of the job has failed, whether or not there will be another. */
  failed: (job: Job<DataType, ResultType, NameType, ProgressType> | undefined, error: Error, prev: string) => void;
  /** `job.updateProgress` was called. */
  progress: (job: Job<DataType, ResultType, NameType, ProgressType>, progress: ProgressType) => void;
}
/* eslint-enable @typescript-eslint/no-explicit-any */
