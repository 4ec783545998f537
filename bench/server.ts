/**
 * The bench's own view of the Redis server: what it spends, what it holds, and the removal of what the bench left there. A Cluster is one server here: what its
 * masters spend and hold is added up. It has connections of its own, so that neither library is asked about itself. A database is never flushed, because
 * REDIS_URL may name a server that is in use: keys are removed by the text that every queue name of this run carries.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { messageOf, UsageError } from './ending.js';
import { median } from './statistics.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Connection options that both libraries are given, unchanged. */
export interface ConnectionSettings {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
  /** `ca`: the certificate of whoever has signed the server's, PEM text. */
  readonly tls?: { readonly ca?: string };
  /** Who knows where the server called `name` is. */
  readonly sentinels?: Address[];
  readonly name?: string;
  /** Of a Cluster. */
  readonly nodes?: Address[];
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
  private isClosed = false;
  /** How often this object has sent each command, by name as {@link commandCalls} has it. */
  private readonly sent = new Map<string, number>();

  private constructor(
    readonly connection: ConnectionSettings,
    /** One for each master. */
    private readonly clients: readonly Redis[],
    /** Such as `Redis 8.2.3`. */
    readonly version: string,
  ) {
    this.lost = new Promise((_, reject) => {
      const end = () => {
        if (this.isClosed) return;
        this.isLost = true;
        reject(new UsageError('the Redis server is gone: it ended, or closed our connection, while it was in use'));
      };
      for (const client of clients) client.once('end', end);
    });
    this.lost.catch(() => undefined); // whoever waits for something of the server's races against it
    for (const client of clients) this.countSent(client);
  }

  /** @param masters where the keys are, if not at `connection` alone */
  static async connect(
    connection: ConnectionSettings,
    masters: readonly ConnectionSettings[] = [connection],
  ): Promise<Server> {
    const clients = await Promise.all(masters.map(connected));
    const [first] = clients;
    return new Server(connection, clients, versionFrom(parseInfo(await first.info('server'))));
  }

  /** How many servers have keys. */
  get masters(): number {
    return this.clients.length;
  }

  private countSent(client: Redis): void {
    const send = client.sendCommand.bind(client);
    client.sendCommand = (command, stream) => {
      const [name, argument] = [command.name.toUpperCase(), String(command.args[0] ?? '').toUpperCase()];
      const whole = CONTAINERS.includes(name) ? `${name} ${argument}` : name;
      this.sent.set(whole, (this.sent.get(whole) ?? 0) + 1);
      return send(command, stream);
    };
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
    const seconds = (await this.infos('cpu')).map((info) => {
      const user = info.get('used_cpu_user_main_thread') ?? info.get('used_cpu_user');
      const system = info.get('used_cpu_sys_main_thread') ?? info.get('used_cpu_sys');
      return Number(user) + Number(system);
    });
    return Math.round(total(seconds) * 1e6);
  }

  /** Connections of clients, those of this object among them. */
  async connections(): Promise<number> {
    return total((await this.infos('clients')).map((info) => Number(info.get('connected_clients'))));
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
    const answers = this.infos('commandstats');
    const own = new Map(this.sent);
    const calls = new Map<string, number>();
    for (const [line, text] of (await answers).flatMap((info) => [...info])) {
      const name = line
        .replace(/^cmdstat_/, '')
        .replace('|', ' ')
        .toUpperCase();
      calls.set(name, (calls.get(name) ?? 0) + Number(/calls=(\d+)/.exec(text)?.[1] ?? NaN));
    }
    for (const [name, times] of own) if (calls.has(name)) calls.set(name, (calls.get(name) ?? 0) - times);
    return calls;
  }

  /** Bytes of all keys whose name contains `mark`, with what the server needs to keep them. */
  async keyBytes(mark: string): Promise<number> {
    let bytes = 0;
    await this.eachKeys(mark, async (client, keys) => {
      // every element counts
      for (const key of keys) bytes += (await client.memory('USAGE', key, 'SAMPLES', 0)) ?? 0;
    });
    return bytes;
  }

  /** Reads and commands of all clients since the server started, commands within scripts too. */
  async work(): Promise<ServerWork> {
    const stats = await this.infos('stats');
    const calls = await this.commandCalls();
    return {
      reads: total(stats.map((info) => Number(info.get('total_reads_processed')))),
      commands: total([...calls.values()]),
    };
  }

  /** Settings of the server as a whole. */
  async keepOnDisk(sync: 'none' | 'everysec' | 'always'): Promise<void> {
    for (const client of this.clients) {
      if (sync !== 'none') await client.config('SET', 'appendfsync', sync);
      await client.config('SET', 'appendonly', sync === 'none' ? 'no' : 'yes');
    }
    // turned on, the file begins with what there is already
    const isRewriting = async () =>
      (await this.infos('persistence')).some(
        (info) => info.get('aof_rewrite_in_progress') === '1' || info.get('aof_rewrite_scheduled') === '1',
      );
    while (sync !== 'none' && (await isRewriting())) await sleep(POLL_MS / 10);
  }

  async ping(): Promise<void> {
    await this.clients[0].ping();
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
    await this.eachKeys(mark, async (client, keys) => {
      // those of a Cluster may lie in several slots
      if (this.connection.nodes) await Promise.all(keys.map((key) => client.unlink(key)));
      else await client.unlink(...keys);
    });
    const isFreeing = async () =>
      (await this.infos('memory')).some((info) => Number(info.get('lazyfree_pending_objects')) > 0);
    // The server frees large values on another thread, whose work may not run into the next measurement.
    while (await isFreeing()) await sleep(1);
  }

  close(): void {
    this.isClosed = true;
    for (const client of this.clients) client.disconnect();
  }

  /** What each master says, all asked at the same moment. */
  private infos(section: string): Promise<Map<string, string>[]> {
    return Promise.all(this.clients.map(async (client) => parseInfo(await client.info(section))));
  }

  private async eachKeys(mark: string, act: (client: Redis, keys: string[]) => Promise<void>): Promise<void> {
    for (const client of this.clients) {
      for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
        const [next, keys] = await client.scan(cursor, 'MATCH', `*${mark}*`, 'COUNT', SCAN_COUNT);
        if (keys.length > 0) await act(client, keys);
        cursor = next;
      }
    }
  }

  private async dataBytes(): Promise<number> {
    return total(await Promise.all(this.clients.map(dataBytesOf)));
  }
}

async function connected(settings: ConnectionSettings): Promise<Redis> {
  // The bench would otherwise wait for ever, silently, for a server that is not there.
  const client = new Redis({ ...settings, lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => undefined); // the rejection of the command that was under way says it
  await client.connect().catch((error: unknown) => {
    throw new UsageError(`no Redis server answers at REDIS_URL: ${messageOf(error)}`);
  });
  return client;
}

async function dataBytesOf(client: Redis): Promise<number> {
  const stats = parsePairs(await client.memory('STATS'));
  const tables = [...stats].filter(([name]) => /^db\.\d+$/.test(name)).map(([, sizes]) => parsePairs(sizes));
  const tableBytes = tables.flatMap((sizes) => [...sizes.values()].map(Number));
  return total([Number(stats.get('dataset.bytes')), ...tableBytes]);
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

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
