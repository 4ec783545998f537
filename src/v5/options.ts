/** Options of the classes, as BullMQ 5 names them. Source: BullMQ 5.81. */
import type { ConnectionOptions } from './connection.js';
import type {
  KeyPrefixOptions,
  QueueBaseOptions as BaseQueueBaseOptions,
  QueueOptions as BaseQueueOptions,
  RepeatBaseOptions as BaseRepeatBaseOptions,
} from '../options/queue.js';
import type { WorkerOptions as BaseWorkerOptions } from '../options/worker.js';
import type { Telemetry } from './telemetry.js';

/** Options with telemetry as BullMQ 5 takes it. */
type WithTelemetry<O> = Omit<O, 'telemetry'> & {
  /** Receives spans and metrics. */
  telemetry?: Telemetry;
};

/* eslint-disable @typescript-eslint/no-empty-object-type -- interfaces, so that programs can extend and merge them */

/** Options of every class that talks to a queue. */
export interface QueueBaseOptions<ConnectionOptionsType = ConnectionOptions>
  extends WithTelemetry<BaseQueueBaseOptions<ConnectionOptionsType>>, KeyPrefixOptions {}

/** Options of `Queue`. */
export interface QueueOptions<ConnectionOptionsType = ConnectionOptions> extends WithTelemetry<
  BaseQueueOptions<ConnectionOptionsType>
> {}

/** Options of `Worker`. */
export interface WorkerOptions<ConnectionOptionsType = ConnectionOptions> extends WithTelemetry<
  BaseWorkerOptions<ConnectionOptionsType>
> {}

/** Options of `Repeat` and `JobScheduler`. */
export interface RepeatBaseOptions<ConnectionOptionsType = ConnectionOptions> extends WithTelemetry<
  BaseRepeatBaseOptions<ConnectionOptionsType>
> {}
/* eslint-enable @typescript-eslint/no-empty-object-type */
