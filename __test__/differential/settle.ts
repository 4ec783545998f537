/** Waits until nothing happens any more but by what is yet to be done. */
import type { Queue } from 'bullmq';
import { sleep } from '../support/waiting.js';

/** What is due later than that is left to rest. */
const SOON_MS = 3_000;
const POLL_MS = 15;
/** Without a change for that long, what could still change never will. Some of BullMQ's jobs start when its worker's `drainDelay` of a second is over. */
const REST_MS = 2_500;
/** The same where processes have to start, or workers that are gone to be found out. */
const PATIENT_REST_MS = 5_000;
const ENDLESS_MS = 20_000;

export interface Watched {
  readonly queues: readonly Queue[];
  /** Workers with a processor run on this queue, and none of them is paused. */
  hasWorker(queue: number): boolean;
  readonly patient: boolean;
  /** Handlers that run, and how many of them wait for a signal. */
  readonly running: number;
  readonly held: number;
  /** Jobs that were taken by hand. */
  readonly taken: number;
  /** Goes up with everything that is heard. */
  readonly heard: number;
}

/** @returns how it came to rest: `still`, `stuck` with something that could go on and does not, or `endless` */
export async function settle(world: Watched): Promise<'still' | 'stuck' | 'endless'> {
  const begin = performance.now();
  const restMs = world.patient ? PATIENT_REST_MS : REST_MS;
  let last = '';
  let since = begin;
  let polls = 0;
  for (;;) {
    const { text, pending } = await look(world);
    const now = performance.now();
    polls = text === last ? polls + 1 : 0;
    if (text !== last) [last, since] = [text, now];
    if (!pending && polls >= 2) return 'still';
    // a machine that stood still has polled little
    if (now - since > restMs && polls > restMs / POLL_MS / 8) return 'stuck';
    if (now - begin > ENDLESS_MS) return 'endless';
    await sleep(POLL_MS); // there is no signal for what does not happen
  }
}

async function look(world: Watched): Promise<{ text: string; pending: boolean }> {
  const states = await Promise.all(world.queues.map((queue, index) => lookAt(world, queue, index)));
  const active = states.reduce((sum, { counts }) => sum + counts.active, 0);
  const { running, held, taken, heard } = world;
  const pending = states.some((state) => state.pending) || active > held + taken || running > held;
  return { text: JSON.stringify([states, running, held, heard]), pending };
}

async function lookAt({ hasWorker, held }: Watched, queue: Queue, index: number) {
  const counts = (await queue.getJobCounts()) as Record<string, number> & { active: number };
  if (!hasWorker(index) || (await queue.isPaused())) return { counts, pending: false };
  const due = await queue.getDelayedCount(Date.now() + SOON_MS);
  // with handlers that are held there may be no free slot
  const waiting = held > 0 ? 0 : counts.waiting + counts.prioritized;
  return { counts, pending: waiting + due > 0 };
}
