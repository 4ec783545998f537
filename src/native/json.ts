/**
 * JSON of what users give: data and results.
 *
 * Why `JSON.stringify` does not do it all: of 10 KiB of text it takes 14 us, the addon's look at the same text 2 (Node 20).
 */
import { native } from './addon.js';

/** Characters from which on the addon finds sooner than `JSON.stringify` that a text has nothing to escape. It copies them: not any number. */
const [LONG, LONGEST] = [2048, 2 ** 24];

/** It has no text for `undefined`, a function and a symbol. */
const write: (value: unknown) => string | undefined = JSON.stringify;

/** Values behind a long one that are looked at: a small one costs a part more with it, and most programs have none but small ones. */
const LOOKS = 64;
let looksLeft = 0;

/** As `JSON.stringify`, for less where a value is a long text, or a plain object with long texts among its own properties. */
export function stringify(value: unknown): string | undefined {
  const text = (looksLeft > 0 ? jsonOfLong(value) : undefined) ?? write(value);
  if (text !== undefined && text.length >= LONG) looksLeft = LOOKS;
  else if (looksLeft > 0) looksLeft--;
  return text;
}

function jsonOfLong(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return isPlainLong(value) ? `"${value}"` : undefined;
  if (!hasLong(value) || 'toJSON' in value) return undefined;
  try {
    return jsonOfObject(value as Record<string, unknown>);
  } catch {
    return undefined; // the error of `JSON.stringify` tells of the whole value
  }
}

/** Long texts are put between what `JSON.stringify` makes of the properties before and behind them. */
function jsonOfObject(object: Record<string, unknown>): string {
  let text = '';
  let others: Record<string, unknown> | undefined;
  const append = (properties: string) => {
    if (properties !== '') text += text === '' ? properties : `,${properties}`;
  };
  const appendOthers = () => {
    if (others) append(JSON.stringify(others).slice(1, -1));
    others = undefined;
  };
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (isPlainLong(value)) {
      appendOthers();
      append(`${JSON.stringify(key)}:"${value}"`);
    } else {
      others ??= Object.create(null) as Record<string, unknown>; // where `__proto__` is a key like others
      others[key] = value;
    }
  }
  appendOthers();
  return `{${text}}`;
}

/** Whether an object is plain and has long texts. */
function hasLong(object: object): boolean {
  if (Object.getPrototypeOf(object) !== Object.prototype) return false;
  for (const key in object) {
    if (isLong((object as Record<string, unknown>)[key])) return true;
  }
  return false;
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length >= LONG;
}

function isPlainLong(value: unknown): value is string {
  return isLong(value) && value.length <= LONGEST && native.isPlainText(value);
}
