/**
 * The bench's own view of the Redis server: what it spends, what it holds, and the removal of what the bench left there.
 * It has a connection of its own, so that neither library is asked about itself. A database is never flushed, because
 * REDIS_URL may name a server that is in use: keys are removed by the text that every queue name of this run carries.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { messageOf, UsageError } from './ending.js';
import { median } from './statistics.js';

/** Connection options that both libraries and the bench itself are given, unchanged. */
export interface ConnectionSettings {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
  readonly tls?: Record<string, never>;
}

/** Takes redis://, rediss:// and unix:///path/to/socket. */
export function parseConnection(text: string): ConnectionSettings {
  const url = new URL(text);
  if (url.protocol === 'unix:') return { path: decodeURIComponent(url.pathname) };
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new Error(`REDIS_URL must begin with redis://, rediss:// or unix://, not ${url.protocol}//`);
  }
  return {
    host: url.hostname || '127.0.0.1',
    port: Number(url.port || 6379),
    ...(url.username && { username: decodeURIComponent(url.username) }),
    ...(url.password && { password: decodeURIComponent(url.password) }),
    ...(url.pathname.length > 1 && { db: Number(url.pathname.slice(1)) }),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  };
}

const SCAN_COUNT = 1_000;
/** Their first argument is part of the name. */
const CONTAINERS = ['CONFIG', 'MEMORY'];
const POLL_MS = 100;
/** The figure moves by less than this while nothing happens. */
const QUIET_BYTES = 2_048;
/** The server resizes its tables ten times a second, so a pause between two steps must not look like the end. */
const QUIET_POLLS = 2;
const MOST_POLLS = 100;

const WAKE_PINGS = 9;
const WAKE_PAUSE_MS = 3;

export interface ServerWork {
  readonly reads: number;
  readonly commands: number;
}

export class Server {
  /** Rejects when the server has gone away: nothing can be measured on it any more. */
  readonly lost: Promise<never>;
  isLost = false;
  /** How often this object has sent each command, by name as {@link commandCalls} has it. */
  private readonly sent = new Map<string, number>();

  private constructor(
    readonly connection: ConnectionSettings,
    private readonly client: Redis,
    /** Such as `Redis 8.2.3`. */
    readonly version: string,
  ) {
    this.lost = new Promise((_, reject) => {
      client.once('end', () => {
        this.isLost = true;
        reject(new UsageError('the Redis server is gone: it ended, or closed our connection, while it was in use'));
      });
    });
    this.lost.catch(() => undefined); // whoever waits for something of the server's races against it
    const send = client.sendCommand.bind(client);
    client.sendCommand = (command, stream) => {
      const [name, argument] = [command.name.toUpperCase(), String(command.args[0] ?? '').toUpperCase()];
      const whole = CONTAINERS.includes(name) ? `${name} ${argument}` : name;
      this.sent.set(whole, (this.sent.get(whole) ?? 0) + 1);
      return send(command, stream);
    };
  }

  static async connect(connection: ConnectionSettings): Promise<Server> {
    // The bench would otherwise wait for ever, silently, for a server that is not there.
    const client = new Redis({ ...connection, lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => undefined); // the rejection of the command that was under way says it
    await client.connect().catch((error: unknown) => {
      throw new UsageError(`no Redis server answers at REDIS_URL: ${messageOf(error)}`);
    });
    return new Server(connection, client, versionFrom(parseInfo(await client.info('server'))));
  }

  /** Waits for work that needs the server: whatever goes wrong in it once the server is gone, that is why. */
  async guard<T>(work: Promise<T>): Promise<T> {
    const done = Promise.race([work, this.lost]);
    const isFine = await done.then(
      () => true,
      () => false,
    );
    // who else is connected may hear of it first
    if (!isFine) await sleep(POLL_MS);
    return this.isLost ? this.lost : done;
  }

  /**
   * Microseconds of CPU that the server has spent. The main thread's alone where the server tells it apart (Redis 7 and
   * up), because background threads and the children of a snapshot are not the price of a job.
   */
  async cpuMicros(): Promise<number> {
    const info = parseInfo(await this.client.info('cpu'));
    const user = info.get('used_cpu_user_main_thread') ?? info.get('used_cpu_user');
    const system = info.get('used_cpu_sys_main_thread') ?? info.get('used_cpu_sys');
    return Math.round((Number(user) + Number(system)) * 1e6);
  }

  /**
   * Bytes that the data takes, with the tables of keys, once they have stopped moving: hash tables being resized take a
   * moment. Not `used_memory`: newer servers count the memory of the Lua interpreter in it, where garbage of
   * megabytes comes and goes.
   */
  async settledMemory(): Promise<number> {
    let last = await this.dataBytes();
    for (let poll = 0, quiet = 0; poll < MOST_POLLS && quiet < QUIET_POLLS; poll += 1) {
      await sleep(POLL_MS);
      const now = await this.dataBytes();
      quiet = Math.abs(now - last) < QUIET_BYTES ? quiet + 1 : 0;
      last = now;
    }
    return last;
  }

  /**
   * How often each command was carried out since the server started, by name in capitals, those within scripts too: the difference of two of these is
   * what clients other than this one did in between. The server carries out what one client sends in order, so what this one has sent so far is in its answer.
   */
  async commandCalls(): Promise<Map<string, number>> {
    const answer = this.client.info('commandstats');
    const own = new Map(this.sent);
    const lines = parseInfo(await answer);
    const calls = [...lines].map(([line, text]) => {
      const name = line
        .replace(/^cmdstat_/, '')
        .replace('|', ' ')
        .toUpperCase();
      return [name, Number(/calls=(\d+)/.exec(text)?.[1] ?? NaN) - (own.get(name) ?? 0)] as const;
    });
    return new Map(calls);
  }

  /** Bytes of all keys whose name contains `mark`, with what the server needs to keep them. */
  async keyBytes(mark: string): Promise<number> {
    let bytes = 0;
    for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
      const [next, keys] = await this.client.scan(cursor, 'MATCH', `*${mark}*`, 'COUNT', SCAN_COUNT);
      // every element counts
      for (const key of keys) bytes += (await this.client.memory('USAGE', key, 'SAMPLES', 0)) ?? 0;
      cursor = next;
    }
    return bytes;
  }

  /** Reads and commands of all clients since the server started, commands within scripts too. */
  async work(): Promise<ServerWork> {
    const stats = parseInfo(await this.client.info('stats'));
    const calls = await this.commandCalls();
    return {
      reads: Number(stats.get('total_reads_processed')),
      commands: [...calls.values()].reduce((sum, times) => sum + times, 0),
    };
  }

  /** Settings of the server as a whole. */
  async keepOnDisk(sync: 'none' | 'everysec' | 'always'): Promise<void> {
    if (sync !== 'none') await this.client.config('SET', 'appendfsync', sync);
    await this.client.config('SET', 'appendonly', sync === 'none' ? 'no' : 'yes');
    // turned on, the file begins with what there is already
    const isRewriting = async () => {
      const info = parseInfo(await this.client.info('persistence'));
      return info.get('aof_rewrite_in_progress') === '1' || info.get('aof_rewrite_scheduled') === '1';
    };
    while (sync !== 'none' && (await isRewriting())) await sleep(POLL_MS / 10);
  }

  async ping(): Promise<void> {
    await this.client.ping();
  }

  /** Microseconds from a question to its answer, when both sides have been asleep: the median of some. */
  async wakeMicros(): Promise<number> {
    const times: number[] = [];
    for (let i = 0; i < WAKE_PINGS; i += 1) {
      await sleep(WAKE_PAUSE_MS);
      const asked = performance.now();
      await this.ping();
      times.push((performance.now() - asked) * 1e3);
    }
    return Math.round(median(times));
  }

  /** Deletes every key whose name contains `mark`, and returns when the memory is free again. */
  async sweep(mark: string): Promise<void> {
    let cursor = '0';
    do {
      const [next, keys] = await this.client.scan(cursor, 'MATCH', `*${mark}*`, 'COUNT', SCAN_COUNT);
      if (keys.length > 0) await this.client.unlink(...keys);
      cursor = next;
    } while (cursor !== '0');
    // The server frees large values on another thread, whose work may not run into the next measurement.
    while ((await this.memoryField('lazyfree_pending_objects')) > 0) await sleep(1);
  }

  close(): void {
    this.client.disconnect();
  }

  private async dataBytes(): Promise<number> {
    const stats = parsePairs(await this.client.memory('STATS'));
    const tables = [...stats].filter(([name]) => /^db\.\d+$/.test(name)).map(([, sizes]) => parsePairs(sizes));
    const tableBytes = tables.flatMap((sizes) => [...sizes.values()].map(Number));
    return tableBytes.reduce((sum, bytes) => sum + bytes, Number(stats.get('dataset.bytes')));
  }

  private async memoryField(field: string): Promise<number> {
    return Number(parseInfo(await this.client.info('memory')).get(field));
  }
}

function parseInfo(text: string): Map<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function parsePairs(reply: unknown): Map<string, unknown> {
  const values = reply as unknown[];
  return new Map(values.flatMap((value, i) => (i % 2 === 0 ? [[String(value), values[i + 1]] as const] : [])));
}

/** Valkey also reports a redis_version, for clients that insist on one. */
function versionFrom(info: Map<string, string>): string {
  const valkey = info.get('valkey_version');
  return valkey ? `Valkey ${valkey}` : `Redis ${info.get('redis_version') ?? 'of unknown version'}`;
}
