/** What a worker and the children that run its processor tell each other. */
import type { JobJsonSandbox } from '../types/job-json.js';
import type { PlainError } from './plain-error.js';

/** Calls on the job that the processor makes and the worker carries out, in order; one that fails, fails the job. */
export const TOLD = ['updateProgress', 'log', 'moveToDelayed', 'moveToWait', 'updateData'] as const;

/** Calls that are answered. */
export const ASKED = [
  'moveToWaitingChildren',
  'getChildrenValues',
  'getIgnoredChildrenFailures',
  'getDependencies',
  'getDependenciesCount',
] as const;

export type Told = (typeof TOLD)[number];
export type Asked = (typeof ASKED)[number];

/** What the processor has said of one job of a batch, by its place there. */
export interface SaidOfOne {
  of: number;
  result?: unknown;
  error?: PlainError;
}

export type ToChild =
  | { cmd: 'init'; file: string }
  /** `behind`: the jobs behind the first one of a batch. */
  | { cmd: 'start'; job: JobJsonSandbox; token?: string; behind?: { job: JobJsonSandbox; token?: string }[] }
  /** `of`: one job of a batch; else the call of the processor. `error`: the reason, where it is an error. */
  | { cmd: 'cancel'; reason?: string; error?: PlainError; of?: number }
  | { cmd: 'answer'; question: number; value?: unknown; error?: PlainError }
  /** To threads, which hear no signals. */
  | { cmd: 'stop' };

export type ToParent =
  | { cmd: 'ready' }
  | { cmd: 'broken'; error: PlainError; leaves?: true }
  | { cmd: 'completed'; value: unknown; said?: SaidOfOne[] }
  /** `leaves`: nothing caught the error, and the child is about to exit. */
  | { cmd: 'failed'; error: PlainError; leaves?: true; said?: SaidOfOne[] }
  /** `of`: one job of a batch, unless it is the first. `late`: the job it is about, as it was at its start, when its run has ended. */
  | { cmd: 'call'; method: Told | Asked; args: unknown[]; question?: number; of?: number; late?: JobJsonSandbox };
