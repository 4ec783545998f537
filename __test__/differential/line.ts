/** Two processes of which each calls functions of the other by name. Calls arrive in the order in which they were made. */

/** A process as the one on the other side has it. */
interface Port {
  send?(message: unknown): boolean;
  on(event: 'message', hear: (message: unknown) => void): unknown;
}

type Functions<T> = Record<keyof T, (...args: never[]) => unknown>;
type Message =
  | { readonly call: string; readonly args: unknown[]; readonly number?: number }
  | { readonly answers: number; readonly value?: unknown; readonly error?: string };

export class Line<Theirs extends Functions<Theirs>> {
  readonly #port: Port;
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #last = 0;
  #own: object = {};

  constructor(port: Port) {
    this.#port = port;
    port.on('message', (message) => this.#hear(message as Message));
  }

  /** What the other may call from now on. */
  serve(own: object): void {
    this.#own = own;
  }

  /** Calls without waiting for an answer. */
  tell<Name extends keyof Theirs & string>(call: Name, ...args: Parameters<Theirs[Name]>): void {
    this.#port.send?.({ call, args });
  }

  ask<Name extends keyof Theirs & string>(
    call: Name,
    ...args: Parameters<Theirs[Name]>
  ): Promise<Awaited<ReturnType<Theirs[Name]>>> {
    const number = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#asked.set(number, { resolve: resolve, reject });
      this.#port.send?.({ call, args, number });
    });
  }

  /** The other is gone: nothing is answered any more. */
  cut(): void {
    for (const { reject } of this.#asked.values()) reject(new Error('the process is gone'));
    this.#asked.clear();
  }

  #hear(message: Message): void {
    if ('call' in message) return void this.#serve(message.call, message.args, message.number);
    const { answers, value, error } = message;
    const asked = this.#asked.get(answers);
    this.#asked.delete(answers);
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(new Error(error));
  }

  async #serve(call: string, args: unknown[], number?: number): Promise<void> {
    const own = this.#own as Record<string, ((...args: unknown[]) => unknown) | undefined>;
    if (number === undefined) return void own[call]?.(...args);
    try {
      this.#port.send?.({ answers: number, value: await own[call]?.(...args) });
    } catch (error) {
      this.#port.send?.({ answers: number, error: (error as Error).message });
    }
  }
}
