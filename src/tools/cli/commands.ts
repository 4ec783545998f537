import type { Command } from './command.js';
import { cancel } from './commands/cancel.js';
import { doctor } from './commands/doctor.js';
import { failed } from './commands/failed.js';
import { inspect } from './commands/inspect.js';
import { jobs } from './commands/jobs.js';
import { library } from './commands/library.js';
import { migrate } from './commands/migrate.js';
import { watch } from './commands/watch.js';

/**
 * The commands, in the order of `--help`. None of these files loads the facade before it runs: help and `doctor` do
 * without the addon.
 */
export const COMMANDS: readonly Command[] = [migrate, doctor, inspect, watch, jobs, cancel, failed, library];
