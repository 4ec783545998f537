/**
 * Observables as the result of a processor. They are known by their form, the one that libraries of observables agree on, so that none of these is needed here. The file
 * of a child loads this: it knows nothing of the engine.
 */

import { rejectWith } from '../errors/reject-with.js';

/** What a processor may return in place of a value: its last value is the result. RxJS' `Observable` is one. */
export interface ObservableLike<T> {
  /** Begins. The observer is told of each value, then of the end, or of an error. */
  subscribe(observer: { next(value: T): void; error(error: unknown): void; complete(): void }): ObservedLike;
}

/** What ends an observation. */
export interface ObservedLike {
  /** Nothing more is told, and what the observable holds is freed. */
  unsubscribe(): void;
}

/** Where an object says how it is observed: a symbol, where a library has defined it before the others, else this text. */
function symbols(): (string | symbol)[] {
  const { observable } = Symbol as { observable?: symbol };
  return observable ? [observable, '@@observable'] : ['@@observable'];
}

/** @throws what the value throws when it is looked at */
export function isObservable(value: unknown): value is ObservableLike<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  if (typeof (value as { subscribe?: unknown }).subscribe !== 'function') return false;
  return symbols().some((key) => typeof (value as Record<string | symbol, unknown>)[key] === 'function');
}

/**
 * Subscribes, until the signal is aborted.
 * @returns the last value, or undefined when there was none
 * @throws (rejects) the error of the observable; the reason of the signal, once it is unsubscribed
 */
export function lastValueOf(observable: ObservableLike<unknown>, signal: AbortSignal): Promise<unknown> {
  let last: unknown;
  let subscription: ObservedLike | undefined;
  let cancel = (): void => {};
  const ended = new Promise<unknown>((resolve, reject) => {
    cancel = (): void => {
      try {
        subscription?.unsubscribe();
      } catch (error) {
        resolve(rejectWith(error));
      }
      reject(errorOf(signal.reason));
    };
    if (signal.aborted) return cancel();
    signal.addEventListener('abort', cancel);
    subscription = observable.subscribe({
      next: (value) => (last = value),
      error: reject,
      complete: () => resolve(last),
    });
    // a value may have come at once, and somebody may have cancelled the job then
    if (signal.aborted) cancel();
  });
  return ended.finally(() => signal.removeEventListener('abort', cancel));
}

/** `worker.cancelJob` takes a text. */
function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
