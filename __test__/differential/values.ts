/** What JSON cannot say, written in JSON; and what handlers throw. */
import { createHash } from 'node:crypto';

/** JSON in which `{ $: text }` stands for something else: `undefined`, a number that is none, a long text. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [name: string]: Plain };

export function decode(plain: Plain): unknown {
  if (typeof plain !== 'object' || plain === null) return plain;
  if (Array.isArray(plain)) return (plain as readonly Plain[]).map(decode);
  const { $ } = plain as Record<string, Plain>;
  if (typeof $ === 'string') return special($);
  return Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, decode(value)]));
}

function special(text: string): unknown {
  const [kind, argument = ''] = text.split(':');
  switch (kind) {
    case 'undefined':
      return undefined;
    case 'number':
      return Number(argument);
    case 'long':
      return 'x'.repeat(Number(argument));
    case 'now':
      return Date.now() + Number(argument);
    case 'error':
      return new Error(argument);
    case 'date':
      return new Date(Number(argument));
    default:
      throw new Error(`no value is called ${text}`);
  }
}

const ODD_THROWS = [
  ...[
    'text',
    'null',
    'undefined',
    'object',
    'number',
    'function',
    'messageGetter',
    'stackGetter',
    'nameGetter',
    'proxy',
  ],
  ...['bigintStack', 'frozen', 'circular', 'noStack', 'numberMessage', 'nullMessage', 'longMessage', 'nullPrototype'],
  ...['stackArray', 'rejectingThen'],
] as const;
export const THROWN = ['error', 'unrecoverable', 'named', ...ODD_THROWS] as const;
export type Thrown = (typeof THROWN)[number];

/** What a handler throws; `Unrecoverable` is the library's class. */
export function thrown(what: Thrown, text: string, Unrecoverable: new (message?: string) => Error): unknown {
  switch (what) {
    case 'error':
      return new Error(text);
    case 'unrecoverable':
      return new Unrecoverable(text);
    case 'named':
      return Object.assign(new Error(text), { name: 'UnrecoverableError' });
    case 'text':
      return text;
    case 'null':
      return null;
    case 'undefined':
      return undefined;
    case 'object':
      return { message: text, code: 7 };
    case 'number':
      return 42;
    case 'function':
      return function oddity() {};
    case 'messageGetter':
      return withGetter('message', text);
    case 'stackGetter':
      return withGetter('stack', text);
    case 'nameGetter':
      return withGetter('name', text);
    case 'proxy':
      return throwingProxy(text);
    case 'bigintStack':
      return Object.assign(new Error(text), { stack: 7n });
    case 'stackArray':
      return Object.assign(new Error(text), { stack: ['a', 'b'] });
    case 'frozen':
      return Object.freeze(new Error(text));
    case 'circular': {
      const error: Error & { self?: unknown } = new Error(text);
      error.self = error;
      return error;
    }
    case 'noStack':
      return Object.assign(new Error(text), { stack: undefined });
    case 'numberMessage':
      return Object.assign(new Error(text), { message: 42 });
    case 'nullMessage':
      return Object.assign(new Error(text), { message: null });
    case 'longMessage':
      return new Error(text.repeat(5_000));
    case 'nullPrototype':
      return Object.assign(Object.create(null) as object, { message: text });
    case 'rejectingThen':
      return Object.assign(new Error(text), { then: 7 });
    default:
      throw new Error(`nothing that is thrown is called ${String(what)}`);
  }
}

function withGetter(name: string, text: string): Error {
  return Object.defineProperty(new Error(text), name, {
    get() {
      throw new TypeError(`${name} is not to be read`);
    },
  });
}

function throwingProxy(text: string): unknown {
  const refuse = (): never => {
    throw new TypeError('the proxy refuses');
  };
  return new Proxy(new Error(text), { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse });
}

export const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Longer texts are told apart by their hash. */
const LONG = 300;

/** Any value as a text that two processes, and two libraries, agree upon. */
export function shown(value: unknown): string {
  return shorten(asText(value).replace(UUID, '<uuid>'));
}

function asText(value: unknown): string {
  if (value === undefined) return 'undefined';
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol') return `<${typeof value}>`;
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (value instanceof Error) return `Error(${messageOf(value)})`;
  try {
    return (
      JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? '<bigint>' : sorted(inner))) ??
      'undefined'
    );
  } catch (error) {
    return `<not JSON: ${messageOf(error).split('\n')[0]}>`;
  }
}

/** An object with its fields in order. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function shorten(text: string): string {
  if (text.length <= LONG) return text;
  const hash = createHash('sha1').update(text).digest('hex').slice(0, 8);
  return `${text.slice(0, 30)}... (${text.length}, ${hash})`;
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  try {
    const { message } = error as { message?: unknown };
    return typeof message === 'string' ? message : `<message is ${typeof message}>`;
  } catch {
    return `<${error === null || error === undefined ? String(error) : 'message cannot be read'}>`;
  }
}
