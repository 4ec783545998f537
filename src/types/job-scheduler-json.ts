import type { JobSchedulerTemplateOptions } from '../options/job.js';
import type { SchedulerCatchUp, SchedulerOverlap } from '../options/repeat.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */

/** Template of a job scheduler's jobs. */
export interface JobSchedulerTemplateJson<D = any> {
  /** Data of the jobs. */
  data?: D;
  /** Options of the jobs. */
  opts?: JobSchedulerTemplateOptions;
}

/** A job scheduler as plain data; times are epoch milliseconds. */
export interface JobSchedulerJson<D = any> {
  /** Id of the scheduler. */
  key: string;
  /** Name of the jobs. */
  name: string;
  /** Not in use. */
  id?: string | null;
  /** Jobs made so far. */
  iterationCount?: number;
  /** Jobs to make in all. */
  limit?: number;
  /** No job before this time. */
  startDate?: number;
  /** No job after this time. */
  endDate?: number;
  /** Time zone of `pattern`. */
  tz?: string;
  /** Cron pattern. */
  pattern?: string;
  /** Milliseconds between jobs. */
  every?: number;
  /** Time of the next job. */
  next?: number;
  /** Milliseconds by which the slots of `every` are shifted. */
  offset?: number;
  /** What becomes of a run that is due while the one before has not ended. */
  overlap?: SchedulerOverlap;
  /** What becomes of runs that were missed. */
  catchUp?: SchedulerCatchUp;
  /** Most milliseconds by which each run is late. */
  jitter?: number;
  /** It is paused: `next` is when it would run. */
  paused?: true;
  /** What the jobs are made of. */
  template?: JobSchedulerTemplateJson<D>;
}
