/** What a side has: how many jobs by state, each number once, and a digest of all that is known of those that did not run meanwhile. */
import { createHash } from 'node:crypto';
import type { Job, JobType, Queue } from 'bullmq';
import { LOGS_IN, SUFFIXES } from './system.js';
import type { Side, System } from './system.js';

const PAGE = 1_000;
const STATES = ['waiting', 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed', 'active'] as const;
/** Sums of hashes stay exact below this. */
const HASH_BYTES = 6;
const MODULUS = 2 ** (8 * HASH_BYTES);

export interface Account {
  readonly jobs: number;
  readonly states: Readonly<Record<string, number>>;
  readonly schedulers: number;
  /** Jobs that are not to run, and a sum of their hashes. */
  readonly kept: number;
  readonly digest: number;
  /** Numbers that more than one job has. */
  readonly doubled: number;
  /** How often each number was found. */
  readonly seen: Uint8Array;
}

export async function readAccount(system: System, side: Side, mostJobs: number): Promise<Account> {
  const seen = new Uint8Array(mostJobs);
  const states: Record<string, number> = {};
  let [kept, digest, doubled, jobs] = [0, 0, 0, 0];
  for (const suffix of SUFFIXES) {
    const queue = system.queue(side, suffix);
    for (const state of STATES) {
      for await (const page of pagesOf(queue, state)) {
        jobs += page.length;
        states[state] = (states[state] ?? 0) + page.length;
        const hashes = await Promise.all(page.map((job) => hashOf(queue, job, suffix + state)));
        for (const [i, job] of page.entries()) {
          const { n } = job.data as { readonly n: number };
          if (n >= 0) {
            seen[n] = (seen[n] ?? 0) + 1;
            if ((seen[n] ?? 0) > 1) doubled += 1;
          }
          if (job.name !== 'kept' && job.name !== 'fails') continue;
          kept += 1;
          digest = (digest + (hashes[i] ?? 0)) % MODULUS;
        }
      }
    }
  }
  const schedulers = await system.queue(side).getJobSchedulersCount();
  return { jobs, states, schedulers, kept, digest, doubled, seen };
}

async function* pagesOf(queue: Queue, state: JobType): AsyncGenerator<Job[]> {
  for (let from = 0; ; from += PAGE) {
    const jobs = await queue.getJobs([state], from, from + PAGE - 1, true);
    if (jobs.length > 0) yield jobs;
    if (jobs.length < PAGE) return;
  }
}

async function hashOf(queue: Queue, job: Job, place: string): Promise<number> {
  if (job.name !== 'kept' && job.name !== 'fails') return 0;
  const { n } = job.data as { readonly n: number };
  const { attempts: _, ...opts } = job.opts;
  const logs = n >= 0 && n % LOGS_IN === 0 ? (await queue.getJobLogs(job.id ?? '')).logs : [];
  const known = [
    ...[
      place,
      job.id,
      job.name,
      job.data,
      opts,
      job.timestamp,
      job.delay,
      job.priority,
      job.progress,
      job.attemptsMade,
    ],
    ...[job.attemptsStarted, job.stalledCounter, job.returnvalue, job.failedReason, job.stacktrace, job.processedOn],
    ...[job.finishedOn, job.processedBy, job.deduplicationId, job.repeatJobKey, logs],
  ];
  const text = JSON.stringify(known.map(inOrder));
  return createHash('sha1').update(text).digest().readUIntBE(0, HASH_BYTES);
}

/** The same with the keys of objects in order, and nothing where there is nothing. */
function inOrder(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, inOrder(inner)]));
}
