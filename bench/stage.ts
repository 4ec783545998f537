/**
 * What one run of a scenario works with: one side's queue and workers, opened for this run and closed after it. It also
 * watches over them: an `error` event, a job that fails unasked, or a run that does not end makes the run fail.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { connectionTo } from './adapters/connection.mjs';
import type { Connection } from './adapters/connection.mjs';
import { jobStates } from './adapters/library.js';
import type {
  FlowProducerLike,
  JobLibrary,
  JobLike,
  JobSettings,
  JobState,
  Processor,
  QueueEventsLike,
  QueueLike,
  WorkerLike,
  WorkerSettings,
} from './adapters/library.js';
import { Crowd } from './crowd.js';
import { Stopwatch } from './measure.js';
import { Proxy } from './proxy/proxy.js';
import { Tally } from './scenarios/tally.js';
import type { NumberOf } from './scenarios/tally.js';
import type { ConnectionSettings, Server, ServerWork } from './server.js';
import { WorkerProcess } from './worker-process.js';
import type { WorkerProcessSettings } from './worker-process.js';

const CLOSE_LIMIT_MS = 10_000;
const COUNTS_LIMIT_MS = 2_000;

export interface StageSettings {
  readonly library: JobLibrary;
  readonly server: Server;
  readonly queueName: string;
  /** The same for both runs of a pair. */
  readonly seed: number;
  readonly timeLimitMs: number;
}

export interface Crew {
  readonly processor: Processor;
  readonly concurrency: number;
  readonly group?: WorkerSettings['group'];
  readonly metrics?: WorkerSettings['metrics'];
  readonly onCompleted: (job: JobLike) => void;
  /** Without it, a failure fails the run. */
  readonly onFailed?: (job: JobLike | undefined, error: Error) => void;
}

export class Stage {
  /** Never resolves; rejects with the first fault. */
  readonly fault: Promise<never>;
  readonly seed: number;
  private reject: (error: Error) => void = () => undefined;
  private readonly timer: NodeJS.Timeout;
  private connection: ConnectionSettings;
  private proxy: Proxy | undefined;
  private queues: QueueLike[] = [];
  private producers: FlowProducerLike[] = [];
  private workers: WorkerLike[] = [];
  private listeners: QueueEventsLike[] = [];
  private processes: WorkerProcess[] = [];
  private crowd: Crowd | undefined;
  /** Of connections that were made for this run. */
  private clients: Cluster[] = [];

  constructor(private readonly settings: StageSettings) {
    this.seed = settings.seed;
    this.connection = settings.server.connection;
    this.fault = new Promise<never>((_, reject) => {
      this.reject = reject;
    });
    this.fault.catch(() => undefined); // whoever runs the scenario races against it
    this.timer = setTimeout(() => void this.failOverdue(), settings.timeLimitMs);
  }

  fail(cause: unknown): void {
    this.reject(cause instanceof Error ? cause : new Error(String(cause)));
  }

  get queueName(): string {
    return this.settings.queueName;
  }

  /** What is measured on: another one, when it is reached in another way. */
  get server(): Server {
    return this.settings.server;
  }

  /** One whose faults are the run's. */
  tally(expected: number, numberOf?: NumberOf): Tally {
    return new Tally(expected, (error) => this.fail(error), numberOf);
  }

  stopwatch(): Stopwatch {
    return new Stopwatch(this.settings.server);
  }

  settledMemory(): Promise<number> {
    return this.settings.server.settledMemory();
  }

  /** What the server has done so far, for everybody. */
  serverWork(): Promise<ServerWork> {
    return this.settings.server.work();
  }

  /** What is opened from now on has so many milliseconds to the server. */
  async moveAway(delayMs: number): Promise<void> {
    this.proxy = await Proxy.open(this.settings.server.connection, delayMs);
    this.connection = this.proxy.connection;
  }

  /** Until the end of the run, the server writes what it is told to disk. */
  keepOnDisk(sync: 'none' | 'everysec' | 'always'): Promise<void> {
    return this.settings.server.keepOnDisk(sync);
  }

  async openQueue(defaultJobOptions: JobSettings = {}): Promise<QueueLike> {
    const { library, queueName } = this.settings;
    const queue = new library.Queue(queueName, { ...this.place(library.shared), defaultJobOptions });
    queue.on('error', (error) => this.fail(error));
    this.queues.push(queue);
    await queue.waitUntilReady();
    return queue;
  }

  async openFlowProducer(): Promise<FlowProducerLike> {
    const { library } = this.settings;
    const producer = new library.FlowProducer(this.place());
    producer.on('error', (error) => this.fail(error));
    this.producers.push(producer);
    await producer.waitUntilReady();
    return producer;
  }

  /** A worker that is connected and does not run yet. Every worker has the same three listeners on both sides. */
  async openWorker({ processor, concurrency, group, metrics, onCompleted, onFailed }: Crew): Promise<WorkerLike> {
    const { library, queueName } = this.settings;
    const more = { ...(group && { group }), ...(metrics && { metrics }) };
    const settings = { ...this.place(library.shared), concurrency, autorun: false, ...more };
    const worker = new library.Worker(queueName, processor, settings);
    worker.on('error', (error) => this.fail(error));
    worker.on('failed', onFailed ?? ((_, error) => this.fail(error)));
    worker.on('completed', onCompleted);
    this.workers.push(worker);
    await worker.waitUntilReady();
    return worker;
  }

  /** One that hears of what happens from now on. */
  async openQueueEvents(): Promise<QueueEventsLike> {
    const { library, queueName } = this.settings;
    const events = new library.QueueEvents(queueName, this.place());
    events.on('error', (error) => this.fail(error));
    this.listeners.push(events);
    await events.waitUntilReady();
    return events;
  }

  /** Workers that are processes of their own, connected and not running yet. */
  async openWorkerProcesses(
    count: number,
    concurrency: number,
    more: Pick<WorkerProcessSettings, 'tells' | 'obeys'> = {},
  ): Promise<WorkerProcess[]> {
    const { library, queueName } = this.settings;
    const { address, inConnection } = library;
    const connection = { ...this.connection, ...inConnection };
    const settings = { address, queueName, connection, ...this.prefix, concurrency, ...more };
    const opened = Array.from({ length: count }, () => new WorkerProcess(settings, (cause) => this.fail(cause)));
    this.processes.push(...opened);
    await Promise.all(opened.map(({ ready }) => ready));
    return opened;
  }

  /** So many queues with a running worker each, and a QueueEvents, in a process of its own. */
  async openCrowd(queues: number, shared: boolean): Promise<Crowd> {
    const { library, queueName } = this.settings;
    const names = Array.from({ length: queues }, (_, i) => `${queueName}-${i}`);
    const settings = { address: library.address, connection: this.connection, names, shared };
    const crowd = new Crowd(settings, (cause) => this.fail(cause));
    this.crowd = crowd;
    await crowd.ready;
    return crowd;
  }

  /** Starts a worker; the promise of `run` ends with the worker, so nobody waits for it. */
  run(worker: WorkerLike): void {
    worker.run().catch((error: unknown) => this.fail(error));
  }

  /** Throws unless Redis holds exactly these jobs; a state that is not named must be empty. */
  async expectCounts(queue: QueueLike, expected: Partial<Record<JobState, number>>): Promise<void> {
    const counts = await queue.getJobCounts(...jobStates);
    const wrong = jobStates.filter((state) => counts[state] !== (expected[state] ?? 0));
    if (wrong.length === 0) return;
    const list = wrong.map((state) => `${String(counts[state])} ${state} instead of ${expected[state] ?? 0}`);
    throw new Error(`the queue holds ${list.join(', ')}`);
  }

  /** Closes what is open, workers first. `force` when the run has failed and may not be waited for. */
  async close(force = false): Promise<void> {
    const { workers, producers, queues } = this;
    this.workers = [];
    this.producers = [];
    this.queues = [];
    for (const process of this.processes.splice(0)) process.kill();
    await this.crowd?.kill();
    for (const worker of workers) await this.closeInTime(worker.close(force), 'worker.close()');
    for (const events of this.listeners.splice(0)) await this.closeInTime(events.close(), 'queueEvents.close()');
    for (const producer of producers) await this.closeInTime(producer.close(), 'flowProducer.close()');
    for (const queue of queues) await this.closeInTime(queue.close(), 'queue.close()');
    for (const client of this.clients.splice(0)) client.disconnect();
    await this.proxy?.close();
  }

  /** Where the queue is, for whatever opens it: both libraries get the same. */
  private place(connect: (settings: ConnectionSettings) => Connection = (settings) => this.ownClient(settings)) {
    return { connection: connect(this.connection), ...this.prefix };
  }

  private ownClient(settings: ConnectionSettings): Connection {
    const connection = connectionTo(settings);
    if (connection instanceof Cluster) this.clients.push(connection);
    return connection;
  }

  /** In a Cluster, the keys of a queue have to lie in one slot. */
  private get prefix(): { readonly prefix?: string } {
    return this.connection.nodes ? { prefix: `{${this.queueName}}` } : {};
  }

  /** To be called last: no fault is reported from here on. */
  dismiss(): void {
    clearTimeout(this.timer);
    this.reject = () => undefined;
  }

  private async closeInTime(closing: Promise<void>, what: string): Promise<void> {
    const limit = new AbortController();
    const late = sleep(CLOSE_LIMIT_MS, 'late', { signal: limit.signal, ref: false }).catch(() => 'closed');
    const first = await Promise.race([closing.then(() => 'closed'), late]);
    limit.abort();
    if (first === 'late') throw new Error(`${what} did not end in ${CLOSE_LIMIT_MS / 1e3} s`);
  }

  private async failOverdue(): Promise<void> {
    const counts = this.queues[0]?.getJobCounts(...jobStates).then((found) => JSON.stringify(found));
    const unknown = sleep(COUNTS_LIMIT_MS, 'unknown counts');
    const left = await Promise.race([counts, unknown]).catch((error: unknown) => String(error));
    this.fail(new Error(`not done after ${this.settings.timeLimitMs / 1e3} s; the queue holds ${String(left)}`));
  }
}
