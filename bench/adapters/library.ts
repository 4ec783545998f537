import type { ConnectionSettings } from '../server.js';
import type { Connection } from './connection.mjs';

/**
 * The part of BullMQ's API that the scenarios use, as both libraries offer it. It is spelled out here, and not taken from
 * either library's typings, so that the compiler holds BullMQ's real classes to it and neither side can be favoured
 * through a method that only one of them has.
 */
export interface JobLibrary {
  /** As shown in the report. */
  readonly name: string;
  readonly version: string;
  readonly Queue: new (name: string, options: QueueSettings) => QueueLike;
  readonly Worker: new (name: string, processor: Processor, options: WorkerSettings) => WorkerLike;
  /** Where another process finds it. */
  readonly address: string;
  /** What makes it this way of running the library, in so far as it is an option of a connection: workers of other processes are given it. */
  readonly inConnection?: Readonly<Record<string, boolean>>;
  /** How its queues and workers reach a server; each by a connection of its own unless told. It outlives them. */
  readonly shared?: (settings: ConnectionSettings) => Connection;
  readonly QueueEvents: new (name: string, options: FlowSettings) => QueueEventsLike;
  readonly FlowProducer: new (options: FlowSettings) => FlowProducerLike;
}

export interface FlowEntry {
  readonly name: string;
  readonly queueName: string;
  readonly data: JobData;
  readonly children?: FlowEntry[];
}

export type JobData = Record<string, unknown>;

/** Job options that scenarios set; whatever is absent stays at the library's default. */
export interface JobSettings {
  readonly attempts?: number;
  /** Milliseconds. */
  readonly backoff?: { readonly type: 'fixed'; readonly delay: number };
  /** Milliseconds. */
  readonly delay?: number;
  readonly priority?: number;
  readonly removeOnComplete?: boolean;
  /** BullMQ knows none, and runs the jobs one behind the other. */
  readonly group?: { readonly id: string };
  /** Milliseconds. BullMQ knows none of the two. */
  readonly expireAfter?: number;
  readonly timeout?: number;
}

export interface BulkEntry {
  readonly name: string;
  readonly data: JobData;
  readonly opts?: JobSettings;
}

export interface JobLike {
  readonly id?: string;
  readonly name: string;
  readonly data: unknown;
  readonly attemptsMade: number;
  readonly priority: number;
  readonly timestamp: number;
  readonly opts: { readonly delay?: number };
  updateProgress(progress: number): Promise<unknown>;
  remove(): Promise<void>;
}

export type Processor = (job: JobLike) => Promise<unknown>;

export interface QueueSettings {
  readonly connection: Connection;
  /** In front of the names of keys; each library's own unless told. */
  readonly prefix?: string;
  readonly defaultJobOptions: JobSettings;
}

export interface FlowSettings {
  readonly connection: Connection;
  readonly prefix?: string;
}

export interface WorkerSettings {
  readonly connection: Connection;
  readonly prefix?: string;
  readonly concurrency: number;
  readonly autorun: boolean;
  /** BullMQ knows none. */
  readonly group?: {
    readonly concurrency: number;
    readonly limit: { readonly max: number; readonly duration: number };
  };
  /** BullMQ knows no `latency`. */
  readonly metrics?: { readonly maxDataPoints: number; readonly latency?: boolean };
}

/** Jobs of one name. */
export interface Named {
  readonly states: JobState[];
  readonly name: string;
}

export interface QueueLike {
  on(event: 'error', listener: (error: Error) => void): unknown;
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: JobData, opts?: JobSettings): Promise<{ readonly id?: string }>;
  getJob(id: string): Promise<unknown>;
  /** 1 when it was there. */
  remove(id: string): Promise<number>;
  addBulk(jobs: BulkEntry[]): Promise<unknown[]>;
  upsertJobScheduler(id: string, repeat: { every: number; startDate: number }): Promise<unknown>;
  removeJobScheduler(id: string): Promise<boolean>;
  getJobs(states: JobState[], start: number, end: number, asc: boolean): Promise<JobLike[]>;
  getJobCounts(...states: JobState[]): Promise<Record<string, number>>;
  /** BullMQ has none of the two. */
  countJobs?(filter: Named): Promise<number>;
  removeJobs?(filter: Named): Promise<number>;
  close(): Promise<void>;
}

export interface FlowProducerLike {
  on(event: 'error', listener: (error: Error) => void): unknown;
  waitUntilReady(): Promise<unknown>;
  addBulk(flows: FlowEntry[]): Promise<unknown[]>;
  close(): Promise<void>;
}

export interface QueueEventsLike {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'completed', listener: () => void): unknown;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

export interface WorkerLike {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'completed', listener: (job: JobLike) => void): unknown;
  on(event: 'failed', listener: (job: JobLike | undefined, error: Error) => void): unknown;
  waitUntilReady(): Promise<unknown>;
  run(): Promise<void>;
  close(force?: boolean): Promise<void>;
}

export const jobStates = [
  'waiting',
  'prioritized',
  'active',
  'delayed',
  'waiting-children',
  'completed',
  'failed',
] as const;
export type JobState = (typeof jobStates)[number];
