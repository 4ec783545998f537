/**
 * Each wanted difference from BullMQ 6.7.0, once. The page docs/differences.md is made of it (`npm run format`), and
 * `chasquimq doctor` tells which of them concern a code base. The test of a difference names its id.
 */
import type { Difference } from './difference.js';
import { adding } from './differences/adding.js';
import { connections } from './differences/connections.js';
import { outcomes } from './differences/outcomes.js';
import { queues } from './differences/queues.js';
import { schedulers } from './differences/schedulers.js';
import { workers } from './differences/workers.js';

/** By what a program does, in the order of a job's life. */
export const differences: readonly Difference[] = [
  ...connections,
  ...adding,
  ...schedulers,
  ...workers,
  ...outcomes,
  ...queues,
];
