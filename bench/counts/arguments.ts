import { UsageError } from '../ending.js';
import { readOptions } from '../options.js';

const USAGE = `usage: npm run bench:counts [-- --only TEXT] [--json] [--write REASON]

Counts round trips, commands, bytes, calls into the addon, memory and objects, and compares them with
benchmarks/baseline.json. A worse figure fails.

  --only    only what has TEXT in its name
  --json    prints the counts, and compares nothing
  --write   makes the counts the baseline; REASON says why they are not those of the one before`;

export interface Asked {
  readonly only: string | undefined;
  readonly json: boolean;
  readonly reason: string | undefined;
}

export function readArguments(argv: readonly string[]): Asked {
  const { only, json, write } = readOptions(argv, USAGE, {
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    write: { type: 'string' },
  });
  if (write !== undefined && write.trim().length < 10) throw new UsageError('--write takes a reason, in words');
  if (write !== undefined && only !== undefined) throw new UsageError('a baseline is written as a whole: no --only');
  return { only, json, reason: write };
}
