import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect } from 'vitest';
import type {
  FlowProducer,
  Job,
  Processor,
  Queue,
  QueueBaseOptions,
  QueueEvents,
  QueueEventsOptions,
  QueueOptions,
  Worker,
  WorkerOptions,
} from 'bullmq';
import type { Library } from './libraries.js';
import { connection, redisClient, unlinkContaining } from './redis.js';
import { EventLog, Gate } from './waiting.js';

interface Closable {
  close(): Promise<unknown>;
}

/** The events of a QueueEvents about jobs and the waiting list. */
const GLOBAL_EVENTS = [
  'added',
  'waiting',
  'delayed',
  'active',
  'progress',
  'completed',
  'failed',
  'retries-exhausted',
  'stalled',
  'removed',
  'duplicated',
  'deduplicated',
  'drained',
  'waiting-children',
];

/**
 * What one test plays on: a queue name of its own and everything that was opened under it.
 * After each test all of it is closed, its keys are deleted, and an `error` event nobody asked for fails the test.
 */
export class Stage {
  readonly lib: Library;
  /** Fresh for each test. */
  queueName = '';
  /** `error` events of what this stage opened. A test that expects some takes them with `takeErrors`. */
  #errors: Error[] = [];
  #open: Closable[] = [];
  #gates: Gate[] = [];

  constructor(lib: Library) {
    this.lib = lib;
  }

  begin(): void {
    this.queueName = `parity-${randomUUID()}`;
    this.#errors = [];
    this.#open = [];
    this.#gates = [];
  }

  async end(): Promise<void> {
    for (const gate of this.#gates) gate.open();
    // Newest first: workers end before the queue they answer to.
    for (const opened of this.#open.reverse()) await opened.close();
    const redis = redisClient();
    await unlinkContaining(redis, this.queueName);
    await redis.quit();
    expect(this.#errors, 'error events').toEqual([]);
  }

  queue(opts: Partial<QueueOptions> = {}, part = ''): Queue {
    return this.watch(new this.lib.Queue(this.name(part), { connection: { ...connection }, ...opts }));
  }

  worker(processor: Processor | null, opts: Partial<WorkerOptions> = {}, part = ''): Worker {
    return this.watch(new this.lib.Worker(this.name(part), processor, { connection: { ...connection }, ...opts }));
  }

  /** Reads from the beginning of the event log, so that nothing is missed however early it happened. */
  events(opts: Partial<QueueEventsOptions> = {}, part = ''): QueueEvents {
    const events = new this.lib.QueueEvents(this.name(part), {
      connection: { ...connection },
      lastEventId: '0-0',
      ...opts,
    });
    return this.watch(events);
  }

  /** The global events of this test's queue from the beginning, in order. */
  globalLog(opts: Partial<QueueEventsOptions> = {}, part = ''): EventLog {
    return new EventLog(this.events(opts, part), GLOBAL_EVENTS);
  }

  flowProducer(opts: Partial<QueueBaseOptions & { prefix: string }> = {}): FlowProducer {
    return this.watch(new this.lib.FlowProducer({ connection: { ...connection }, ...opts }));
  }

  /** Name of one of this test's queues: tests of flows play on several, told apart by `part`. */
  name(part = ''): string {
    return part ? `${this.queueName}-${part}` : this.queueName;
  }

  /** The key by which a parent knows its child. */
  childKey(id: string | undefined, part = '', prefix = 'bull'): string {
    return `${prefix}:${this.name(part)}:${id}`;
  }

  /** A gate that opens at the end of the test at the latest, so that no worker waits for ever. */
  gate(): Gate {
    const gate = new Gate();
    this.#gates.push(gate);
    return gate;
  }

  /** Closes `opened` at the end of the test. */
  keep<T extends Closable>(opened: T): T {
    this.#open.push(opened);
    return opened;
  }

  /** As `keep`, and an `error` event of it fails the test unless the test takes it. */
  watch<T extends Closable & { on(event: 'error', listener: (error: Error) => void): unknown }>(opened: T): T {
    opened.on('error', (error) => this.#errors.push(error));
    return this.keep(opened);
  }

  /** The `error` events so far, which then no longer fail the test. */
  takeErrors(): Error[] {
    return this.#errors.splice(0);
  }
}

/** Sets up a stage for each test of the surrounding `describe`. */
export function useStage(lib: Library): Stage {
  const stage = new Stage(lib);
  beforeEach(() => stage.begin());
  afterEach(() => stage.end());
  return stage;
}

/** The job of that id, which must be there. */
export async function fetchJob(queue: Queue, id: string | undefined): Promise<Job> {
  const job = await queue.getJob(id ?? '');
  if (!job) throw new Error(`there is no job ${String(id)}`);
  return job;
}
