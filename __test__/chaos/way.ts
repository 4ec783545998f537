import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** How a way breaks in the middle of something. */
export type Middle = 'request' | 'reply';

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
}

/** One process's TCP way to the server of a run, with everything that can go wrong on a way. */
export class Way {
  readonly #links = new Set<Link>();
  readonly #target: number;
  #listener: Server | undefined;
  #stalled = false;
  #breaking: { middle: Middle; broken: () => void } | undefined;
  port = 0;

  private constructor(target: number) {
    this.#target = target;
  }

  /** `target`: port of the server on this machine. */
  static async to(target: number): Promise<Way> {
    const way = new Way(target);
    await way.open();
    return way;
  }

  /** Accepts connections, on the port of the last time if there was one. */
  async open(): Promise<void> {
    if (this.#listener) return;
    const listener = createServer((client) => this.#lead(client));
    this.#listener = listener;
    await new Promise<void>((resolve) => listener.listen(this.port, '127.0.0.1', resolve));
    this.port = (listener.address() as AddressInfo).port;
  }

  /** Drops every connection on both sides; new ones are accepted. */
  cut(): void {
    for (const { client, upstream } of this.#links) {
      client.destroy();
      upstream.destroy();
    }
  }

  /** Drops every connection on the client's side; the server goes on believing in it until `cut`. */
  orphan(): void {
    for (const { client, upstream } of this.#links) {
      client.removeAllListeners('close');
      upstream.removeAllListeners('data');
      upstream.resume();
      client.destroy();
    }
  }

  /** Drops every connection and refuses new ones. */
  async close(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.cut();
    if (listener) await new Promise((resolve) => listener.close(resolve));
  }

  /** Nothing arrives any more, on either side, and nobody is told. */
  stall(): void {
    this.#stalled = true;
    for (const { client, upstream } of this.#links) {
      client.pause();
      upstream.pause();
    }
  }

  /** All that was held up arrives. */
  flow(): void {
    this.#stalled = false;
    for (const { client, upstream } of this.#links) {
      client.resume();
      upstream.resume();
    }
  }

  /** Resets the next connection that carries a request (or reply) in the middle of it. Resolves when it has happened. */
  async breakIn(middle: Middle, withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (happened: boolean) => {
        clearTimeout(timer);
        this.#breaking = undefined;
        resolve(happened);
      };
      const timer = setTimeout(() => settle(false), withinMs);
      this.#breaking = { middle, broken: () => settle(true) };
    });
  }

  #lead(client: Socket): void {
    const upstream = connect(this.#target, '127.0.0.1');
    const link = { client, upstream };
    this.#links.add(link);
    for (const [from, to, middle] of [
      [client, upstream, 'request'],
      [upstream, client, 'reply'],
    ] as const) {
      from.setNoDelay(true);
      // The other end is told by the close event that follows.
      from.on('error', () => undefined);
      from.on('data', (chunk) => {
        if (this.#breaking?.middle === middle) this.#break(link, to, chunk);
        else if (!to.write(chunk)) from.pause();
      });
      from.on('drain', () => {
        if (!this.#stalled) to.resume();
      });
      from.on('close', () => {
        this.#links.delete(link);
        to.destroy();
      });
      if (this.#stalled) from.pause();
    }
  }

  #break({ client, upstream }: Link, to: Socket, chunk: Buffer): void {
    this.#breaking?.broken();
    // Half of it is on its way before the reset: `end` of a write that is cut off would be told to the other side.
    to.write(chunk.subarray(0, Math.floor(chunk.length / 2)), () => {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    });
  }
}
