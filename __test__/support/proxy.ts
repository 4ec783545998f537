import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { Transform } from 'node:stream';
import { server } from './redis.js';

/** What becomes of a piece: it goes on when this has settled. A number: so many bytes of it do, and then its connection ends. */
type Hold = (piece: Buffer) => Promise<void> | number | undefined;

/** A TCP way to the server under test, or to another one, that can be cut, blocked and opened again. */
export class Proxy {
  readonly #sockets = new Set<Socket>();
  #listener: Server | undefined;
  port = 0;
  /** How many connections were accepted so far. */
  accepted = 0;
  /** On how many of them something was answered. */
  answered = 0;
  /** Where new connections lead to. */
  upstream: { host: string; port: number } = server;
  /** Told of what clients of new connections send. */
  holdRequest: Hold | undefined;
  /** The same of what they are answered. */
  holdAnswer: Hold | undefined;

  /** Accepts connections, on the port of the last time if there was one. */
  async open(): Promise<void> {
    const listener = createServer((client) => {
      this.accepted++;
      const upstream = connect(this.upstream.port, this.upstream.host);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        // The other end is told by the close event that follows.
        socket.on('error', () => undefined);
      }
      client.on('close', () => {
        this.#sockets.delete(client);
        upstream.destroy();
      });
      upstream.on('close', () => {
        this.#sockets.delete(upstream);
        client.destroy();
      });
      upstream.once('data', () => this.answered++);
      (this.holdRequest ? client.pipe(holding(this.holdRequest)) : client).pipe(upstream);
      (this.holdAnswer ? upstream.pipe(holding(this.holdAnswer)) : upstream).pipe(client);
    });
    await new Promise<void>((resolve) => listener.listen(this.port, '127.0.0.1', resolve));
    this.port = (listener.address() as AddressInfo).port;
    this.#listener = listener;
  }

  /** Drops every connection; new ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Drops every connection and refuses new ones. */
  async close(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.cut();
    if (listener) await new Promise((resolve) => listener.close(resolve));
  }
}

function holding(hold: Hold): Transform {
  let hasEnded = false;
  return new Transform({
    transform(piece: Buffer, _, done) {
      if (hasEnded) return done();
      const held = hold(piece);
      if (typeof held !== 'number') return void Promise.resolve(held).then(() => done(null, piece), done);
      hasEnded = true;
      this.push(piece.subarray(0, held));
      this.push(null);
      done();
    },
  });
}
