/**
 * Calls of the addon as JavaScript's own: what they throw is an Error that is made here, with the stack of whoever awaits the call.
 *
 * The addon makes its values in the realm of the process. Jest loads this package into a realm of its own for each test file:
 * there, and only there, values of the addon are copied, so that they are of the classes that the caller knows.
 */
import { isPromise } from 'node:util/types';
import { ownError, remade } from './native-error.js';

type Class = new (...args: never[]) => object;
type Callback = (...args: unknown[]) => unknown;

/**
 * A class of the addon with such calls.
 * @param hot methods that are left as they are: they answer nothing, and are called for each job or so
 */
export function withOwnCalls<C extends Class>(Native: C, hot: readonly (keyof InstanceType<C>)[]): C {
  const adopt = isOfThisRealm(Native) ? same : copied;
  const Base = Native as unknown as new (...args: unknown[]) => object;
  class Own extends Base {
    constructor(...args: unknown[]) {
      try {
        super(...args.map((argument) => adopting(argument, adopt)));
      } catch (error) {
        throw ownError(error);
      }
    }
  }
  const methods = Native.prototype as Record<string, Callback>;
  for (const name of Object.getOwnPropertyNames(methods)) {
    if (name === 'constructor' || (hot as readonly string[]).includes(name)) continue;
    Object.defineProperty(Own.prototype, name, { value: ownCall(methods[name], adopt) });
  }
  return Own as unknown as C;
}

function ownCall(method: Callback, adopt: (value: unknown) => unknown): Callback {
  return function (this: object, ...args: unknown[]): unknown {
    let given: unknown;
    try {
      given = method.apply(this, args);
    } catch (error) {
      throw ownError(error);
    }
    return isPromise(given) ? answered(given, adopt) : adopt(given);
  };
}

/** The `await` leads from the error that is made to those who wait: they become part of its stack. */
async function answered(call: Promise<unknown>, adopt: (value: unknown) => unknown): Promise<unknown> {
  try {
    return adopt(await call);
  } catch (error) {
    throw remade(error);
  }
}

function isOfThisRealm(Native: Class): boolean {
  return Native instanceof Function;
}

function same(value: unknown): unknown {
  return value;
}

function copied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return Array.from(value, copied);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copied(item)]));
}

/** What the addon calls gets values of this realm. */
function adopting(argument: unknown, adopt: (value: unknown) => unknown): unknown {
  if (adopt === same || typeof argument !== 'function') return argument;
  const callback = argument as Callback;
  return (...args: unknown[]) => callback(...args.map(adopt));
}
