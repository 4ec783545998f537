import type { JobsOptions } from '../options/job.js';

/** Describes the parent of a job. */
export interface Parent<T> {
  /** Name of the parent job. */
  name: string;
  /** Prefix of the parent's queue. */
  prefix?: string;
  /** Name of the parent's queue. */
  queue?: string;
  /** Data of the parent job. */
  data?: T;
  /** Options of the parent job. */
  opts?: JobsOptions;
}

/** Reference to a parent as it is stored with a child; the flags mirror the child's failure options. */
export interface ParentKeys {
  /** Id of the parent job. */
  id?: string;
  /** Qualified name of the parent's queue: `<prefix>:<queue>`. */
  queueKey: string;
  /** `failParentOnFailure` */
  fpof?: boolean;
  /** `removeDependencyOnFailure` */
  rdof?: boolean;
  /** `ignoreDependencyOnFailure` */
  idof?: boolean;
  /** `continueParentOnFailure` */
  cpof?: boolean;
}
