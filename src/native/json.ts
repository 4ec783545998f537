/** JSON of what users give: data and results. */
import { native } from './addon.js';

/** Characters from which on the addon, which compares many at once, finds sooner than `JSON.stringify` that a text has nothing to escape. */
const LONG = 2048;
/** Characters that the addon is to look at, at most: it copies them. */
const LONGEST = 2 ** 24;
/** Properties of an object that is looked at, at most. */
const MOST_KEYS = 32;
/** Keys and values of a JSON text that are looked at, at most. */
const MOST_TEXTS = 2 * MOST_KEYS;
/** Characters of a text from which on it is no copy. What it is a part of has at most twice as many (`LONGEST_TEXT` of the addon). */
const NO_COPY = 32 * 1024;
/** Values behind a long one that are looked at. Most programs have none but small ones, which cost more where they are. */
const LOOKS = 64;
let looksLeft = 0;

/** `JSON.stringify`, which has no text for `undefined`, a function and a symbol. */
const write: (value: unknown) => string | undefined = JSON.stringify;

/** As `JSON.stringify`, for less where a value is a long text, or a plain object with long texts among its own properties. */
export function stringify(value: unknown): string | undefined {
  const text = (looksLeft > 0 ? jsonOfLong(value) : undefined) ?? write(value);
  if (text !== undefined && text.length >= LONG) looksLeft = LOOKS;
  else if (looksLeft > 0) looksLeft--;
  return text;
}

function jsonOfLong(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return isPlainLong(value) ? `"${value}"` : undefined;
  if (Object.getPrototypeOf(value) !== Object.prototype || 'toJSON' in value) return undefined;
  const keys = Object.keys(value);
  if (keys.length > MOST_KEYS || keys.includes('__proto__')) return undefined;
  try {
    return jsonOfObject(value as Record<string, unknown>, keys);
  } catch {
    return undefined; // the error of `JSON.stringify` tells of the whole value
  }
}

/** Long texts are put between what `JSON.stringify` makes of the properties before and behind them. Each property is read once: it may be a getter. */
function jsonOfObject(object: Record<string, unknown>, keys: string[]): string {
  let text = '';
  let others: Record<string, unknown> | undefined;
  const append = (properties: string) => {
    if (properties !== '') text += text === '' ? properties : `,${properties}`;
  };
  const appendOthers = () => {
    if (others) append(JSON.stringify(others).slice(1, -1));
    others = undefined;
  };
  for (const key of keys) {
    const value = object[key];
    if (isPlainLong(value)) {
      appendOthers();
      append(`${JSON.stringify(key)}:"${value}"`);
    } else {
      (others ??= {})[key] = value;
    }
  }
  if (text === '') return JSON.stringify(others ?? {});
  appendOthers();
  return `{${text}}`;
}

function isPlainLong(value: unknown): value is string {
  return typeof value === 'string' && value.length >= LONG && value.length <= LONGEST && native.isPlainText(value);
}

/**
 * As `JSON.parse`, for less where a value is a long text, or an object with long texts among its own properties. It does
 * not check that a long text is without control characters: what lies in Redis is JSON, which has none.
 */
export function parse(text: string): unknown {
  return (text.length >= LONG ? longOfJson(text) : undefined) ?? (JSON.parse(text) as unknown);
}

function longOfJson(text: string): unknown {
  // where nothing is escaped a text lies between a quote and the next one, which V8 finds by comparing many characters at once
  if (text.includes('\\')) return undefined;
  if (text.startsWith('"')) return text.indexOf('"', 1) === text.length - 1 ? textBetween(text, 1, -1) : undefined;
  return text.startsWith('{') ? objectOfJson(text) : undefined;
}

/** Leaves it to `JSON.parse` to read all but the long texts. */
function objectOfJson(text: string): object | undefined {
  const longs: string[] = [];
  let [others, from, end] = ['', 0, -1];
  for (let looks = MOST_TEXTS; looks > 0; looks--) {
    const start = text.indexOf('"', end + 1) + 1;
    if (start === 0) break;
    end = text.indexOf('"', start);
    if (end < 0) return undefined;
    if (end - start < LONG) continue;
    // stands for the text: nothing else in this object has an escape
    others += `${text.substring(from, start)}\\u0000${longs.length}`;
    longs.push(textBetween(text, start, end));
    from = end;
  }
  if (longs.length === 0) return undefined;
  try {
    const object = JSON.parse(others + text.substring(from)) as Record<string, unknown>;
    return putInto(object, longs) ? object : undefined;
  } catch {
    return undefined; // the error of `JSON.parse` tells of the whole text
  }
}

/** Puts texts where those that stand for them are; false where one lies deeper, or is a key. */
function putInto(object: Record<string, unknown>, longs: string[]): boolean {
  let left = longs.length;
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (typeof value !== 'string' || !value.startsWith('\0')) continue;
    object[key] = longs[Number(value.substring(1))];
    left--;
  }
  return left === 0;
}

/** A part of a text, which it does not keep alive unless it is most of it. */
function textBetween(text: string, start: number, end: number): string {
  const part = text.slice(start, end);
  // V8 copies what was put together when it takes a part of it
  return part.length < NO_COPY ? ` ${part}`.substring(1) : part;
}
