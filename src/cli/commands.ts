import type { Command } from './command.js';

/**
 * The commands, in the order of `--help`. None of these files loads the facade before it runs: help does without the
 * addon.
 */
export const COMMANDS: readonly Command[] = [];
