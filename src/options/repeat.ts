import type { RepeatStrategy } from '../types/repeat-strategy.js';

/** When a job scheduler runs. Source: BullMQ 6.7.0 `RepeatOptions`. */
export interface RepeatOptions {
  /** No run after this date. */
  endDate?: Date | string | number;
  /** No run before this date. */
  startDate?: Date | string | number;
  /** Cron pattern. */
  pattern?: string;
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
  prevMillis?: number;
  /** @deprecated not in use */
  jobId?: string;
  /** IANA time zone of `pattern`. */
  tz?: string;
}

/** Settings of job schedulers. */
export interface AdvancedRepeatOptions {
  /** Computes the next run of custom patterns. */
  repeatStrategy?: RepeatStrategy;
  /** Has no effect. */
  repeatKeyHashAlgorithm?: string;
}
