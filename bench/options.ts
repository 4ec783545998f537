import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { messageOf, UsageError } from './ending.js';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>['values'];

/** The options of a program's command line. `--help`, and what is none of them, ends the program with its usage. */
export function readOptions<const O extends Options>(argv: readonly string[], usage: string, options: O): Values<O> {
  const values = (() => {
    try {
      const withHelp: Options = { ...options, help: { type: 'boolean', short: 'h' } };
      return parseArgs({ args: [...argv], options: withHelp }).values;
    } catch (error) {
      throw new UsageError(`${messageOf(error)}\n\n${usage}`);
    }
  })();
  if (values.help) throw new UsageError(usage);
  return values as Values<O>;
}
