/** Counts the calls that pass between JavaScript and the addon, in either direction. */
import { createRequire } from 'node:module';

export interface Crossings {
  /** Calls of the addon's functions. */
  readonly toEngine: number;
  /** Calls of the functions that the addon was given. */
  readonly toJavaScript: number;
}

type Function = (this: unknown, ...args: unknown[]) => unknown;
type Class = new (...args: unknown[]) => object;

const CLASSES = ['NativeQueue', 'NativeWorker', 'NativeEvents'];

let toEngine = 0;
let toJavaScript = 0;

export function crossings(): Crossings {
  return { toEngine, toJavaScript };
}

/** Puts counters around the classes of the addon. To be called before a queue or worker is made. */
export function watchBoundary(): void {
  const addon = createRequire(import.meta.url)('../../index.cjs') as Record<string, Class>;
  for (const name of CLASSES) {
    const Native = addon[name];
    if (!Native) throw new Error(`the addon has no ${name}`);
    for (const method of Object.getOwnPropertyNames(Native.prototype)) {
      if (method !== 'constructor') watchMethod(Native.prototype as Record<string, Function>, method);
    }
    addon[name] = new Proxy(Native, {
      construct: (target, args: unknown[]) => Reflect.construct(target, args.map(watched)),
    });
  }
}

function watchMethod(prototype: Record<string, Function>, name: string): void {
  const method = prototype[name];
  if (typeof method !== 'function') return;
  prototype[name] = function (...args) {
    toEngine += 1;
    return method.apply(this, args);
  };
}

function watched(argument: unknown): unknown {
  if (typeof argument !== 'function') return argument;
  const listener = argument as Function;
  return function (this: unknown, ...args: unknown[]) {
    toJavaScript += 1;
    return listener.apply(this, args);
  };
}
