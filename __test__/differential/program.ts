/**
 * What a differential program is: plain JSON, so that it can be sent to a process, shrunk and kept. It is carried out alike by
 * BullMQ and by this package (execute.ts). What JSON cannot say is written as `{ $: ... }`, see values.ts.
 */
import type { Plain, Thrown } from './values.js';

export interface Program {
  /** Where it comes from: `seed 17`, or what a kept one shows. */
  readonly name: string;
  /** How many queues there are, all of one prefix. */
  readonly queues: number;
  readonly workers: readonly WorkerPlan[];
  readonly steps: readonly Step[];
  /** One slot, no clock: the order in which jobs start is compared, too. */
  readonly ordered?: boolean;
}

export interface WorkerPlan {
  readonly queue: number;
  /**
   * Where its handlers run: beside what carries out the program (`function`), or beside the worker in a process of its own (`apart`); `process` and
   * `thread` are sandboxes. `manual` has no processor: steps take and finish its jobs.
   */
  readonly kind: 'function' | 'apart' | 'process' | 'thread' | 'manual';
  readonly concurrency: number;
  /** Other options of the worker. */
  readonly opts?: Readonly<Record<string, Plain>>;
  /** What its backoff strategy gives after the first failure, the second, ...; the last one is given ever after. */
  readonly strategy?: readonly Plain[];
}

export interface JobPlan {
  /** Its name, too. With `copies`, those are named `key#0`, `key#1`, ... */
  readonly key: string;
  readonly copies?: number;
  readonly opts?: Readonly<Record<string, Plain>>;
  /** What its handler does at each start. Beyond the last one it returns. */
  readonly script?: readonly (readonly Action[])[];
  /** In a flow. */
  readonly children?: readonly JobPlan[];
  /** In a flow: the queue it is in, that of its step by default. */
  readonly queue?: number;
}

/** What a handler does next. The first that ends the run ends the script of that run. */
export type Action =
  | { readonly do: 'wait'; readonly ms: number }
  /** Keeps the event loop. */
  | { readonly do: 'block'; readonly ms: number }
  /** Waits until a step, or another handler, gives this signal. */
  | { readonly do: 'hold'; readonly signal: string }
  | { readonly do: 'signal'; readonly signal: string }
  /** Waits until the job is cancelled. */
  | { readonly do: 'untilCancelled' }
  | { readonly do: 'return'; readonly value: Plain }
  | { readonly do: 'throw'; readonly what: Thrown; readonly text?: string }
  | { readonly do: 'moveToWait' }
  | { readonly do: 'moveToDelayed'; readonly ms: Plain }
  /** Adds children that start no sooner than the parent has moved, and waits for them. */
  | { readonly do: 'waitForChildren'; readonly queue: number; readonly jobs: readonly JobPlan[] }
  | { readonly do: 'rateLimit'; readonly ms: number }
  | { readonly do: 'setOpts'; readonly what: 'null' | 'freeze' | 'freezeOpts' }
  | { readonly do: 'setOpt'; readonly name: string; readonly value: Plain }
  /** Any method of the job; its answer is compared, unless the handler goes on without it. */
  | { readonly do: 'call'; readonly method: JobMethod; readonly args: readonly Plain[]; readonly unawaited?: boolean };

/** A method of jobs. */
export type JobMethod = string;

/** What is done from outside, one after the other. */
export type Step =
  | { readonly do: 'start'; readonly worker: number }
  | { readonly do: 'stop'; readonly worker: number; readonly force?: boolean }
  /** Ends the process of one that is apart. */
  | { readonly do: 'kill'; readonly worker: number }
  | { readonly do: 'pauseWorker' | 'resumeWorker'; readonly worker: number }
  | {
      readonly do: 'add';
      readonly queue: number;
      readonly how: 'one' | 'bulk' | 'flow';
      readonly jobs: readonly JobPlan[];
    }
  /** Upserts a scheduler, whose jobs are of that plan. */
  | {
      readonly do: 'schedule';
      readonly queue: number;
      readonly id: string;
      readonly repeat: Readonly<Record<string, Plain>>;
      readonly job: JobPlan;
    }
  /** `Date.now()` says another time. */
  | { readonly do: 'clock'; readonly ms: number }
  /** Until nothing changes any more but by further steps. */
  | { readonly do: 'settle' }
  /** Until so many handlers wait for that signal. */
  | { readonly do: 'held'; readonly signal: string; readonly times: number }
  | { readonly do: 'signal'; readonly signal: string }
  | { readonly do: 'cancel'; readonly key: string; readonly reason?: string }
  | { readonly do: 'queue'; readonly queue: number; readonly method: string; readonly args: readonly Plain[] }
  /** A method of a queue that is about a group. */
  | { readonly do: 'group'; readonly queue: number; readonly method: string; readonly args: readonly Plain[] }
  | { readonly do: 'job'; readonly key: string; readonly method: JobMethod; readonly args: readonly Plain[] }
  /** A manual worker takes a job, which is known as `as` from then on. */
  | { readonly do: 'take'; readonly worker: number; readonly as: string }
  /** It does something with it; `token` is its own one, or a wrong one. */
  | {
      readonly do: 'finish';
      readonly as: string;
      readonly method: JobMethod;
      readonly args: readonly Plain[];
      readonly wrong?: true;
    };

/** What is compared. */
export interface Observation {
  /** The process ended before there was an answer. */
  readonly died?: string;
  readonly jobs: Readonly<Record<string, SeenJob>>;
  readonly queues: readonly SeenQueue[];
  /** Answers to the steps that have some. */
  readonly steps: Readonly<Record<string, string>>;
  readonly workers: readonly SeenWorker[];
  readonly unhandled: readonly string[];
  /** Jobs that waited beside an idle worker, where that is watched (watch.ts). */
  readonly neglects?: readonly SeenNeglect[];
  /** Names of jobs in the order of their starts, of an ordered program: group by group. */
  readonly order?: readonly string[];
}

export interface SeenJob {
  readonly id: string;
  /** What it is at the end; `gone` when it is not there. */
  readonly state: string;
  readonly fields: Readonly<Record<string, string>>;
  /** What each start of its handler saw and did. */
  readonly runs: readonly string[];
  /** By QueueEvents. */
  readonly events: readonly string[];
  readonly workerEvents: readonly string[];
}

export interface SeenNeglect {
  readonly text: string;
  /** For so long that no machine is to blame. */
  readonly isLong: boolean;
}

export interface SeenQueue {
  readonly counts: string;
  readonly events: readonly string[];
}

export interface SeenWorker {
  readonly errors: readonly string[];
  /** How `close()` ended. */
  readonly closed: string;
}
