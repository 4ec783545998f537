/** A watch over queues whose workers are all apart: a job that waits in the list while one of them could run it is a fault (support/idleness.ts). */
import type { Redis } from 'ioredis';
import { neglected, START_MS } from '../support/idleness.js';
import type { JobRecord, Neglect, Span, WorkerRecord } from '../support/idleness.js';
import { Lateness } from '../support/lateness.js';
import { sharedClock } from '../support/shared-clock.js';
import { planOf, queueOf } from './plans.js';
import type { JobPlan, Program, SeenNeglect } from './program.js';
import type { Runs } from './runs.js';
import type { Life } from './workers.js';

/** A wait that is so many times as long as it may be has no other cause than a worker that holds the job. */
const LONG = 3;
/** Of a job that is at once at the end of the waiting list, and leaves it by its head. */
const HARMLESS = new Set(['attempts', 'backoff', 'removeOnComplete', 'removeOnFail', 'keepLogs', 'stackTraceLimit']);

export class Watch {
  readonly #program: Program;
  readonly #queues: readonly number[];
  readonly #lateness: Lateness;
  readonly #sent = new Map<string, { sent: number; added: number }>();
  #isOver = false;

  private constructor(program: Program, queues: readonly number[], servers: readonly Redis[]) {
    this.#program = program;
    this.#queues = queues;
    this.#lateness = new Lateness(servers, sharedClock);
  }

  /** Begins to watch a program, if there is anything to be seen. */
  static of(program: Program, servers: readonly Redis[]): Watch | undefined {
    const queues = watchedQueues(program);
    return queues.length > 0 ? new Watch(program, queues, servers) : undefined;
  }

  /** Jobs of these names are sent by one call; whoever made it says when it hears that they are there. */
  sends(names: readonly string[]): () => void {
    const sent = sharedClock();
    return () => {
      for (const name of names) if (this.#isWatched(name)) this.#sent.set(name, { sent, added: sharedClock() });
    };
  }

  #isWatched(name: string): boolean {
    const plan = planOf(name, this.#program);
    return plan !== undefined && isPlain(plan) && this.#queues.includes(queueOf(name, this.#program) ?? -1);
  }

  async end(): Promise<void> {
    if (!this.#isOver) await this.#lateness.end();
    this.#isOver = true;
  }

  /** Which jobs waited. */
  async neglects(runs: Runs, lives: readonly Life[]): Promise<SeenNeglect[]> {
    await this.end();
    const { late, pace } = this.#lateness;
    return this.#queues.flatMap((queue) => {
      const sent = new Map([...this.#sent].filter(([name]) => queueOf(name, this.#program) === queue));
      const own = lives.filter(({ plan }) => plan.queue === queue);
      return neglectsIn({ sent, runs, lives: own, blind: late, pace });
    });
  }
}

/** What there was in one queue. */
export interface Watched {
  /** When each job was sent, and when it was known to be there. */
  readonly sent: ReadonlyMap<string, { readonly sent: number; readonly added: number }>;
  readonly runs: Runs;
  readonly lives: readonly Life[];
  /** When the machine was late. */
  readonly blind: readonly Span[];
  readonly pace: number;
}

export function neglectsIn({ sent, runs, lives, blind, pace }: Watched): SeenNeglect[] {
  const mostMs = START_MS * Math.max(1, pace);
  const jobs = [...sent].map(([key, times]): JobRecord => ({ key, ...times, started: runs.startOf(key) ?? Infinity }));
  const workers = lives.map(({ name, plan: { concurrency }, alive, late }): WorkerRecord => {
    return { name, concurrency, alive, late, runs: runs.by(name) };
  });
  return neglected(jobs, workers, { mostMs, blind })
    .filter(({ inSlot }) => !inSlot)
    .map((one) => ({ text: describe(one, mostMs), isLong: one.to - one.from > LONG * mostMs }));
}

/** Queues from which workers take whatever is there, at any time. */
export function watchedQueues(program: Program): number[] {
  const { queues, workers, steps } = program;
  const all = Array.from({ length: queues }, (_, queue) => queue);
  const isLimited = JSON.stringify(steps).includes('"rateLimit"');
  const halts = steps.some(({ do: kind }) => kind === 'pauseWorker');
  if (isLimited || halts) return [];
  return all.filter((queue) => {
    const own = workers.filter((worker) => worker.queue === queue);
    const isCalled = steps.some((step) => {
      if (step.do === 'job') return queueOf(step.key, program) === queue;
      return step.do === 'queue' && step.queue === queue;
    });
    return own.length > 0 && !isCalled && own.every(({ kind, opts }) => kind === 'apart' && !opts?.limiter);
  });
}

function isPlain({ opts = {} }: JobPlan): boolean {
  return Object.keys(opts).every((name) => HARMLESS.has(name));
}

function describe({ key, by = 'nobody', idle, from, to }: Neglect, mostMs: number): string {
  return `${key}, run by ${by}, waited beside ${idle} for ${Math.round(to - from)} ms; ${Math.round(mostMs)} ms are the most`;
}
