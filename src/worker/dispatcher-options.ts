import type { AttemptPolicy } from '../job/attempt-policy.js';
import type { Job } from '../job/job.js';
import type { JobQueue } from '../job/minimal-queue.js';
import type { NativeWorker } from '../native/types.js';
import type { TakenIteration } from '../scheduler/iterations.js';
import type { TracedRuns } from '../telemetry/runs.js';
import type { Batches } from './batches.js';
import type { Observe } from './observe.js';
import type { TimeLimits } from './time-limits.js';

/** The worker, as the dispatcher sees it. */
export interface DispatcherOwner extends JobQueue {
  listenerCount(event: string): number;
}

export interface DispatcherOptions {
  owner: DispatcherOwner;
  policy: AttemptPolicy;
  native: Pick<NativeWorker, 'finish' | 'words' | 'mayStart' | 'heard' | 'hold' | 'takeBack'>;
  /** The `emit` of the owner's class. */
  ownEmit: DispatcherOwner['emit'];
  /** Class of the jobs handed to `process`. */
  JobClass: typeof Job;
  /** How they are made of what was read, where code of the user's makes them. */
  remake(): ((read: Job) => Job) | undefined;
  process(job: Job, token: string, signal?: AbortSignal): unknown;
  /** Makes what follows iterations of job schedulers. Gives, by id, those that must not run, as `Follower` does; never rejects. */
  follow(taken: TakenIteration[]): Promise<ReadonlyMap<string, Error | null>>;
  /** Whether `process` takes a signal; without it none is made. */
  acceptsSignal: boolean;
  /** What an observable comes to that a processor gave. */
  observe: Observe;
  /** How long jobs may run. */
  limits: Pick<TimeLimits, 'of' | 'run' | 'stop'>;
  concurrency: number;
  /** Where jobs are run in batches: what finds no room there goes back at once, as that changes from call to call. */
  batches?: Pick<Batches, 'isFull' | 'disband' | 'goesBack'> | undefined;
  /** Tokens are `<tokenPrefix>:<claim>.<slot>`: a job that is taken again gets another one. */
  tokenPrefix: string;
  /** `processedBy` of the jobs. */
  workerName: string | undefined;
  /** Spans of the jobs' runs, if there is telemetry. */
  runs?: TracedRuns | undefined;
}
