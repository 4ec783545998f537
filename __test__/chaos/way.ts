import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** How a way breaks in the middle of something. */
export type Middle = 'request' | 'reply';

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
}

/** Leads to one server. */
interface Door {
  /** Port of the server. */
  readonly target: number;
  /** Port of the door, which it keeps. */
  port: number;
  listener: Server | undefined;
}

/** One process's TCP way to the servers of a run, with everything that can go wrong on a way. */
export class Way {
  readonly #links = new Set<Link>();
  readonly #doors: readonly Door[];
  #stalled = false;
  #breaking: { middle: Middle; broken: () => void } | undefined;

  private constructor(targets: readonly number[]) {
    this.#doors = targets.map((target) => ({ target, port: 0, listener: undefined }));
  }

  /** `targets`: ports of the servers on this machine. */
  static async to(targets: readonly number[]): Promise<Way> {
    const way = new Way(targets);
    await way.open();
    return way;
  }

  /** Ports of the servers, and where they are on this way. */
  get ports(): [target: number, port: number][] {
    return this.#doors.map(({ target, port }) => [target, port]);
  }

  /** Accepts connections, on the ports of the last time if there was one. */
  async open(): Promise<void> {
    for (const door of this.#doors) {
      if (door.listener) continue;
      const listener = createServer((client) => this.#lead(client, door.target));
      door.listener = listener;
      await new Promise<void>((resolve) => listener.listen(door.port, '127.0.0.1', resolve));
      door.port = (listener.address() as AddressInfo).port;
    }
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
    const listeners = this.#doors.flatMap(({ listener }) => listener ?? []);
    for (const door of this.#doors) door.listener = undefined;
    const closed = listeners.map((listener) => new Promise((resolve) => listener.close(resolve)));
    this.cut();
    await Promise.all(closed);
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

  #lead(client: Socket, target: number): void {
    const upstream = connect(target, '127.0.0.1');
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
