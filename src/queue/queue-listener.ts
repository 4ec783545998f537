import type { Job } from '../job/job.js';
import type { IoredisListener } from '../types/ioredis-listener.js';
import type { JobProgress } from '../types/job-progress.js';

/** Events of a `Queue` object about what it did itself. Source: BullMQ 6.7.0 `QueueListener`. */
export interface QueueListener<JobBase extends Job = Job> extends IoredisListener {
  /** `clean` has removed a batch of jobs. */
  cleaned: (jobs: string[], type: string) => void;
  /** A connection failed, or a listener threw. */
  error: (err: Error) => void;
  /** `pause` was called. */
  paused: () => void;
  /** Progress of a job was stored: by its id (`updateJobProgress`) or by the job itself. */
  progress: (jobId: string, progress: JobProgress) => void;
  /** A job was removed: its id (`remove`) or the job itself. */
  removed: (jobId: string) => void;
  /** `resume` was called. */
  resumed: () => void;
  /** `add` has added a job, in whatever state. */
  waiting: (job: JobBase) => void;
}
