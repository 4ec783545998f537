import type { RepeatStrategy } from '../types/repeat-strategy.js';
import type { ConnectionOptions } from './connection.js';
import type { KeyPrefixOptions, QueueBaseOptions } from './queue.js';

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

/** Options of what makes jobs repeat. */
export interface RepeatBaseOptions<ConnectionOptionsType = ConnectionOptions>
  extends QueueBaseOptions<ConnectionOptionsType>, KeyPrefixOptions {
  settings?: AdvancedRepeatOptions;
}

/** A repetition as it is stored. */
export interface RepeatableOptions {
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
}
