import type { Commands } from '../connection/commands.js';
import type { NativeWorker } from '../native/types.js';
import type { ChildPool } from '../sandbox/pool.js';
import type { Dispatcher } from './dispatcher.js';

/** Longest wait of a pause for a server that answers nothing, in milliseconds. */
const PATIENCE_MS = 2000;
/** Longest time of a forced close for what must not run twice, in milliseconds. */
const LAST_WORDS_MS = 500;
/** The same where it knows of nothing: a fetch may be under way. */
const LAST_FETCH_MS = 100;

// Taken at load, so that a user's fake timers do not hold up a close.
const { setTimeout, clearTimeout, setImmediate } = globalThis;

/** What a worker consists of. */
interface WorkerParts {
  readonly dispatcher: Dispatcher;
  readonly engine: NativeWorker;
  readonly commands: Commands;
  readonly childPool: ChildPool | undefined;
  readonly lockDuration: number;
  /** Whether the server is there, as far as is known. */
  readonly isUp: boolean;
  /** Is given the error of a step that fails; the next one is taken all the same. */
  readonly report: (error: unknown) => void;
}

/** Ends the jobs that run, unless forced, and closes all connections. */
export async function closeWorker(parts: WorkerParts, force: boolean): Promise<void> {
  const { dispatcher, engine, commands, childPool } = parts;
  const attempt = (step: Promise<void> | undefined): Promise<void> | undefined => step?.catch(parts.report);
  if (force) {
    if (parts.isUp) await leaveRunning(parts);
    // before the children are killed: their jobs do not fail by that
    dispatcher.stop();
  } else {
    dispatcher.pause();
    void engine.pause();
    await dispatcher.whenQuiet();
    dispatcher.flush();
    await settle(parts);
  }
  await attempt(childPool?.clean(force ? 'SIGKILL' : 'SIGTERM'));
  await attempt(engine.close(force));
  dispatcher.stop();
  await attempt(commands.close());
}

/**
 * Waits until every outcome is stored, and the last events are told: as long as the server is there, however slow, and as long as the jobs' locks last where
 * it answers nothing, as other workers run them again then.
 */
async function settle({ dispatcher, engine, lockDuration }: WorkerParts): Promise<void> {
  await Promise.race([dispatcher.whenSettled(), engine.unreachable(lockDuration)]);
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
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise((resolve) => (timer = setTimeout(resolve, most - dispatcher.silentFor)));
  await Promise.race([tooLong, Promise.all([givenBack, dispatcher.whenRecorded()])]);
  clearTimeout(timer);
}

/** Resolves after the longest wait of a pause. */
export function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref());
}
