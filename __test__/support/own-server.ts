import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { closedPort } from './redis.js';
import { sleep } from './waiting.js';

const START_MS = 60_000;
/** A port that was free may be taken by the time it is wanted. */
const TRIES = 5;

/** No server outlives the tests, however they end. */
const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** A server that one test has for itself, to be starved, killed and started again. It lives in a temporary folder. */
export class OwnServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
  /** Path of its unix socket. */
  readonly path = join(this.folder, 'redis.sock');
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;
  #isFrozen = false;
  port = 0;

  private constructor(args: readonly string[]) {
    this.#args = args;
  }

  /** Starts a server on a free port. `args` are settings as on its command line; without any nothing goes to disk. */
  static async start(...args: string[]): Promise<OwnServer> {
    return withFreePort(async (port) => {
      const server = new OwnServer(args);
      server.port = port;
      try {
        await server.start();
      } catch (error) {
        await server.close();
        throw error;
      }
      return server;
    });
  }

  get connection(): { host: string; port: number } {
    return { host: '127.0.0.1', port: this.port };
  }

  /** Neither killed nor frozen, as far as this test knows. */
  get isRunning(): boolean {
    return this.#process !== undefined && !this.#isFrozen;
  }

  /** A client, which the caller quits. */
  client(): Redis {
    return new Redis(this.connection);
  }

  /** Starts it again, on the same port and with what it has on disk. */
  async start(): Promise<void> {
    await this.kill();
    const settings = ['--save', '', '--dir', this.folder, '--bind', '127.0.0.1', '--unixsocket', this.path];
    const { child, log } = spawnServer(['--port', String(this.port), ...settings, ...this.#args]);
    this.#process = child;
    for (const since = performance.now(); performance.now() - since < START_MS; await sleep(10)) {
      if (child.exitCode !== null) break;
      if (await this.#answers(child.pid)) return;
    }
    throw new Error(`the server of this test does not start:\n${log()}`);
  }

  /** Whether the process that answers on the port is ours, and has loaded its data. */
  async #answers(pid: number | undefined): Promise<boolean> {
    const client = new Redis({ ...this.connection, lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const info = await client.info();
      return info.includes(`process_id:${pid}\r\n`) && info.includes('\r\nloading:0\r\n');
    } catch {
      return false;
    } finally {
      client.disconnect();
    }
  }

  /** It takes connections and commands, and does nothing more; a `kill` ends it. */
  freeze(): void {
    this.#isFrozen = true;
    this.#process?.kill('SIGSTOP');
  }

  /** Ends it without a warning; what it has told to disk stays. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    this.#isFrozen = false;
    if (child) await killServer(child);
  }

  /** Ends it and removes its folder. */
  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts something on a port that is free; on another one, when it was taken meanwhile. */
export async function withFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(await closedPort());
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}

/** Starts a server that ends with the tests; `log` gives what it has said. */
export function spawnServer(args: readonly string[]): { child: ChildProcess; log: () => string } {
  const child = spawn(serverBinary(), args, { stdio: 'pipe' });
  let log = '';
  child.stdout.on('data', (chunk) => (log += chunk));
  child.stderr.on('data', (chunk) => (log += chunk));
  running.add(child);
  child.once('exit', () => running.delete(child));
  return { child, log: () => log };
}

/** Ends a server without a warning. */
export async function killServer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

function serverBinary(): string {
  const given = process.env.REDIS_SERVER_BIN;
  const candidates = given ? [given] : ['redis-server', 'valkey-server'];
  const found = candidates.find((name) => spawnSync(name, ['--version']).status === 0);
  if (found) return found;
  throw new Error(
    `this test needs a server of its own, and there is no ${candidates.join(' or ')} to start: ` +
      'put redis-server or valkey-server on PATH, or name one in REDIS_SERVER_BIN',
  );
}
