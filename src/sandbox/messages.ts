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

export type ToChild =
  | { cmd: 'init'; file: string }
  | { cmd: 'start'; job: JobJsonSandbox; token?: string }
  | { cmd: 'cancel'; reason?: string }
  | { cmd: 'answer'; question: number; value?: unknown; error?: PlainError }
  /** To threads, which hear no signals. */
  | { cmd: 'stop' };

export type ToParent =
  | { cmd: 'ready' }
  | { cmd: 'broken'; error: PlainError; leaves?: true }
  | { cmd: 'completed'; value: unknown }
  /** `leaves`: nothing caught the error, and the child is about to exit. */
  | { cmd: 'failed'; error: PlainError; leaves?: true }
  /** `late`: the job it is about, as it was at its start, when its run has ended. */
  | { cmd: 'call'; method: Told | Asked; args: unknown[]; question?: number; late?: JobJsonSandbox };
