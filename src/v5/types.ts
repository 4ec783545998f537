/** Types that BullMQ 5 has and 6 has dropped or narrowed. Source: BullMQ 5.81. */
import type {
  BaseJobOptions as BaseBaseJobOptions,
  CompressableJobOptions as BaseCompressableJobOptions,
  DeduplicationOptions,
} from '../options/job.js';
import type { RepeatOptions as BaseRepeatOptions } from '../options/repeat.js';
import type { QueueEventsListener as BaseQueueEventsListener } from '../events/queue-events-listener.js';
import type { JobState } from '../types/job-state.js';

/* eslint-disable @typescript-eslint/ban-ts-comment -- ioredis is an optional peer: without it, these types are `any` */
/** A client of the ioredis that the program has installed. Source: BullMQ 5.81 `RedisClient`. */
/*! stays in the declarations
 * @ts-ignore */
export type RedisClient = import('ioredis').Redis | import('ioredis').Cluster;
/* eslint-enable @typescript-eslint/ban-ts-comment */

/** What getters and counts accept; `paused` is the waiting list of a paused queue. */
export type JobType = JobState | 'paused' | 'repeat' | 'wait';

/** When a job repeats. */
export interface RepeatOptions extends BaseRepeatOptions {
  /** Reads `pattern` in UTC. Means the same as `tz: 'UTC'`. */
  utc?: boolean;
  /** Has no effect, as in BullMQ 5. */
  currentDate?: Date | string | number;
}

/** Options of one job, without those of {@link CompressableJobOptions}. */
export interface BaseJobOptions extends BaseBaseJobOptions {
  /** Adds the job again and again: makes a job scheduler. */
  repeat?: RepeatOptions;
}

/** Options of one job that BullMQ stores under short names. */
export type CompressableJobOptions = BaseCompressableJobOptions & {
  /**
   * The same as `deduplication`.
   * @deprecated Use `deduplication`.
   */
  debounce?: DeduplicationOptions;
};

/** Options of `queue.add`. */
export type JobsOptions = BaseJobOptions & CompressableJobOptions;

/** Options of one job of `queue.addBulk`. */
export type BulkJobOptions = Omit<JobsOptions, 'repeat'>;

/** What makes jobs again and again, as `getRepeatableJobs` tells it. */
export type RepeatableJob = {
  /** By which it is removed. */
  key: string;
  /** Name of its jobs. */
  name: string;
  /** Not told, as in BullMQ 5.81: the `jobId` is part of the key. */
  id?: string | null;
  /** When it ends, epoch milliseconds. */
  endDate: number | null;
  /** IANA time zone of `pattern`. */
  tz: string | null;
  /** Cron pattern. */
  pattern: string | null;
  /** Milliseconds between runs. */
  every?: string | null;
  /** Time of the next run, epoch milliseconds. */
  next?: number;
};

/** Events of a `QueueEvents`, with what is told beside `deduplicated`. */
export interface QueueEventsListener extends BaseQueueEventsListener {
  /**
   * A job was not added: one with its deduplication id is there.
   * @deprecated Use `deduplicated`.
   */
  debounced: (args: { jobId: string; debounceId: string }, id: string) => void;
}
