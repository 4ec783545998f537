/** Signals that handlers wait for, each given once and for good. */

/** What handlers know of them. */
export interface SignalBox {
  wait(name: string): Promise<void>;
  give(name: string): void;
}

interface Waiter {
  readonly by: string | undefined;
  wake(): void;
}

export class Signals implements SignalBox {
  readonly #given = new Set<string>();
  readonly #waiting = new Map<string, readonly Waiter[]>();
  /** Handlers that wait now, but for those that are forgotten. */
  held = 0;
  #all = false;

  give(name: string): void {
    this.#given.add(name);
    for (const { wake } of this.#waiting.get(name) ?? []) wake();
    this.#waiting.delete(name);
  }

  /** Of a program that is over nobody waits any more. */
  giveAll(): void {
    this.#all = true;
    for (const name of [...this.#waiting.keys()]) this.give(name);
  }

  waitingFor(name: string): number {
    return this.#waiting.get(name)?.length ?? 0;
  }

  /** The server knows nothing any more of the jobs whose handlers wait. */
  forgetHeld(): void {
    this.held = 0;
  }

  /** A process is gone, and with it those who waited in it. */
  forget(process: string): void {
    for (const [name, waiters] of this.#waiting) {
      this.#waiting.set(
        name,
        waiters.filter(({ by }) => by !== process),
      );
      for (const { by, wake } of waiters) if (by === process) wake();
    }
  }

  /** @param by the process in which the handler waits; none: that of the program */
  async wait(name: string, by?: string): Promise<void> {
    if (this.#all || this.#given.has(name)) return;
    this.held++;
    await new Promise<void>((wake) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), { by, wake }]);
    });
    this.held = Math.max(0, this.held - 1);
  }
}
