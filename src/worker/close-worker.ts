import type { Commands } from '../connection/commands.js';
import type { Readiness } from '../connection/readiness.js';
import type { NativeWorker } from '../native/types.js';
import type { ChildPool } from '../sandbox/pool.js';
import type { Dispatcher } from './dispatcher.js';

/** Milliseconds between looks whether the server is still there. */
const PATIENCE_MS = 2000;

// Taken at load, so that a user's fake timers do not hold up a close.
const { setTimeout } = globalThis;

/** What a worker consists of. */
interface WorkerParts {
  readonly readiness: Readiness;
  readonly dispatcher: Dispatcher;
  readonly engine: NativeWorker;
  readonly commands: Commands;
  readonly childPool: ChildPool | undefined;
  /** Is given the error of a step that fails; the next one is taken all the same. */
  readonly report: (error: unknown) => void;
}

/** Ends the jobs that run, unless forced, and closes all connections. */
export async function closeWorker(parts: WorkerParts, force: boolean): Promise<void> {
  const { readiness, dispatcher, engine, commands, childPool } = parts;
  const attempt = (step: Promise<void> | undefined): Promise<void> | undefined => step?.catch(parts.report);
  if (force) {
    dispatcher.stop();
  } else {
    dispatcher.pause();
    void engine.pause();
    await dispatcher.whenQuiet();
    dispatcher.flush();
    // So that the last events come before `closed`. Without a connection there is nothing to wait for: closing the
    // engine tries once more to store the outcomes.
    if (!readiness.isDown) await settle(dispatcher, engine);
  }
  await attempt(childPool?.clean(force ? 'SIGKILL' : 'SIGTERM'));
  await attempt(engine.close(force));
  dispatcher.stop();
  await attempt(commands.close());
}

/** Waits until every outcome is stored, as long as the server may store them: large results take a while, and so does a busy server. */
async function settle(dispatcher: Dispatcher, engine: NativeWorker): Promise<void> {
  const settled = dispatcher.whenSettled().then(() => true);
  while (!(await Promise.race([settled, patience()])) && engine.isReachable());
}

/** Resolves after the longest wait for a server that may be gone. */
export function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref());
}
