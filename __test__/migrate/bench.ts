import { randomUUID } from 'node:crypto';
import { Cluster } from 'ioredis';
import { afterEach, beforeEach } from 'vitest';
import type {
  ConnectionOptions,
  FlowProducer,
  Job,
  JobState,
  Processor,
  Queue,
  QueueOptions,
  Worker,
  WorkerOptions,
} from 'bullmq';
import * as source from '../../src/index.js';
import type { MoveOptions, TargetQueue } from '../../src/tools/migrate/move.js';
import { Mover } from '../../src/tools/migrate/mover.js';
import type { Library } from '../support/libraries.js';
import { connection, keysContaining, redisClient, unlinkContaining } from '../support/redis.js';
import { MAJORS, type Major } from './majors.js';

/** ChasquiMQ, held to BullMQ's types. */
const ours = source as unknown as Library;

/** BullMQ takes a client of a cluster, and works there on queues whose names have a hash tag. */
const cluster = connection.nodes && new Cluster(connection.nodes, { redisOptions: { maxRetriesPerRequest: null } });
const theirConnection = (cluster ?? connection) as ConnectionOptions;

interface Closable {
  close(): Promise<unknown>;
}

/** A queue name of its own for a test, with queues, workers and flow producers of both libraries under it. */
export class Bench {
  name = '';
  readonly redis = redisClient();
  private open: Closable[] = [];

  constructor(readonly theirs: Library) {}

  begin(): void {
    const name = `move-${randomUUID()}`;
    this.name = cluster ? `{${name}}` : name;
  }

  async end(): Promise<void> {
    await Promise.all(this.open.splice(0).map((each) => each.close()));
    await unlinkContaining(this.redis, this.name);
  }

  /** What the keys of ours start with. */
  base(suffix = ''): string {
    const name = `bull:${this.name}${suffix}`;
    return cluster ? `${name}:chasqui:` : `{${name}}:`;
  }

  private keep<T extends Closable>(it: T): T {
    this.open.push(it);
    return it;
  }

  /** A queue of BullMQ's; `suffix` tells those of one test apart. */
  queue(suffix = '', options: Partial<QueueOptions> = {}): Queue {
    return this.keep(new this.theirs.Queue(this.name + suffix, { connection: theirConnection, ...options }));
  }

  /** Ours of the same name. */
  target(suffix = '', options: Partial<QueueOptions> = {}): Queue {
    return this.keep(new ours.Queue(this.name + suffix, { connection, skipMetasUpdate: true, ...options }));
  }

  worker(processor: Processor, options: Partial<WorkerOptions> = {}, suffix = ''): Worker {
    const all = { connection: theirConnection, ...options };
    return this.keep(new this.theirs.Worker(this.name + suffix, processor, all));
  }

  ownWorker(processor: Processor, options: Partial<WorkerOptions> = {}, suffix = ''): Worker {
    return this.keep(new ours.Worker(this.name + suffix, processor, { connection, ...options }));
  }

  flows(): FlowProducer {
    return this.keep(new this.theirs.FlowProducer({ connection: theirConnection }));
  }

  ownFlows(): FlowProducer {
    return this.keep(new ours.FlowProducer({ connection }));
  }

  /** What moves the queues with these suffixes. */
  mover(options: MoveOptions = {}, suffixes: readonly string[] = ['']): Mover {
    return new Mover(
      suffixes.map((suffix) => this.movable(suffix)),
      options,
    );
  }

  /** Ours of the same name, as it is moved to. */
  movable(suffix: string): TargetQueue {
    return this.target(suffix) as unknown as TargetQueue;
  }

  /** Moves all of them; gives the mover, for its account. */
  async move(options: MoveOptions = {}, suffixes: readonly string[] = ['']): Promise<Mover> {
    const mover = this.mover(options, suffixes);
    await mover.move();
    return mover;
  }

  /** Keys of BullMQ's that hold jobs. */
  async jobKeys(suffix = ''): Promise<string[]> {
    const start = `bull:${this.name}${suffix}:`;
    const own = new Set(['meta', 'id', 'events', 'marker', 'pc', 'stalled-check', 'limiter'].map((key) => start + key));
    const isTheirs = (key: string): boolean => key.startsWith(start) && !key.startsWith(this.base(suffix));
    return (await keysContaining(this.redis, start)).filter((key) => isTheirs(key) && !own.has(key));
  }
}

/** A bench for each test, with BullMQ of this major. */
export function useBench({ lib }: Major): Bench {
  const bench = new Bench(lib);
  beforeEach(() => bench.begin());
  afterEach(() => bench.end());
  return bench;
}

/** All that users see of a job. */
export async function described(queue: Queue, job: Job): Promise<Record<string, unknown>> {
  const { logs } = await queue.getJobLogs(job.id as string);
  const { attempts: _, ...opts } = job.opts;
  return {
    id: job.id,
    name: job.name,
    data: job.data as unknown,
    opts,
    attempts: job.opts.attempts ?? 0,
    timestamp: job.timestamp,
    delay: job.delay,
    priority: job.priority,
    progress: job.progress,
    attemptsMade: job.attemptsMade,
    attemptsStarted: job.attemptsStarted,
    stalledCounter: job.stalledCounter,
    returnvalue: job.returnvalue as unknown,
    failedReason: job.failedReason,
    stacktrace: job.stacktrace,
    processedOn: job.processedOn,
    finishedOn: job.finishedOn,
    processedBy: job.processedBy,
    parentKey: job.parentKey,
    deduplicationId: job.deduplicationId,
    repeatJobKey: job.repeatJobKey,
    logs,
  };
}

const STATES: readonly JobState[] = [
  'waiting',
  'active',
  'prioritized',
  'delayed',
  'completed',
  'failed',
  'waiting-children',
];

/** All jobs of a queue by state, in the order of the queue. Those of BullMQ 5's paused queues wait. */
export async function jobsOf(queue: Queue): Promise<Record<string, Record<string, unknown>[]>> {
  const found: Record<string, Record<string, unknown>[]> = {};
  for (const state of STATES) {
    const jobs = await queue.getJobs([state], 0, -1, true);
    if (state === 'waiting') jobs.push(...(await queue.getJobs(['paused'] as unknown as JobState[], 0, -1, true)));
    const known = new Map(jobs.map((job) => [job.id, job]));
    if (known.size > 0) found[state] = await Promise.all([...known.values()].map((job) => described(queue, job)));
  }
  return found;
}

export { MAJORS };
