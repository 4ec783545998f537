/** Hears what queues and workers tell, and sorts it by job. */
import type { EventEmitter } from 'node:events';
import type { Job, Queue, QueueEvents, Worker } from 'bullmq';
import type { SeenJob, SeenQueue } from './program.js';
import { messageOf, shown } from './values.js';

const GLOBAL_EVENTS = [
  ...['added', 'waiting', 'delayed', 'active', 'progress', 'completed', 'failed', 'retries-exhausted', 'stalled'],
  ...['removed', 'duplicated', 'deduplicated', 'waiting-children', 'paused', 'resumed', 'cleaned'],
];
/** Not compared: moments, and what is told elsewhere. */
const LEFT_OUT = new Set(['jobId', 'name', 'delay', 'opts', 'data', 'timestamp']);
const WORKER_EVENTS = ['active', 'progress', 'completed', 'failed', 'stalled', 'ready', 'paused', 'resumed'] as const;

export class Observer {
  /** Goes up with everything that is heard. */
  heard = 0;
  readonly #events = new Map<string, string[]>();
  readonly #workerEvents = new Map<string, string[]>();
  readonly #queueEvents: string[][] = [];
  /** Marks that came back, see `mark`. */
  readonly #marks = new Set<string>();

  watchQueue(index: number, events: QueueEvents): void {
    this.#queueEvents[index] = [];
    const names = new Map<string, string>();
    for (const event of GLOBAL_EVENTS) {
      (events as EventEmitter).on(event, (args: Record<string, unknown>) => {
        this.heard++;
        const { jobId } = args;
        // ids restart when a queue is obliterated
        if (event === 'added') names.set(jobId as string, String(args.name));
        const text = [event, ...describeArgs(event, args)].join(' ');
        if (jobId === undefined) this.#queueEvents[index].push(text);
        else push(this.#events, names.get(jobId as string) ?? `job ${shown(jobId)} of ${index}`, text);
      });
    }
    (events as EventEmitter).on('mark', ({ at }: { at: string }) => this.#marks.add(`${index} ${at}`));
  }

  hasMark(index: number, at: string): boolean {
    return this.#marks.has(`${index} ${at}`);
  }

  /** A worker has told something, of the job of that name if there is one. */
  hearWorker(text: string, name?: string): void {
    this.heard++;
    if (name !== undefined) push(this.#workerEvents, name, text);
  }

  eventsOf(name: string): Pick<SeenJob, 'events' | 'workerEvents'> {
    return { events: this.#events.get(name) ?? [], workerEvents: this.#workerEvents.get(name) ?? [] };
  }

  /** Names of all jobs that anything was heard of. */
  get names(): string[] {
    return [...new Set([...this.#events.keys(), ...this.#workerEvents.keys()])];
  }

  async seenQueue(index: number, queue: Queue): Promise<SeenQueue> {
    const counts = await queue.getJobCounts();
    const paused = await queue.isPaused();
    return { counts: shown({ ...counts, paused }), events: this.#queueEvents[index] ?? [] };
  }
}

/** Tells what a worker emits, and the name of the job that it is about. */
export function watchWorker(worker: Worker, tell: (text: string, name?: string) => void): void {
  for (const event of WORKER_EVENTS) {
    (worker as EventEmitter).on(event, (...args: unknown[]) => {
      const isOfJob = args[0] !== null && typeof args[0] === 'object' && 'name' in args[0];
      if (isOfJob) tell(describeWorkerEvent(event, args), (args[0] as Job).name);
      else tell(event);
    });
  }
}

function push(map: Map<string, string[]>, key: string, text: string): void {
  const list = map.get(key) ?? [];
  list.push(text);
  map.set(key, list);
}

function describeArgs(event: string, args: Record<string, unknown>): string[] {
  return Object.entries(args)
    .filter(([name]) => !LEFT_OUT.has(name) || (event === 'progress' && name === 'data'))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${shown(value)}`);
}

function describeWorkerEvent(event: string, [job, second, prev]: unknown[]): string {
  const { attemptsMade } = job as Job;
  if (event === 'failed') return `failed made ${attemptsMade} ${thrownText(second)} prev=${shown(prev)}`;
  if (event === 'completed') return `completed made ${attemptsMade} ${shown(second)} prev=${shown(prev)}`;
  return `${event} ${shown(second)}`;
}

/** Errors by their message: those that cannot be read are told by their type. */
function thrownText(error: unknown): string {
  return error !== null && typeof error === 'object' ? messageOf(error) : shown(error);
}

/** What there is of the job on the server; moments and places are left out. */
export function fieldsOf(job: Job): Record<string, string> {
  const { attemptsMade, attemptsStarted, stalledCounter, returnvalue, failedReason, progress, priority } = job;
  const { data, opts, stacktrace, parent, deferredFailure } = job;
  const seen: Record<string, unknown> = {
    ...{
      attemptsMade,
      attemptsStarted,
      stalledCounter,
      returnvalue,
      failedReason,
      progress,
      priority,
      deferredFailure,
    },
    data: withoutScript(data),
    opts: withoutParent(opts),
    stacktrace: stacktrace?.length ?? 0,
    stacktraceHead: stacktrace?.map((text) => (typeof text === 'string' ? text.split('\n')[0] : text)) ?? [],
    parent: parent && Object.keys(parent).sort(),
    delay: (job.delay ?? 0) > 5_000 ? 'long' : 'short',
    finished: job.finishedOn !== undefined && job.finishedOn !== null,
    processed: job.processedOn !== undefined && job.processedOn !== null,
  };
  return Object.fromEntries(Object.entries(seen).map(([name, value]) => [name, shown(value)]));
}

function withoutScript(data: unknown): unknown {
  if (data === null || typeof data !== 'object' || !('script' in data)) return data;
  const { script: _, ...rest } = data;
  return rest;
}

function withoutParent(opts: Job['opts'] | null): unknown {
  if (!opts) return opts;
  const { parent: _, ...rest } = opts;
  return rest;
}
