import type { JobSchedulerTemplateOptions } from '../options/job.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */

/** Template of a job scheduler's jobs. */
export interface JobSchedulerTemplateJson<D = any> {
  data?: D;
  opts?: JobSchedulerTemplateOptions;
}

/** A job scheduler as plain data; times are epoch milliseconds. */
export interface JobSchedulerJson<D = any> {
  key: string;
  name: string;
  id?: string | null;
  iterationCount?: number;
  limit?: number;
  startDate?: number;
  endDate?: number;
  tz?: string;
  pattern?: string;
  every?: number;
  next?: number;
  offset?: number;
  template?: JobSchedulerTemplateJson<D>;
}
