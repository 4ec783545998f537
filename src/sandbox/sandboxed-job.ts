import type { JobsOptions, MoveToWaitingChildrenOpts } from '../options/job.js';
import type { JobJsonSandbox } from '../types/job-json.js';
import type { JobProgress } from '../types/job-progress.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped jobs stay untyped */

/** A job as a processor in a file sees it: plain data, and the calls that its worker carries out for it. */
export interface SandboxedJob<T = any, R = any> extends Omit<JobJsonSandbox, 'data' | 'opts' | 'returnvalue'> {
  data: T;
  opts: JobsOptions;
  queueQualifiedName: string;
  returnValue: R;
  updateProgress: (value: JobProgress) => Promise<void>;
  updateData: (data: T) => Promise<void>;
  log: (row: string) => void;
  moveToDelayed: (timestamp: number, token?: string) => Promise<void>;
  moveToWait: (token?: string) => Promise<void>;
  moveToWaitingChildren: (token?: string, opts?: MoveToWaitingChildrenOpts) => Promise<boolean>;
  getChildrenValues: <CT = any>() => Promise<{ [jobKey: string]: CT }>;
  getIgnoredChildrenFailures: () => Promise<{ [jobKey: string]: string }>;
  getDependenciesCount: (opts?: DependencyFlags) => Promise<Partial<Record<keyof DependencyFlags, number>>>;
}

interface DependencyFlags {
  failed?: boolean;
  ignored?: boolean;
  processed?: boolean;
  unprocessed?: boolean;
}

/** What the file of a processor exports. */
export type SandboxedJobProcessor<T = any, R = any> =
  | ((job: SandboxedJob<T, R>) => R | PromiseLike<R>)
  | ((job: SandboxedJob<T, R>, callback: (error: unknown, result: R) => void) => void);
