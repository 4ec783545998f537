import type { IoredisListener } from '../types/ioredis-listener.js';
import type { JobProgress } from '../types/job-progress.js';

/**
 * Events of a queue, whoever caused them. `id` is the event's position in the log, usable as `lastEventId`.
 * Source: BullMQ 6.7.0 `QueueEventsListener`.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's default: results are of any type
export interface QueueEventsListener<ReturnType = any> extends IoredisListener {
  /** A worker took the job. */
  active: (args: { jobId: string; prev?: string }, id: string) => void;
  /** The job was added. */
  added: (args: { jobId: string; name: string }, id: string) => void;
  /** `queue.clean` has removed a batch of `count` jobs. */
  cleaned: (args: { count: string }, id: string) => void;
  /** The job completed. */
  completed: (args: { jobId: string; returnvalue: ReturnType; prev?: string }, id: string) => void;
  /** An add was discarded, or replaced a job, because of its deduplication id. */
  deduplicated: (args: { jobId: string; deduplicationId: string; deduplicatedJobId: string }, id: string) => void;
  /** The job waits until `delay`, epoch milliseconds. */
  delayed: (args: { jobId: string; delay: number }, id: string) => void;
  /** No job is waiting any more. */
  drained: (id: string) => void;
  /** An add was ignored because a job of its id exists. */
  duplicated: (args: { jobId: string }, id: string) => void;
  /** The events could not be read. */
  error: (args: Error) => void;
  /** The job failed for good. */
  failed: (args: { jobId: string; failedReason: string; prev?: string }, id: string) => void;
  /** `queue.pauseGroup` has paused a group, which was not. Not in BullMQ. */
  'group-paused': (args: { groupId: string }, id: string) => void;
  /** `queue.resumeGroup` has resumed a group, which was paused. Not in BullMQ. */
  'group-resumed': (args: { groupId: string }, id: string) => void;
  /** The queue was paused. */
  paused: (args: object, id: string) => void;
  /** The job's progress was stored. */
  progress: (args: { jobId: string; data: JobProgress }, id: string) => void;
  /** The job was removed by hand. */
  removed: (args: { jobId: string; prev: string }, id: string) => void;
  /** The queue was resumed. */
  resumed: (args: object, id: string) => void;
  /** The job failed for good after its last try. */
  'retries-exhausted': (args: { jobId: string; attemptsMade: string }, id: string) => void;
  /** The job was recovered from a lost worker. */
  stalled: (args: { jobId: string }, id: string) => void;
  /** The job waits. */
  waiting: (args: { jobId: string; prev?: string }, id: string) => void;
  /** The job waits for its children. */
  'waiting-children': (args: { jobId: string }, id: string) => void;
}
