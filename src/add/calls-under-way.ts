/**
 * Calls of this thread that let jobs start, and are not answered yet. A worker of the same thread may be given such a job before the caller
 * is answered: both travel on sockets of their own. It starts the job behind the answer, so that whoever awaits `add` knows the job, and
 * listens for its events, before they come.
 */

/** Calls about one queue. */
interface Calls {
  /** Those without an answer, oldest first, by number, and whether they are adds. Others let jobs of any age start. */
  readonly open: Map<number, boolean>;
  /** How many of them are no adds. */
  others: number;
  /** The highest number of a job that an add was answered with. */
  newest: number;
  /** Whether some were not answered for long, and none since. */
  isSilent: boolean;
  waiting: Waiting[];
}

/** Somebody who waits until all calls up to a number are answered, or the adds of jobs up to a number. */
interface Waiting {
  readonly upTo: number;
  readonly youngest: number;
  readonly release: () => void;
}

/** For calls that may let jobs of any queue start. */
export const ANY_QUEUE = '';

/** Milliseconds for which jobs wait for an answer: a server that is gone, or a call that takes long, must not keep them from running. */
const PATIENCE_MS = 100;

// Taken at load, so that a user's fake timers do not hold up jobs.
const nextTick = process.nextTick.bind(process);
const { queueMicrotask, setImmediate, setTimeout, clearTimeout } = globalThis;

const byQueue = new Map<string, Calls>();
let lastCall = 0;

/**
 * A call is about to be sent.
 * @param queue its qualified name, or `ANY_QUEUE`
 * @param newest of an add: the highest number that its producer was answered with so far
 * @returns its number
 */
export function beginCall(queue: string, newest?: number): number {
  let calls = byQueue.get(queue);
  if (!calls) byQueue.set(queue, (calls = { open: new Map(), others: 0, newest: 0, isSilent: false, waiting: [] }));
  if (newest === undefined) calls.others++;
  else if (newest > calls.newest) calls.newest = newest;
  calls.open.set(++lastCall, newest !== undefined);
  return lastCall;
}

/** A call was answered, or never will be. Arguments are those of {@link beginCall}. */
export function endCall(queue: string, call: number, newest = 0): void {
  const calls = byQueue.get(queue);
  if (!calls) return;
  calls.isSilent = false;
  // numbers begin anew when the queue's data go
  if (newest > 0) calls.newest = newest;
  forget(calls, call);
  wake(queue, calls);
}

function forget(calls: Calls, call: number): void {
  if (calls.open.get(call) === false) calls.others--;
  calls.open.delete(call);
}

function wake(queue: string, calls: Calls): void {
  const { open, newest, waiting } = calls;
  if (open.size === 0 && !calls.isSilent) byQueue.delete(queue);
  if (waiting.length === 0) return;
  const oldest = open.keys().next().value ?? Infinity;
  const isOver = ({ upTo, youngest }: Waiting): boolean => upTo < oldest || youngest <= newest;
  calls.waiting = waiting.filter((other) => !isOver(other));
  for (const other of waiting) if (isOver(other)) other.release();
}

/** Runs a call that lets jobs of a queue start. */
export async function startingJobs<T>(queue: string, call: () => Promise<T>): Promise<T> {
  const number = beginCall(queue);
  try {
    return await call();
  } finally {
    endCall(queue, number);
  }
}

/**
 * Resolves when the callers of what was sent before have gone on; undefined when there is nothing to wait for.
 * @param youngest gives the highest number of the jobs that are to start, Infinity where they may be of any call
 */
export function callersGone(queue: string, youngest: () => number): Promise<void> | undefined {
  if (byQueue.size === 0) return undefined;
  const [own, any] = [byQueue.get(queue), byQueue.get(ANY_QUEUE)];
  const waits: Promise<void>[] = [];
  // a server that is gone holds up no more than one delivery
  if (own && !own.isSilent) {
    const highest = own.others > 0 ? Infinity : youngest();
    if (highest > own.newest) waits.push(answersOf(queue, own, highest));
  }
  if (any && !any.isSilent) waits.push(answersOf(ANY_QUEUE, any, Infinity));
  return waits.length > 0 ? Promise.all(waits).then(afterCallers) : undefined;
}

function answersOf(queue: string, calls: Calls, youngest: number): Promise<void> {
  const upTo = lastCall;
  return new Promise((resolve) => {
    // behind a look at what has come: a handler may have kept the loop from it for long
    const timer = setTimeout(() => setImmediate(giveUp, queue, calls, upTo), PATIENCE_MS);
    const release = (): void => {
      clearTimeout(timer);
      resolve();
    };
    calls.waiting.push({ upTo, youngest, release });
  });
}

/** Nobody waits for these calls any more. */
function giveUp(queue: string, calls: Calls, upTo: number): void {
  if (byQueue.get(queue) !== calls) return;
  const unanswered = [...calls.open.keys()].filter((call) => call <= upTo);
  for (const call of unanswered) forget(calls, call);
  calls.isSilent ||= unanswered.length > 0;
  wake(queue, calls);
}

/** What the answers let go on goes on first: microtasks, however many follow each other. */
function afterCallers(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => nextTick(resolve)));
}
