import type { Difference } from './difference.js';

/** The wanted differences from BullMQ. */
export const differences: readonly Difference[] = [];
