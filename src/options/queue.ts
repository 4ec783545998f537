import type { RepeatStrategy } from '../types/repeat-strategy.js';
import type { Telemetry } from '../types/telemetry.js';
import type { ConnectionOptions } from './connection.js';
import type { DefaultJobOptions } from './job.js';

/** Options of every class that talks to a queue. Source: BullMQ 6.7.0 `QueueBaseOptions`. */
export interface QueueBaseOptions<ConnectionOptionsType = ConnectionOptions> {
  /** Where the server is; see `ConnectionOptions`. */
  connection: ConnectionOptionsType;
  /** @deprecated not in use */
  blockingConnection?: boolean;
  /**
   * Does not check the server's version.
   * @defaultValue false
   */
  skipVersionCheck?: boolean;
  /** Receives spans and metrics. */
  telemetry?: Telemetry;
  /**
   * With `connection.enableOfflineQueue: false`, commands do not even wait for the first connection: they fail at once.
   * @defaultValue false
   */
  skipWaitingForReady?: boolean;
}

/** Source: BullMQ 6.7.0 `KeyPrefixOptions`. */
export interface KeyPrefixOptions {
  /**
   * Namespace of the queue: queues of one name and different prefixes share nothing.
   * @defaultValue bull
   */
  prefix?: string;
}

/** @deprecated Use KeyPrefixOptions. */
export type RedisKeyPrefixOptions = KeyPrefixOptions;

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
  /** Settings of job schedulers. */
  settings?: AdvancedRepeatOptions;
}

/** Options of `Queue`. Source: BullMQ 6.7.0 `QueueOptions`. */
export interface QueueOptions<ConnectionOptionsType = ConnectionOptions>
  extends QueueBaseOptions<ConnectionOptionsType>, KeyPrefixOptions {
  /** Options for each job that does not set them itself. */
  defaultJobOptions?: DefaultJobOptions;
  /** Settings of the queue's Redis streams. */
  streams?: {
    /** The log of events. */
    events: {
      /**
       * Approximate cap of the queue's event stream. It is stored with the queue: the Queue constructed last decides.
       * @defaultValue 10000
       */
      maxLen: number;
    };
  };
  /**
   * Does not write the queue's meta (version and cap of the event stream).
   * @defaultValue false
   */
  skipMetasUpdate?: boolean;
  /** Settings of job schedulers. */
  settings?: AdvancedRepeatOptions;
  /**
   * Jobs that `add` and `addBulk` may have sent without an answer yet. Above that they reject until some are answered. This bounds the
   * memory of a program that adds faster than the server takes jobs, or while the server cannot be reached. Not in BullMQ.
   * @defaultValue 1000000
   */
  maxPendingAdds?: number;
}

/** Options of `queue.obliterate`. */
export interface ObliterateOpts {
  /**
   * Obliterates even while jobs are active.
   * @defaultValue false
   */
  force?: boolean;
  /**
   * Number of jobs removed in one step.
   * @defaultValue 1000
   */
  count?: number;
}

/** Options of `FlowProducer`. */
export interface FlowProducerOptions<ConnectionOptionsType = ConnectionOptions>
  extends QueueBaseOptions<ConnectionOptionsType>, KeyPrefixOptions {}
