/** An error as it travels between processes: its own properties. */
export type PlainError = Record<string, unknown> & { message: string };

/**
 * What was thrown, as plain data; what refers to itself becomes `[Circular]`. Not an Error: becomes one's message. What throws
 * when it is looked at is told by what it throws then.
 */
export function toPlainError(thrown: unknown): PlainError {
  try {
    return plainly(thrown);
  } catch (oddity) {
    try {
      return plainly(oddity);
    } catch {
      return { message: 'what was thrown throws when it is looked at' };
    }
  }
}

function plainly(thrown: unknown): PlainError {
  const error = thrown instanceof Error || isErrorLike(thrown) ? thrown : new Error(String(thrown));
  const plain = Object.fromEntries(ownEntries(error).map(([key, value]) => [key, withoutCircles(value, [error])]));
  return { ...plain, message: error.message || String(error) };
}

/** Errors of another realm, such as a worker thread's or a test runner's, are no instances of this one's Error. */
function isErrorLike(thrown: unknown): thrown is Error {
  return Boolean((Object(thrown) as Partial<Error>).message);
}

function withoutCircles(value: unknown, above: unknown[]): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[Circular]';
  const path = [...above, value];
  if (value instanceof Error) return withoutCircles(Object.fromEntries(ownEntries(value)), path);
  if (Array.isArray(value)) return value.map((item) => withoutCircles(item, path));
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value;
  return Object.fromEntries(ownEntries(value).map(([key, item]) => [key, withoutCircles(item, path)]));
}

function ownEntries(value: object): [string, unknown][] {
  return Object.getOwnPropertyNames(value).map((key) => [key, (value as Record<string, unknown>)[key]]);
}

/**
 * An Error with the properties that the plain one has. All but the stack are listed, as in BullMQ: its message is in its JSON. What is none, which a
 * processor may send as well, becomes the message of one.
 */
export function fromPlainError(plain: PlainError): Error {
  if (typeof plain !== 'object' || plain === null) return new Error(String(plain));
  const error = new Error(plain.message);
  for (const [key, value] of Object.entries(plain)) {
    Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: key !== 'stack' });
  }
  return error;
}
