import type { EventEmitter } from 'node:events';

/** How long a wait may last before it fails the test: longer than anything takes on a slow machine, and shorter than the 30 s of an unset lease. */
const WAIT_MS = 20_000;

/** Resolves as soon as `condition` gives a truthy value, and with that value. */
export async function until<T>(what: string, condition: () => T | Promise<T>, timeoutMs = WAIT_MS): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await sleep(5);
  }
}

/** A fixed pause. Every use says in a comment why no signal can be waited for. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The reason with which `promise` rejects; fails when it resolves or when the reason is no Error. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: unknown }> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (reason: unknown) => ({ reason }),
  );
  if (!('reason' in outcome)) throw new Error(`expected a rejection, got ${String(outcome.value)}`);
  if (!(outcome.reason instanceof Error)) throw new Error(`rejected with ${String(outcome.reason)}, which is no Error`);
  return outcome.reason;
}

/** A promise that a test opens by hand, mostly to hold a processor. */
export class Gate {
  readonly opened: Promise<void>;
  open!: () => void;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

export interface LoggedEvent {
  readonly event: string;
  readonly args: readonly unknown[];
}

/** Keeps the named events of an emitter in the order of their arrival. */
export class EventLog {
  readonly entries: LoggedEvent[] = [];
  readonly #wakers = new Set<() => void>();

  constructor(emitter: object, names: readonly string[]) {
    for (const name of names) {
      (emitter as EventEmitter).on(name, (...args: unknown[]) => {
        this.entries.push({ event: name, args });
        for (const wake of [...this.#wakers]) wake();
      });
    }
  }

  /** The names of the events so far. */
  get names(): string[] {
    return this.entries.map(({ event }) => event);
  }

  /** The arguments of each `event` so far. */
  all<Args extends readonly unknown[]>(event: string): Args[] {
    return this.entries.filter((entry) => entry.event === event).map((entry) => entry.args as Args);
  }

  /** The arguments of the `nth` (1 = first) `event`, which may have arrived already. */
  async get<Args extends readonly unknown[]>(event: string, nth = 1, timeoutMs = WAIT_MS): Promise<Args> {
    await this.when(`${event} no. ${nth}`, () => this.all(event).length >= nth, timeoutMs);
    return this.all<Args>(event)[nth - 1];
  }

  /** Resolves once the log satisfies `condition`. */
  async when(what: string, condition: () => boolean, timeoutMs = WAIT_MS): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
      };
      const wake = () => {
        if (!condition()) return;
        stop();
        resolve();
      };
      const timer = setTimeout(() => {
        stop();
        reject(
          new Error(`waited ${timeoutMs} ms in vain for ${what}; events so far: ${this.names.join(' ') || 'none'}`),
        );
      }, timeoutMs);
      this.#wakers.add(wake);
    });
  }
}
