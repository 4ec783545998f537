/** JSON of what users give: data and results. */
import { native } from './addon.js';

/** Characters from which on the addon, which compares many at once, finds sooner than `JSON.stringify` that a text has nothing to escape. */
const LONG = 2048;
/** Characters that the addon is to look at, at most: it copies them. */
const LONGEST = 2 ** 24;
/** Properties of an object that is looked at, at most. */
const MOST_KEYS = 32;
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
  if (keys.length > MOST_KEYS) return undefined;
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
      others ??= Object.create(null) as Record<string, unknown>; // where `__proto__` is a key like others
      others[key] = value;
    }
  }
  appendOthers();
  return `{${text}}`;
}

function isPlainLong(value: unknown): value is string {
  return typeof value === 'string' && value.length >= LONG && value.length <= LONGEST && native.isPlainText(value);
}
