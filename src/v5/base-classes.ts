/** Classes of `chasquimq` that have nothing more here, and take options as BullMQ 5 types them. Source: BullMQ 5.81. */
import { QueueBase as BaseQueueBase } from '../queue/queue-base.js';
import { QueueGetters as BaseQueueGetters } from '../queue/queue-getters.js';
import { JobScheduler as BaseJobScheduler } from '../scheduler/job-scheduler.js';
import type { Job } from '../job/job.js';
import type { Given } from './connection.js';
import type { QueueBaseOptions, RepeatBaseOptions } from './options.js';

/** What `Queue`, `Worker` and `QueueEvents` share. */
export const QueueBase = BaseQueueBase as new (name: string, opts?: QueueBaseOptions<Given>) => BaseQueueBase;
/** What `Queue`, `Worker` and `QueueEvents` share. */
export type QueueBase = BaseQueueBase;

/** What `Queue` reads of a queue. */
export const QueueGetters = BaseQueueGetters as new <JobBase extends Job = Job>(
  name: string,
  opts?: QueueBaseOptions<Given>,
) => BaseQueueGetters<JobBase>;
/** What `Queue` reads of a queue. */
export type QueueGetters<JobBase extends Job = Job> = BaseQueueGetters<JobBase>;

/** Makes jobs again and again: the schedulers of one queue. */
export const JobScheduler = BaseJobScheduler as new (name: string, opts?: RepeatBaseOptions<Given>) => BaseJobScheduler;
/** Makes jobs again and again: the schedulers of one queue. */
export type JobScheduler = BaseJobScheduler;
