/** Jobs whose handlers do what real ones do, on either library, and an account of their runs. */
import { expect } from 'vitest';
import type { BulkJobOptions, FlowJob, Job, Processor, Queue } from 'bullmq';
import type { Library } from '../support/libraries.js';
import type { Random } from '../support/random.js';
import { sleep } from '../support/waiting.js';

/** What a handler does. */
export type Way = 'returns' | 'works' | 'retries' | 'fails' | 'delays' | 'waits' | 'parents' | 'large' | 'ticks';

export interface JobData {
  way: Way;
  /** Runs of which the job itself has noted something. */
  step: number;
}

interface NewJob {
  readonly name: string;
  readonly data: JobData;
  readonly opts: BulkJobOptions;
}

const WAYS: readonly Way[] = ['returns', 'works', 'retries', 'fails', 'delays', 'waits', 'parents', 'large'];
const LARGE = 'x'.repeat(100_000);
const ATTEMPTS = 3;

/** How often a job of this way runs: at least, and at most. */
const RUNS: Record<Way, readonly [number, number]> = {
  returns: [1, 1],
  works: [1, 1],
  retries: [ATTEMPTS, ATTEMPTS],
  fails: [2, 2],
  delays: [2, 2],
  waits: [2, 2],
  // it goes on at once when its children have ended before it asks
  parents: [1, 2],
  large: [1, 1],
  ticks: [1, 1],
};

/** Adds jobs of all ways, runs them, and knows what must have become of each. */
export class Jobs {
  /** Jobs that were added, by name. */
  readonly added = new Map<string, Way>();
  /** Who ran a job, by its name. */
  readonly runs = new Map<string, string[]>();
  /** Names of jobs that have ended for good. */
  readonly ended: string[] = [];
  private made = 0;

  constructor(private readonly random: Random) {}

  /** One way after the other, waiting in all ways in which jobs can. */
  make(count: number): NewJob[] {
    return Array.from({ length: count }, () => {
      const [way, random] = [WAYS[this.made % WAYS.length] ?? 'returns', this.random];
      const places = [{}, { delay: 20 + random.next(400) }, { priority: 1 + random.next(5) }, { lifo: true }];
      const job = this.one(way, places[random.next(places.length)]);
      // owns an id until it ends
      if (way === 'delays') job.opts.deduplication = { id: job.name };
      return job;
    });
  }

  private one(way: Way, opts: BulkJobOptions = {}): NewJob {
    const name = `${way}-${this.made++}`;
    this.added.set(name, way);
    const tries = { retries: { attempts: ATTEMPTS, backoff: { type: 'fixed', delay: 15 } }, fails: { attempts: 2 } };
    return { name, data: { way, step: 0 }, opts: { ...tries[way as 'retries'], ...opts } };
  }

  /** A tree of jobs in both queues. */
  tree(queueName: string, otherName: string): FlowJob {
    const leaf = (way: Way, opts = {}): NewJob => this.one(way, opts);
    return {
      ...leaf('returns'),
      queueName,
      children: [
        { ...leaf('works'), queueName: otherName },
        { ...leaf('fails', { ignoreDependencyOnFailure: true }), queueName },
        {
          ...leaf('delays'),
          queueName: otherName,
          children: [
            { ...leaf('retries'), queueName },
            { ...leaf('large'), queueName: otherName },
          ],
        },
      ],
    };
  }

  /** The handler of a worker of this library. Children go to its queue and to the other one. */
  handler(who: string, lib: Library, queue: Queue, other: Queue): Processor<JobData> {
    return async (job, token = '') => {
      const name = job.data.way === 'ticks' ? (job.id ?? '') : job.name;
      this.runs.set(name, [...(this.runs.get(name) ?? []), who]);
      const result = await this.run(job, token, lib, [queue, other]);
      if (job.data.way !== 'ticks') this.ended.push(name);
      return result;
    };
  }

  private async run(job: Job<JobData>, token: string, lib: Library, queues: readonly [Queue, Queue]): Promise<unknown> {
    const { way, step } = job.data;
    if (way === 'works') {
      // a handler that takes its time
      await sleep(this.random.next(40));
      await job.log(`worked as ${job.name}`);
      await job.updateProgress(100);
    }
    if (way === 'large') return LARGE;
    if (way === 'retries' && job.attemptsMade + 1 < ATTEMPTS) throw new Error(`no. ${job.attemptsMade + 1}`);
    if (way === 'fails') {
      if (job.attemptsMade > 0) this.ended.push(job.name);
      throw new Error(`never: ${job.name}`);
    }
    if (step === 0) await this.moveItself(job, token, lib, queues);
    return way === 'parents' ? childrenOf(job) : { of: job.name };
  }

  private async moveItself(
    job: Job<JobData>,
    token: string,
    lib: Library,
    [queue, other]: readonly [Queue, Queue],
  ): Promise<void> {
    const { way } = job.data;
    if (way !== 'delays' && way !== 'waits' && way !== 'parents') return;
    await job.updateData({ way, step: 1 });
    if (way === 'delays') {
      await job.moveToDelayed(Date.now() + 20 + this.random.next(100), token);
      throw new lib.DelayedError();
    }
    if (way === 'waits') {
      await job.moveToWait(token);
      throw new lib.WaitingError();
    }
    const parent = { id: job.id ?? '', queue: job.queueQualifiedName };
    await queue.addBulk([
      this.one('retries', { parent }),
      this.one('fails', { parent, ignoreDependencyOnFailure: true }),
    ]);
    await other.addBulk([this.one('works', { parent })]);
    if (await job.moveToWaitingChildren(token)) throw new lib.WaitingChildrenError();
  }

  get areDone(): boolean {
    return this.ended.length >= this.added.size;
  }

  /** Each job ran as often as it had to. */
  expectRuns(): void {
    const wrong: string[] = [];
    for (const [name, way] of this.added) {
      const by = this.runs.get(name) ?? [];
      const [least, most] = RUNS[way];
      if (by.length < least || by.length > most) wrong.push(`${name}: ${by.join(', ') || 'never'}`);
    }
    expect(wrong).toEqual([]);
    expect(new Set(this.ended).size).toBe(this.ended.length);
  }

  /** Each job is there once, in the state in which it ended, with what it gave. */
  expectEnds(found: readonly Job[]): void {
    const byName = new Map<string, Job[]>();
    for (const job of found) byName.set(job.name, [...(byName.get(job.name) ?? []), job]);
    const wrong: string[] = [];
    for (const [name, way] of this.added) {
      const jobs = byName.get(name) ?? [];
      const [job] = jobs;
      if (jobs.length !== 1 || !job) wrong.push(`${name} is there ${jobs.length} times`);
      else if (!isAsItEnded(job, way)) wrong.push(`${name}: ${JSON.stringify(job).slice(0, 300)}`);
    }
    expect(wrong).toEqual([]);
    expect(found.length).toBe(this.added.size);
  }
}

async function childrenOf(job: Job): Promise<unknown> {
  const [values, failures] = [await job.getChildrenValues(), await job.getIgnoredChildrenFailures()];
  return { values: Object.keys(values).length, failures: Object.keys(failures).length };
}

const RESULTS: Partial<Record<Way, unknown>> = { large: LARGE, parents: { values: 2, failures: 1 } };

function isAsItEnded(job: Job, way: Way): boolean {
  if (way === 'fails') return job.failedReason === `never: ${job.name}` && job.attemptsMade === 2;
  const attempts = way === 'retries' ? ATTEMPTS : 1;
  const result = JSON.stringify(RESULTS[way] ?? { of: job.name });
  return JSON.stringify(job.returnvalue) === result && job.attemptsMade === attempts && (job.finishedOn ?? 0) > 0;
}
