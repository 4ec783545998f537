import { errorFromNative } from '../native/native-error.js';
import type { NativeError } from '../native/types.js';
import type { Readiness } from './readiness.js';

/** Whose connection it is. */
interface ConnectionOwner {
  readonly closing: Promise<void> | undefined;
  emit(event: string, ...args: unknown[]): boolean | void;
}

/** What the engine reports of a connection, in messages of each kind. */
interface ConnectionReport {
  readonly closed?: boolean;
  readonly eviction?: string;
  readonly foreignLibrary?: string;
}

/**
 * Tells the owner and the readiness of a connection what the engine reports of it.
 * @param failure why connecting failed
 */
export function reportConnection(
  owner: ConnectionOwner,
  readiness: Readiness,
  { closed, eviction, foreignLibrary }: ConnectionReport,
  failure: NativeError | undefined,
): void {
  if (eviction) warnOfEviction(eviction);
  if (foreignLibrary) warnOfLibrary(foreignLibrary);
  if (failure) {
    const error = errorFromNative(failure);
    // what fails while closing is what closing brings about
    if (!owner.closing) owner.emit('error', error);
    readiness.failed(error);
  }
  if (closed && !owner.closing) {
    readiness.lost();
    owner.emit('ioredis:close');
  }
}

/** Says once a connection, in BullMQ's words, that the server may delete jobs. */
function warnOfEviction(policy: string): void {
  console.warn(`IMPORTANT! Eviction policy is ${policy}. It should be "noeviction"`);
}

let hasWarnedOfLibrary = false;

/** Says once a process that somebody has put functions of their own under the names of ours. */
function warnOfLibrary(name: string): void {
  if (hasWarnedOfLibrary) return;
  hasWarnedOfLibrary = true;
  process.emitWarning(
    `The library ${name} in the server is somebody else's. It is not called: calls go as scripts, where this user may run them. ` +
      'An administrator finds out whose it is, and calls npx chasquimq library load --replace',
    { type: 'ChasquiMQWarning', code: 'CHASQUIMQ_FOREIGN_LIBRARY' },
  );
}
