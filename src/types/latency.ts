/**
 * Times of one kind, in milliseconds. Percentiles are rounded up to the next of 1, 1.41, 2, 2.83, 4 and so on, so the exact one is at most that, and more than
 * 0.7 of it. What took longer than 8.8 days counts as that. Null where there are none.
 */
export interface JobTimes {
  /** How many there are. */
  count: number;
  /** Exact. */
  mean: number | null;
  /** Half of them took at most so long. */
  p50: number | null;
  /** 95 in a hundred did. */
  p95: number | null;
  /** 99 in a hundred did. */
  p99: number | null;
}

/** How late a group is, as `queue.getLatency` tells it. */
export interface GroupLatency {
  /**
   * For how long the job has waited that could have started first of those that could start now, in milliseconds; null: there is none. Limits and a pause of the queue
   * do not count; groups that are paused, limited or full have none.
   */
  oldest: number | null;
  /**
   * Begin of the span, epoch ms: rounded down to a minute where it lies within three hours, to an hour within eight days, else to a day (UTC); of a group to five minutes
   * within three hours, to an hour within two days, else to a day.
   */
  from: number;
  /** End of the span, rounded up in the same way. */
  to: number;
  /** From when a job could start, that is since it was added and its delay was over, until it was taken; for each further try since its backoff was over. Not of parents. */
  waiting: JobTimes;
  /** Each run, from `processedOn` until it had completed or failed. */
  running: JobTimes;
  /** From when a job was added and its delay was over until it had completed, or failed for good, with all its tries. */
  completion: JobTimes;
  /** Jobs that completed, or failed for good, a minute of the span. */
  perMinute: number;
}

/** How late a queue is, as `queue.getLatency` tells it. */
export interface QueueLatency extends GroupLatency {
  /**
   * Jobs that were added, a minute of the span, those that were discarded as there was one like them among them. What comes while no job ends counts for the minute in which
   * the next one does.
   */
  addedPerMinute: number;
}
