/** The library of functions that runs in the server, as an administrator looks after it. */
import { COMMANDS } from '../../connection/members.js';
import { native } from '../../native/addon.js';
import type { NativeLibrary, NativeQueue } from '../../native/types.js';

/** A queue whose servers are meant. */
interface OpenQueue {
  readonly [COMMANDS]: { readonly native: NativeQueue };
}

/** What one server has of the library. Field names and states are part of the `--json` output of `library`. */
export interface ServerLibrary {
  /** Its address. */
  readonly server: string;
  /** `different`: somebody else's has its name. `unknown`: this user may not look. */
  readonly state: 'loaded' | 'missing' | 'different' | 'unknown';
}

/** Name and text of the library of this release. */
export function ownLibrary(): NativeLibrary {
  return native.library();
}

/** Looks for it; in a cluster on each master. */
export function findLibrary({ [COMMANDS]: commands }: OpenQueue): Promise<ServerLibrary[]> {
  return commands.native.libraries() as Promise<ServerLibrary[]>;
}

/** Loads it where it is missing; in the place of somebody else's only if it `replaces` that. */
export function loadLibrary({ [COMMANDS]: commands }: OpenQueue, replaces: boolean): Promise<ServerLibrary[]> {
  return commands.native.loadLibrary(replaces) as Promise<ServerLibrary[]>;
}

/** Users who may load functions, and so replace those that others call; none where this one may not ask. */
export function functionLoaders({ [COMMANDS]: commands }: OpenQueue): Promise<string[]> {
  return commands.native.functionLoaders();
}
