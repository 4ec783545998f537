/** The time after all faults, in which every job is to come to its end: what does not is left, and somebody is to blame. */
import type { JobType, Queue } from '../../src/index.js';
import { sleep } from '../support/waiting.js';
import { LEASE_MS, SCAN_MS } from './faults.js';
import type { Member } from './member.js';

/** A job that has not come to its end, though nothing moves any more. */
export interface Left {
  readonly state: JobType;
  readonly text: string;
}

const STATES = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children'] as const;
const LOOK_MS = 250;
/** The longest delay of a job, that of a clock which jumped among them. */
const DELAY_MS = 10_000;
/** A job in one place for so long has nobody who runs it, and no delay that is not over. */
const GRACE_MS = LEASE_MS + 2 * SCAN_MS + DELAY_MS;

/** What a fault has left active comes back within that, on a loaded machine, too. */
const RECOVERY_MS = LEASE_MS + 2 * SCAN_MS + 1_000;

/**
 * Jobs that stay active, though no living worker says that it runs them. The load goes on meanwhile: workers that have work hold on to what
 * they have taken, also by mistake.
 */
export async function abandoned(queue: Queue, workers: readonly Member[]): Promise<Left[]> {
  const active = async () => new Set(await queue.getRanges(['active'], 0, -1));
  const end = performance.now() + RECOVERY_MS;
  let unrun = await active();
  while (performance.now() < end) {
    const before = await active();
    const running = await runningOn(workers);
    const after = await active();
    unrun = new Set([...unrun].filter((id) => before.has(id) && after.has(id) && !running.has(id)));
    await sleep(LOOK_MS);
  }
  return Promise.all([...unrun].map((id) => describe(queue, id, 'active')));
}

/** Resolves when all jobs have ended, or nobody runs any of them and all stay where they are. */
export async function calm(queue: Queue, workers: readonly Member[], withinMs: number): Promise<Left[]> {
  const deadline = performance.now() + withinMs;
  /** Where each job is that nobody runs, and since when. */
  let resting = new Map<string, { state: JobType; since: number }>();
  for (;;) {
    const left = await unended(queue);
    if (left.size === 0) return [];
    const running = await runningOn(workers);
    const now = performance.now();
    const before = resting;
    resting = new Map();
    for (const [id, state] of left) {
      const known = before.get(id);
      if (!running.has(id)) resting.set(id, { state, since: known?.state === state ? known.since : now });
    }
    const areAllStuck = running.size === 0 && [...resting.values()].every(({ since }) => now - since >= GRACE_MS);
    if (areAllStuck || now > deadline) return Promise.all([...left].map(([id, state]) => describe(queue, id, state)));
    await sleep(LOOK_MS);
  }
}

async function runningOn(workers: readonly Member[]): Promise<Set<string>> {
  return new Set((await Promise.all(workers.map((worker) => worker.running()))).flat());
}

/** Ids and states of those that have not ended. */
async function unended(queue: Queue): Promise<Map<string, JobType>> {
  const counts: Record<string, number> = await queue.getJobCounts(...STATES);
  const left = new Map<string, JobType>();
  for (const state of STATES) {
    if (counts[state] === 0) continue;
    for (const id of await queue.getRanges([state], 0, -1)) left.set(id, state);
  }
  return left;
}

async function describe(queue: Queue, id: string, state: JobType): Promise<Left> {
  const job = await queue.getJob(id);
  const { key = id } = (job?.data ?? {}) as { key?: string };
  const begun = `started ${job?.attemptsStarted} times, the last time at ${job?.processedOn} by ${job?.processedBy}`;
  const about = `${key} (${job?.name}, id ${id}) is ${state} and nobody runs it; ${begun}`;
  if (state !== 'waiting-children') return { state, text: about };
  const { unprocessed = 0, processed = 0 } = (await job?.getDependenciesCount()) ?? {};
  return { state, text: `${about}; ${unprocessed} of its children have not ended, ${processed} have` };
}
