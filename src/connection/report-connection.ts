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
}

/**
 * Tells the owner and the readiness of a connection what the engine reports of it.
 * @param failure why connecting failed
 */
export function reportConnection(
  owner: ConnectionOwner,
  readiness: Readiness,
  { closed, eviction }: ConnectionReport,
  failure: NativeError | undefined,
): void {
  if (eviction) warnOfEviction(eviction);
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
