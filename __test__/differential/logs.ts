/** What is said when a job's handler logs and its `keepLogs` is below 0: its name here, and in BullMQ that the job is missing. */
import { planOf } from './plans.js';
import type { Program } from './program.js';

export const keepsOddLogs = (name: string | undefined, program: Program): boolean =>
  name !== undefined && JSON.stringify(planOf(name, program) ?? {}).includes('keepLogs');

/** The texts of BullMQ and of this package without that. */
export const withoutRefusedLogs = ([theirs, ours]: readonly [string, string]): [string, string] => [
  theirs.replaceAll(/(Error: )?Missing key for job \S+ addLog/g, 'NO'),
  ours.replaceAll(/(RangeError: )?keepLogs must be a whole number of at least 0/g, 'NO'),
];
