/** A system on BullMQ with jobs in all states, and the same queues here. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FlowJob, FlowProducer, Job, Queue } from 'bullmq';
import type { ConnectionSettings } from '../server.js';

export type Library = Pick<typeof import('bullmq'), 'Queue' | 'Worker' | 'FlowProducer'>;
export const sides = ['theirs', 'ours'] as const;
export type Side = (typeof sides)[number];

/** One queue for most jobs, one for the children of flows, one that is paused all the time. */
export const SUFFIXES = ['', '-children', '-paused'] as const;

/** A job of the system. Each has a number of its own; `kept` ones do not run while the queues move, the others do. */
export interface Numbered {
  readonly n: number;
  readonly text: string;
}

export const CHILDREN = 4;
export const SCHEDULERS = 20;
/** One in so many completed jobs has a log. */
export const LOGS_IN = 20;
const BULK = 1_000;
const FLOWS = 100;
const DAY_MS = 86_400_000;
const FILL_CONCURRENCY = 200;

export async function loadLibraries(): Promise<Record<Side, Library>> {
  const address = new URL('../../dist/esm/index.js', import.meta.url).href;
  // held to BullMQ's types
  const ours = (await import(address)) as unknown as Library;
  return { theirs: await import('bullmq'), ours };
}

/** What the system begins with, in jobs. */
export interface Parts {
  readonly completed: number;
  readonly failed: number;
  readonly delayed: number;
  readonly paused: number;
  readonly prioritized: number;
  readonly families: number;
  readonly waiting: number;
}

export function partsOf(jobs: number): Parts {
  const share = (of: number) => Math.floor(jobs * of);
  const parts = {
    ...{ completed: share(0.3), failed: share(0.1), delayed: share(0.15), paused: share(0.02) },
    ...{ prioritized: share(0.1), families: share(0.01) },
  };
  const { completed, failed, delayed, paused, prioritized, families } = parts;
  const others = completed + failed + delayed + paused + prioritized + families * (CHILDREN + 1);
  return { ...parts, waiting: jobs - others };
}

export class System {
  readonly names: readonly string[];
  /** Of jobs that run, the numbers that were given. */
  readonly runnable: number[] = [];
  private made = 0;
  private readonly open: { close(): Promise<unknown> }[] = [];
  private readonly known = new Map<string, Queue>();

  constructor(
    readonly libraries: Record<Side, Library>,
    readonly connection: ConnectionSettings,
    mark: string,
  ) {
    this.names = SUFFIXES.map((suffix) => mark + suffix);
  }

  queue(side: Side, suffix: (typeof SUFFIXES)[number] = ''): Queue {
    const name = this.names[SUFFIXES.indexOf(suffix)] ?? '';
    const found = this.known.get(side + name);
    if (found) return found;
    const { connection } = this;
    const queue = new this.libraries[side].Queue(name, {
      connection,
      ...(side === 'ours' && { skipMetasUpdate: true }),
    });
    queue.on('error', () => undefined); // whoever waits for an answer hears of it
    this.known.set(side + name, queue);
    return this.keep(queue);
  }

  flows(side: Side): FlowProducer {
    const flows = new this.libraries[side].FlowProducer({ connection: this.connection });
    flows.on('error', () => undefined); // as above
    return this.keep(flows);
  }

  private keep<T extends { close(): Promise<unknown> }>(it: T): T {
    this.open.push(it);
    return it;
  }

  async close(): Promise<void> {
    await Promise.all(this.open.splice(0).map((each) => each.close()));
  }

  /** The data of the next job. */
  next(): Numbered {
    const n = this.made++;
    return { n, text: `job ${n} of a system that moves` };
  }

  /** The same of one that is to run once. */
  nextToRun(): Numbered {
    const data = this.next();
    this.runnable.push(data.n);
    return data;
  }

  async fill(parts: Parts): Promise<void> {
    await this.runSome(parts);
    const queue = this.queue('theirs');
    await inBulks(parts.delayed, BULK, (count) => queue.addBulk(many(count, () => this.delayed())));
    const paused = this.queue('theirs', '-paused');
    await paused.pause();
    await inBulks(parts.paused, BULK, (count) =>
      paused.addBulk(many(count, () => ({ name: 'kept', data: this.next() }))),
    );
    for (let i = 0; i < SCHEDULERS; i += 1) {
      await queue.upsertJobScheduler(`yearly-${i}`, { pattern: `${i} 3 1 1 *` }, { name: 'kept', data: { n: -1 - i } });
    }
    await inBulks(parts.prioritized, BULK, (count) =>
      queue.addBulk(many(count, (i) => ({ name: 'runs', data: this.nextToRun(), opts: { priority: 1 + (i % 10) } }))),
    );
    await inBulks(parts.waiting, BULK, (count) =>
      queue.addBulk(many(count, () => ({ name: 'runs', data: this.nextToRun() }))),
    );
    const flows = this.flows('theirs');
    await inBulks(parts.families, FLOWS, (count) => flows.addBulk(many(count, () => this.family())));
  }

  private delayed(): { name: string; data: Numbered; opts: object } {
    const data = this.next();
    const delay = DAY_MS + (data.n % 1_000) * 1_000;
    const others = [{ deduplication: { id: `d-${data.n}` } }, { priority: 3 }, {}, {}][data.n % 4];
    return {
      name: 'kept',
      data,
      opts: { delay, attempts: 3, backoff: { type: 'exponential', delay: 1_000 }, ...others },
    };
  }

  family(): FlowJob {
    const [queueName, children] = [this.names[0] ?? '', this.names[1] ?? ''];
    const child = () => ({ name: 'runs', data: this.nextToRun(), queueName: children });
    return { name: 'parent', data: this.nextToRun(), queueName, children: many(CHILDREN, child) };
  }

  /** Jobs that completed, some with logs and progress, and that failed, with stack traces. */
  private async runSome({ completed, failed }: Parts): Promise<void> {
    const queue = this.queue('theirs');
    const all = completed + failed;
    if (all === 0) return;
    const handle = async (job: Job<Numbered>): Promise<unknown> => {
      const { n } = job.data;
      if (job.name === 'fails') throw new Error(`no. ${n} was to fail`);
      if (n % LOGS_IN === 0) {
        await job.log(`a row of ${n}`);
        await job.updateProgress({ at: n });
      }
      return { of: n };
    };
    const worker = new this.libraries.theirs.Worker<Numbered>(queue.name, handle, {
      ...{ connection: this.connection, concurrency: FILL_CONCURRENCY, name: 'before' },
    });
    worker.on('error', (error) => console.error(error.message));
    await inBulks(completed, BULK, (count) => queue.addBulk(many(count, () => ({ name: 'kept', data: this.next() }))));
    await inBulks(failed, BULK, (count) => queue.addBulk(many(count, () => ({ name: 'fails', data: this.next() }))));
    while ((await queue.getJobCountByTypes('completed', 'failed')) < all) await sleep(100);
    await worker.close();
  }
}

function many<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

async function inBulks(jobs: number, size: number, add: (count: number) => Promise<unknown>): Promise<void> {
  for (let left = jobs; left > 0; left -= size) await add(Math.min(left, size));
}
