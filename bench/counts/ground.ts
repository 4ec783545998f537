/** What a counted scenario works with: a queue of its own, workers that are watched, and a way to wait until nothing moves. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FlowProducer, Job, Queue, Worker, WorkerOptions } from '../../src/index.js';
import type { Proxy } from '../proxy/proxy.js';
import type { ConnectionSettings } from '../server.js';

/** The classes under count: those of the build, with the types of the sources. */
export interface Classes {
  readonly Queue: typeof Queue;
  readonly Worker: typeof Worker;
  readonly FlowProducer: typeof FlowProducer;
}

const POLL_MS = 1;
/** When nothing has passed for so long, nobody has anything to do. */
const QUIET_POLLS = 25;
const MOST_POLLS = 10_000;

export interface Work {
  readonly processor: (job: Job) => Promise<unknown>;
  readonly concurrency?: number;
}

export class Ground {
  private readonly closers: (() => Promise<void>)[] = [];
  private waiters: { readonly event: string; left: number; readonly resolve: () => void }[] = [];

  constructor(
    private readonly classes: Classes,
    private readonly proxy: Proxy,
    readonly queueName: string,
  ) {}

  get connection(): ConnectionSettings {
    return this.proxy.connection;
  }

  async openQueue(): Promise<Queue> {
    const queue = new this.classes.Queue(this.queueName, { connection: this.connection });
    this.closers.unshift(() => queue.close());
    await queue.waitUntilReady();
    return queue;
  }

  async openFlows(): Promise<FlowProducer> {
    const flows = new this.classes.FlowProducer({ connection: this.connection });
    this.closers.unshift(() => flows.close());
    await flows.waitUntilReady();
    return flows;
  }

  /** A worker that is made and not run: for fetching by hand, too. */
  async openWorker(options: Partial<WorkerOptions>, processor?: Work['processor']): Promise<Worker> {
    const settings = { connection: this.connection, autorun: false, ...options };
    const worker = new this.classes.Worker(this.queueName, processor, settings);
    this.closers.unshift(() => worker.close());
    worker.on('error', (error) => this.fail(error));
    await worker.waitUntilReady();
    return worker;
  }

  /** A worker that runs and waits for jobs. */
  async startWorker({ processor, concurrency = 1 }: Work): Promise<Worker> {
    const worker = await this.openWorker({ concurrency }, processor);
    for (const event of ['completed', 'failed']) worker.on(event as 'completed', () => this.note(event));
    worker.run().catch((error: unknown) => this.fail(error));
    await this.settled();
    return worker;
  }

  /** Resolves when so many more jobs have ended like that. */
  ended(event: 'completed' | 'failed', jobs = 1): Promise<void> {
    return new Promise((resolve) => this.waiters.push({ event, left: jobs, resolve }));
  }

  /** Resolves when nothing is without an answer, and nothing has passed for a while: every worker waits to be told of work. */
  async settled(): Promise<void> {
    let [quiet, before] = [0, -1];
    for (let poll = 0; poll < MOST_POLLS; poll += 1) {
      const { unanswered, bytesIn, bytesOut } = await this.proxy.traffic();
      const passed = bytesIn + bytesOut;
      quiet = unanswered.length === 0 && passed === before ? quiet + 1 : 0;
      if (quiet === QUIET_POLLS) return;
      before = passed;
      await sleep(POLL_MS);
    }
    throw new Error('the workers do not come to rest');
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
  }

  private note(event: string): void {
    for (const waiter of this.waiters) if (waiter.event === event) waiter.left -= 1;
    for (const waiter of this.waiters) if (waiter.left === 0) waiter.resolve();
    this.waiters = this.waiters.filter(({ left }) => left > 0);
  }

  private fail(error: unknown): void {
    // nothing that is counted may go wrong on the way
    process.nextTick(() => {
      throw error;
    });
  }
}
