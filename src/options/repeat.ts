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
}

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
