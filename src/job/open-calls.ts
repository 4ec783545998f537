/**
 * Calls of this thread about a job, or about the rate limit of a queue, that are not answered yet. They travel by other connections than the end
 * of a run does. What ends waits for those that were given before it, so that who does not await `job.updateProgress(100)` finds it done
 * all the same, as with BullMQ. It does not wait for long: the call may be one of another object, whose server is gone.
 */
import type { JobQueue } from './minimal-queue.js';

export type Calls = Set<Promise<unknown>>;

/** Milliseconds for which the end of a job waits for an answer. */
const PATIENCE_MS = 2_000;

// Taken at load, so that a user's fake timers do not hold up jobs.
const { setImmediate, setTimeout, clearTimeout } = globalThis;

const open = new Map<string, Calls>();

/** Waits for a call, which is among these meanwhile. Nothing else may wait for it as well, or the stack of its error would not tell who gave it. */
export async function noted<T>(calls: Calls, call: Promise<T>): Promise<T> {
  calls.add(call);
  try {
    return await call;
  } finally {
    calls.delete(call);
  }
}

async function note<T>(what: string, call: Promise<T>): Promise<T> {
  let calls = open.get(what);
  if (!calls) open.set(what, (calls = new Set()));
  try {
    return await noted(calls, call);
  } finally {
    if (calls.size === 0 && open.get(what) === calls) open.delete(what);
  }
}

/** Sends a call about a job. */
export function callAbout<T>(queue: JobQueue, id: string, call: Promise<T>): Promise<T> {
  return note(`${queue.qualifiedName}:${id}`, call);
}

/** Sends a call that limits the rate of a queue. */
export function callToLimit<T>(queue: JobQueue, call: Promise<T>): Promise<T> {
  return note(queue.qualifiedName, call);
}

/** Resolves when the calls that were given so far, and concern the end of a job, are answered or take too long; undefined when there is none. */
export function answersBefore(queue: JobQueue, { id }: { readonly id?: unknown }): Promise<void> | undefined {
  if (open.size === 0) return undefined;
  const about = typeof id === 'string' ? open.get(`${queue.qualifiedName}:${id}`) : undefined;
  const waits = [about, open.get(queue.qualifiedName)].filter((calls) => calls && calls.size > 0) as Calls[];
  return waits.length > 0 ? answersOf(waits) : undefined;
}

function answersOf(waits: Calls[]): Promise<void> {
  const calls = waits.flatMap((some) => [...some]);
  return new Promise((resolve) => {
    const giveUp = (): void => {
      // nobody waits for them any more
      for (const some of waits) for (const call of calls) some.delete(call);
      resolve();
    };
    // behind a look at what has come: a handler may have kept the loop from it for long
    const timer = setTimeout(() => setImmediate(giveUp), PATIENCE_MS);
    void Promise.allSettled(calls).then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
