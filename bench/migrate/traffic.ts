/** What goes on while the queues move: a producer that adds, and workers of both libraries that run. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, Worker } from 'bullmq';
import { CHILDREN, sides } from './system.js';
import type { Numbered, Side, System } from './system.js';

const BULK = 50;
const BETWEEN_MS = 50;
const FLOW_IN = 10;
/** Jobs that a worker of the traffic runs at once, and how long a handler takes, until the end is waited for. */
const CONCURRENCY = 10;
const HANDLER_MS = 5;
const LAST_CONCURRENCY = 200;

export class Traffic {
  /** How often each job ran, by its number. */
  readonly runs: Uint8Array;
  /** Jobs that were run by each side. */
  readonly ranBy: Record<Side, number> = { theirs: 0, ours: 0 };
  /** Parents that did not see all their children's results. */
  wrongParents = 0;
  added = 0;
  readonly errors: string[] = [];
  private handlerMs = HANDLER_MS;
  private readonly workers: Record<Side, Worker[]> = { theirs: [], ours: [] };
  private producing: { readonly side: Side; isOver: boolean; readonly done: Promise<void> } | undefined;

  constructor(
    private readonly system: System,
    mostJobs: number,
  ) {
    this.runs = new Uint8Array(mostJobs);
  }

  startWorkers(side: Side): void {
    const { connection, libraries, names } = this.system;
    for (const name of names.slice(0, 2)) {
      const worker = new libraries[side].Worker<Numbered>(name, (job) => this.handle(side, job), {
        ...{ connection, concurrency: CONCURRENCY, name: side },
      });
      worker.on('error', (error) => this.errors.push(`${side}: ${error.message}`));
      this.workers[side].push(worker);
    }
  }

  async stopWorkers(side: Side): Promise<void> {
    await Promise.all(this.workers[side].splice(0).map((worker) => worker.close()));
  }

  private async handle(side: Side, job: Job<Numbered>): Promise<unknown> {
    const { n } = job.data;
    this.runs[n] = (this.runs[n] ?? 0) + 1;
    this.ranBy[side] += 1;
    if (this.handlerMs > 0) await sleep(this.handlerMs);
    if (job.name !== 'parent') return { of: n };
    const values = Object.keys(await job.getChildrenValues()).length;
    if (values !== CHILDREN) this.wrongParents += 1;
    return { values };
  }

  /** Lets the producer add to this side from now on. */
  async produceTo(side: Side): Promise<void> {
    await this.stopProducer();
    const producing = { side, isOver: false, done: Promise.resolve() };
    producing.done = this.produce(producing);
    this.producing = producing;
  }

  async stopProducer(): Promise<void> {
    if (!this.producing) return;
    this.producing.isOver = true;
    await this.producing.done;
    this.producing = undefined;
  }

  private async produce(producing: { readonly side: Side; readonly isOver: boolean }): Promise<void> {
    const queue = this.system.queue(producing.side);
    const flows = this.system.flows(producing.side);
    for (let round = 0; !producing.isOver; round += 1) {
      const jobs = Array.from({ length: BULK }, (_, i) => {
        const opts = [{}, {}, { delay: 200 }, { priority: 2 }][i % 4];
        return { name: 'runs', data: this.system.nextToRun(), opts };
      });
      await queue.addBulk(jobs);
      this.added += jobs.length;
      if (round % FLOW_IN === 0) {
        await flows.add(this.system.family());
        this.added += CHILDREN + 1;
      }
      await sleep(BETWEEN_MS);
    }
  }

  /** Resolves when all jobs that are to run have run, by the workers that are there. */
  async untilAllRan(limitMs: number): Promise<void> {
    this.handlerMs = 0;
    for (const worker of sides.flatMap((side) => this.workers[side])) worker.concurrency = LAST_CONCURRENCY;
    const deadline = Date.now() + limitMs;
    while (this.system.runnable.some((n) => this.runs[n] === 0) && Date.now() < deadline) await sleep(200);
  }

  /** Of the jobs that were to run: how many did not, and how many ran more than once. */
  account(): { readonly neverRan: number; readonly ranTwice: number } {
    let [neverRan, ranTwice] = [0, 0];
    for (const n of this.system.runnable) {
      if (this.runs[n] === 0) neverRan += 1;
      if ((this.runs[n] ?? 0) > 1) ranTwice += 1;
    }
    return { neverRan, ranTwice };
  }
}
