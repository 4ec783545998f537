import { parseArgs, type ParseArgsConfig } from 'node:util';
import { UsageError } from './command.js';
import { didYouMean } from './nearest.js';

/** The options of a command, as `parseArgs` of `node:util` takes them. */
export type OptionsConfig = NonNullable<ParseArgsConfig['options']>;

/** What stands on the command line. */
export interface Arguments {
  readonly values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;
  readonly positionals: readonly string[];
}

/**
 * Reads options and positionals.
 * @param most positionals that the command takes
 * @throws UsageError that names what is wrong
 */
export function readArguments(args: string[], options: OptionsConfig, most = Infinity): Arguments {
  const { values, positionals } = parse(args, options);
  const surplus = positionals[most];
  if (surplus !== undefined) throw new UsageError(`"${surplus}" is one argument too many.`);
  return { values, positionals };
}

function parse(args: string[], given: OptionsConfig): Arguments {
  const options = isBare(args, 'wait') && given.wait ? { ...given, wait: { type: 'boolean' as const } } : given;
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    const { message, code } = error as Error & { code?: unknown };
    if (typeof code !== 'string' || !code.startsWith('ERR_PARSE_ARGS')) throw error;
    throw new UsageError(explained(message, options));
  }
}

/** Whether the option stands there without a value: last, or before another option. `parseArgs` knows no value that may be left out. */
function isBare(args: readonly string[], name: string): boolean {
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  return own.some((arg, i) => arg === `--${name}` && (own[i + 1] ?? '-').startsWith('-'));
}

/** Of Node's message the part that says what is wrong, and the option that was probably meant. */
function explained(message: string, options: OptionsConfig): string {
  const [, unknown] = /^Unknown option '(-+[^'=]*)/.exec(message) ?? [];
  if (unknown === undefined) return message.split('\n', 1)[0].replace(/\.?$/, '.');
  const names = Object.keys(options).map((name) => `--${name}`);
  return `There is no option ${unknown}.${didYouMean(unknown, names)}`;
}

/** The text given for an option, or undefined. */
export function textOf({ values }: Arguments, name: string): string | undefined {
  const value = values[name];
  if (typeof value !== 'string') return undefined;
  if (value === '') throw new UsageError(`--${name} is empty.`);
  return value;
}

/** Whether a flag is given. */
export function isGiven({ values }: Arguments, name: string): boolean {
  return values[name] === true;
}

/** The whole number given for an option, or undefined. */
export function countOf(read: Arguments, name: string, least = 1): number | undefined {
  const text = textOf(read, name);
  if (text === undefined) return undefined;
  const number = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(number) || number < least) {
    throw new UsageError(`--${name} must be a whole number of at least ${least}, not "${text}".`);
  }
  return number;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The time given for an option (`500ms`, `30s`, `5m`, `2h`, `7d`), in milliseconds, or undefined. */
export function timeOf(read: Arguments, name: string): number | undefined {
  const text = textOf(read, name);
  if (text === undefined) return undefined;
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(number) * (UNITS[unit ?? ''] ?? NaN);
  if (!Number.isFinite(ms)) throw new UsageError(`--${name} must be a time such as 30s, 5m, 2h or 7d, not "${text}".`);
  return ms;
}

/** For how long `--wait` waits for jobs to end, as `waitForEnd` of the queue's methods has it: true as long as it takes, undefined not at all. */
export function waitOf(read: Arguments): number | true | undefined {
  const ms = isGiven(read, 'wait') || timeOf(read, 'wait');
  if (ms === 0) throw new UsageError('--wait must be longer than 0.');
  return ms;
}
