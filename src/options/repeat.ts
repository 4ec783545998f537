/** When a job scheduler runs. Source: BullMQ 6.7.0 `RepeatOptions`. */
export interface RepeatOptions {
  /** No run after this date. */
  endDate?: Date | string | number;
  /** No run before this date. */
  startDate?: Date | string | number;
  /** Cron pattern. */
  pattern?: string;
  /** Not taken by job schedulers, which have ids; `chasquimq/v5` takes it as the key. */
  key?: string;
  /** Number of runs. */
  limit?: number;
  /** Milliseconds between runs; excludes `pattern`. */
  every?: number;
  /** First run now; only with `pattern`. */
  immediately?: boolean;
  /** First value of the iteration counter. */
  count?: number;
  /** Milliseconds by which the slots of `every` are shifted. */
  offset?: number;
  /** Time of the iteration before, epoch milliseconds; set by the library. */
  prevMillis?: number;
  /** @deprecated not in use */
  jobId?: string;
  /** IANA time zone of `pattern`. */
  tz?: string;
  /**
   * What becomes of a run that is due while the one before has not ended: both run, it is skipped, or it waits for that end. Not in BullMQ.
   * @defaultValue 'allow'
   */
  overlap?: SchedulerOverlap;
  /**
   * What becomes of runs that were missed, that is, the next one was due before a worker took them. Without it the first of them runs late, and the
   * others are skipped. Not in BullMQ.
   */
  catchUp?: SchedulerCatchUp;
  /** Most milliseconds by which each run is late, always the same of one run, so that many schedulers do not run at once. Not in BullMQ. */
  jitter?: number;
}

/** What becomes of a run that is due while the one before has not ended. */
export type SchedulerOverlap = 'allow' | 'skip' | 'queue';

/** Which of the runs that were missed are made up for. */
export type SchedulerCatchUp = 'none' | 'latest' | 'all';

/** A repetition as it is stored. */
export type RepeatableOptions = {
  /** Name of the jobs. */
  name: string;
  /** Epoch milliseconds. */
  startDate?: number;
  /** Epoch milliseconds. */
  endDate?: number;
  /** IANA time zone of `pattern`. */
  tz?: string;
  /** Number of runs. */
  limit?: number;
  /** Cron pattern. */
  pattern?: string;
  /** Milliseconds between runs. */
  every?: number;
  /** Milliseconds by which the slots of `every` are shifted. */
  offset?: number;
};
