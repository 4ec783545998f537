import type { Commands } from '../connection/commands.js';
import type { NativeWorker } from '../native/types.js';
import type { ChildPool } from '../sandbox/pool.js';
import type { Batches } from './batches.js';
import type { Deadline } from './deadline.js';
import type { Dispatcher } from './dispatcher.js';

/** Longest wait of a pause for a server that answers nothing, in milliseconds. */
const PATIENCE_MS = 2000;
/** Longest time of a forced close for what must not run twice, in milliseconds. */
const LAST_WORDS_MS = 500;
/** The same where it knows of nothing: a fetch may be under way. */
const LAST_FETCH_MS = 100;

/** Longest time for handlers to end once their signals are aborted, in milliseconds. */
const GRACE_MS = 500;

/** Why they are aborted. */
const TIME_IS_OVER = 'the worker closes, and the time for its jobs is over';

// Taken at load, so that a user's fake timers do not hold up a close.
const { setTimeout, clearTimeout, setImmediate } = globalThis;

/** What a worker consists of. */
interface WorkerParts {
  readonly dispatcher: Dispatcher;
  readonly engine: NativeWorker;
  readonly commands: Commands;
  readonly childPool: ChildPool | undefined;
  readonly batches: Batches | undefined;
  /** When those that run have had their time. */
  readonly deadline: Deadline;
  readonly lockDuration: number;
  /** Whether the server is there, as far as is known. */
  readonly isUp: boolean;
  /** Is given the error of a step that fails; the next one is taken all the same. */
  readonly report: (error: unknown) => void;
}

/** Ends the jobs that run, unless forced, or gives them back when their time is over, and closes all connections. */
export async function closeWorker(parts: WorkerParts, force: boolean): Promise<void> {
  const { dispatcher, engine, commands, childPool, deadline } = parts;
  const attempt = (step: Promise<void> | undefined): Promise<void> | undefined => step?.catch(parts.report);
  if (force) {
    if (parts.isUp) await leaveRunning(parts);
    // before the children are killed: their jobs do not fail by that
    dispatcher.stop();
    parts.batches?.stop();
  } else {
    dispatcher.pause();
    void engine.pause();
    await Promise.race([settle(parts), deadline.over]);
    if (deadline.isOver) await giveBackRunning(parts);
  }
  deadline.stop();
  await attempt(childPool?.clean(force ? 'SIGKILL' : 'SIGTERM'));
  // a server that has not answered in time is not asked again
  await attempt(engine.close(force || (deadline.isOver && dispatcher.hasEnds)));
  dispatcher.stop();
  await attempt(commands.close());
}

/**
 * Waits until all jobs have ended, every outcome is stored, and the last events are told: as long as the server is there, however slow, and as long as the jobs' locks last where
 * it answers nothing, as other workers run them again then.
 */
async function settle({ dispatcher, engine, lockDuration }: WorkerParts): Promise<void> {
  await dispatcher.whenQuiet();
  dispatcher.flush();
  await Promise.race([dispatcher.whenSettled(), engine.unreachable(lockDuration)]);
}

/**
 * Cuts off the jobs that run: handlers that hear of it have a moment to end, then what is left goes back. Waits for no handler that does not hear of it, and
 * not for long where the server answers nothing.
 */
async function giveBackRunning({ dispatcher, engine, childPool, batches, report }: WorkerParts): Promise<void> {
  if (dispatcher.interrupt(TIME_IS_OVER)) await within(GRACE_MS, dispatcher.whenQuiet());
  dispatcher.abandonRunning();
  batches?.stop();
  // before others can start their jobs
  await childPool?.clean('SIGKILL').catch(report);
  dispatcher.flush();
  await Promise.race([dispatcher.whenSettled(), engine.unreachable(LAST_WORDS_MS)]);
}

/** Waits for something, but no longer than that. */
async function within(ms: number, what: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([what, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}

/**
 * Records what has ended, which would run twice, and gives back what did not start, which would count a stall. Waits for no handler, and not for long where
 * the server answers nothing.
 */
async function leaveRunning({ dispatcher, engine, report }: WorkerParts): Promise<void> {
  const hasSurplus = dispatcher.left > 0;
  dispatcher.pause();
  const givenBack = engine.pause().catch(report);
  // what handlers return now is told when the tick has ended
  await new Promise((resolve) => setImmediate(resolve));
  const most = hasSurplus || dispatcher.hasEnds ? LAST_WORDS_MS : LAST_FETCH_MS;
  await within(most - dispatcher.silentFor, Promise.all([givenBack, dispatcher.whenRecorded()]));
}

/** Resolves after the longest wait of a pause. */
export function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref());
}
