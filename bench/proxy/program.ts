/**
 * A way to the server that counts what passes, or makes it farther. It is a process of its own: in that of the bench its CPU would
 * count as the library's, and a library whose event loop waits awake for an answer would keep the answer from passing.
 *
 * Started by `proxy.ts`, with its settings as JSON in the first argument.
 */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { Delay } from './delay.js';
import type { FromProxy, ProxySettings, ToProxy, Traffic } from './messages.js';
import { RequestReader } from './requests.js';

const settings = JSON.parse(process.argv[2] ?? '') as ProxySettings;

class Way {
  /** Commands since everything before was answered. */
  unanswered: string[] = [];
  isWaiting = false;
  private readonly reader = new RequestReader((name) => {
    this.unanswered.push(name);
    commands.set(name, (commands.get(name) ?? 0) + 1);
  });

  constructor(client: Socket) {
    const server = connect(settings.upstream.port, settings.upstream.host);
    const requests = new Delay(settings.delayMs, (chunk) => server.write(chunk));
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined); // the close that follows tells the other end
    }
    client.on('data', (chunk) => {
      this.noteRequest(chunk);
      requests.push(chunk);
    });
    server.on('data', (chunk) => {
      this.isWaiting = false;
      bytesOut += chunk.length;
      client.write(chunk);
    });
    client.on('close', () => {
      ways.delete(this);
      server.destroy();
    });
    server.on('close', () => client.destroy());
  }

  private noteRequest(chunk: Buffer): void {
    if (!this.isWaiting) {
      roundTrips += 1;
      this.unanswered = [];
    }
    this.isWaiting = true;
    bytesIn += chunk.length;
    this.reader.push(chunk);
  }
}

const ways = new Set<Way>();
const commands = new Map<string, number>();
let [roundTrips, bytesIn, bytesOut] = [0, 0, 0];

function traffic(anew: boolean): Traffic {
  const unanswered = [...ways].filter((way) => way.isWaiting).map((way) => way.unanswered.join(' '));
  const found = {
    roundTrips,
    bytesIn,
    bytesOut,
    commands: Object.fromEntries(commands),
    unanswered: unanswered.sort(),
  };
  if (anew) {
    [roundTrips, bytesIn, bytesOut] = [0, 0, 0];
    commands.clear();
  }
  return found;
}

const tell = (message: FromProxy) => process.send?.(message);
process.on('message', (message) => tell({ traffic: traffic((message as ToProxy).anew) }));
// the bench is gone
process.on('disconnect', () => process.exit());
process.on('uncaughtException', (error) => {
  tell({ fault: error.message });
  process.exitCode = 1;
  process.disconnect?.();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

const take = (client: Socket) => void ways.add(new Way(client));
const { certificate } = settings;
const listener = certificate ? createSecureServer({ ...certificate }, take) : createServer(take);
listener.listen(0, '127.0.0.1', () => tell({ port: (listener.address() as AddressInfo).port }));
