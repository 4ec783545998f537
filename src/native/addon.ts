/** Loads the addon, once: nothing else does. */
import { createRequire } from 'node:module';
import type * as Native from '../../index.js';
import { withOwnCalls } from './own-calls.js';
import { noAddon } from './no-addon.js';

const addon = load();

export const native = {
  NativeEvents: withOwnCalls(addon.NativeEvents, []),
  NativeQueue: withOwnCalls(addon.NativeQueue, ['add', 'addOne']),
  NativeWorker: withOwnCalls(addon.NativeWorker, ['finish', 'tick']),
  ENDS_A_STEP: addon.ENDS_A_STEP,
  isPlainText: addon.isPlainText,
  library: addon.library,
  mayTryAgain: addon.mayTryAgain,
};

function load(): typeof Native {
  try {
    // The build is CommonJS, where a bundler is to see this call; the sources are run as ES modules, which have no require.
    const found: unknown =
      // eslint-disable-next-line @typescript-eslint/no-require-imports -- see above
      typeof require === 'function' ? require('../../index.cjs') : createRequire(import.meta.url)('../../index.cjs');
    return found as typeof Native;
  } catch (error) {
    throw noAddon(error);
  }
}
