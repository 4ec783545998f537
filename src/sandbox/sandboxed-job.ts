import type { JobsOptions, MoveToWaitingChildrenOpts } from '../options/job.js';
import type { JobJsonSandbox } from '../types/job-json.js';
import type { JobProgress } from '../types/job-progress.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped jobs stay untyped */

/** A job as a processor in a file sees it: plain data, and the calls that its worker carries out for it. */
export interface SandboxedJob<T = any, R = any> extends Omit<JobJsonSandbox, 'data' | 'opts' | 'returnvalue'> {
  /** What the job is about. */
  data: T;
  /** Options of the job. */
  opts: JobsOptions;
  /** As `Job.gid`. */
  gid?: string;
  /** `<prefix>:<name>` of the queue. */
  queueQualifiedName: string;
  /** What a run before returned. */
  returnValue: R;
  /** As `Job.updateProgress`. */
  updateProgress: (value: JobProgress) => Promise<void>;
  /** As `Job.updateData`. */
  updateData: (data: T) => Promise<void>;
  /** As `Job.log`. */
  log: (row: string) => void;
  /** As `Job.moveToDelayed`. */
  moveToDelayed: (timestamp: number, token?: string) => Promise<void>;
  /** As `Job.moveToWait`. */
  moveToWait: (token?: string) => Promise<void>;
  /** As `Job.moveToWaitingChildren`. */
  moveToWaitingChildren: (token?: string, opts?: MoveToWaitingChildrenOpts) => Promise<boolean>;
  /** As `Job.getChildrenValues`. */
  getChildrenValues: <CT = any>() => Promise<{ [jobKey: string]: CT }>;
  /** As `Job.getIgnoredChildrenFailures`. */
  getIgnoredChildrenFailures: () => Promise<{ [jobKey: string]: string }>;
  /** As `Job.getBatch`. */
  getBatch: () => SandboxedJob<T, R>[];
  /** As `Job.setResult`. */
  setResult: (result: R) => void;
  /** As `Job.setAsFailed`. */
  setAsFailed: (error: Error) => void;
  /** As `Job.signal`. */
  signal?: AbortSignal;
  /** The token of the job, of a batch: for `moveToDelayed` and the like. */
  token?: string;
  /** As `Job.getDependenciesCount`. */
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
