/** The server as a soak sees it: what it holds, and for how long one command has kept it from all others. */
import { Redis } from 'ioredis';
import { watchdog } from '../../__test__/support/watchdog.js';
import type { Watchdog, WatchdogOptions } from '../../__test__/support/watchdog.js';
import { parseConnection, Server } from '../server.js';
import { transitionOf } from './scripts.js';

/** Shorter commands are not written down. */
const SLOW_US = 500;
const KEPT = 4_096;

/** The longest command of a part of the run. */
export interface Blocked {
  /** Milliseconds. */
  readonly ms: number;
  /** Name of the script, or of the command. */
  readonly by: string;
}

export class WatchedServer {
  private constructor(
    readonly url: string,
    private readonly server: Server,
    /** For what only a soak asks. */
    private readonly client: Redis,
  ) {}

  static async connect(url: string): Promise<WatchedServer> {
    const settings = parseConnection(url);
    const server = await Server.connect(settings);
    return new WatchedServer(url, server, new Redis(settings));
  }

  /** Such as `Redis 8.2.3`. */
  get version(): string {
    return this.server.version;
  }

  /** Bytes that it holds. */
  async memory(): Promise<number> {
    return Number(/used_memory:(\d+)/.exec(await this.client.info('memory'))?.[1]);
  }

  /** Watches it, and this process. */
  watch(options: WatchdogOptions): Promise<Watchdog> {
    return watchdog(this.client, options);
  }

  /** Seconds of CPU that its main thread has spent. */
  async cpu(): Promise<number> {
    return (await this.server.cpuMicros()) / 1e6;
  }

  async connections(): Promise<number> {
    return Number(/connected_clients:(\d+)/.exec(await this.client.info('clients'))?.[1]);
  }

  async setting(name: string, value: string): Promise<void> {
    await this.client.config('SET', name, value);
  }

  /** Begins to write down long commands, without those before. */
  async forget(): Promise<void> {
    await this.client.config('SET', 'slowlog-log-slower-than', String(SLOW_US), 'slowlog-max-len', String(KEPT));
    await this.client.slowlog('RESET');
  }

  /** The longest command since `forget`, as the server itself has measured it. */
  async longest(): Promise<Blocked> {
    const entries = (await this.client.slowlog('GET', KEPT)) as [number, number, number, string[]][];
    const [longest] = entries.filter(([, , , [command]]) => command !== 'info').sort((a, b) => b[2] - a[2]);
    if (!longest) return { ms: 0, by: `all below ${SLOW_US / 1_000} ms` };
    const [command = '', script = ''] = longest[3];
    return { ms: longest[2] / 1_000, by: transitionOf(script) ?? command.toLowerCase() };
  }

  async close(): Promise<void> {
    this.server.close();
    await this.client.quit();
  }
}
