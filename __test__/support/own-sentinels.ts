import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { killServer, OwnServer, spawnServer, withFreePort } from './own-server.js';
import { caughtUp } from './replication.js';
import { until } from './waiting.js';

const SENTINELS = 3;
/** How long they may take to agree, on a machine that is busy. */
const AGREE_MS = 60_000;
/** Milliseconds after which a server that does not answer is taken for gone. */
const DOWN_AFTER = 1_000;
const FAILOVER_TIMEOUT = 5_000;

interface Sentinel {
  readonly port: number;
  readonly child: ChildProcess;
  readonly client: Redis;
}

/** A server they watch over, with a client to look at it and to tell it things. */
interface Watched {
  readonly server: OwnServer;
  readonly client: Redis;
}

/** A master, a replica and three sentinels that watch over them, on loopback. */
export class OwnSentinels {
  readonly name = 'mymaster';
  readonly #folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
  readonly #watched: readonly Watched[];
  #sentinels: Sentinel[] = [];

  private constructor(servers: readonly OwnServer[]) {
    this.#watched = servers.map((server) => {
      const client = server.client();
      client.on('error', () => undefined); // it is killed on purpose
      return { server, client };
    });
  }

  static async start(downAfter = DOWN_AFTER): Promise<OwnSentinels> {
    const fast = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];
    const master = await OwnServer.start(...fast);
    const replica = await OwnServer.start(...fast, '--replicaof', '127.0.0.1', String(master.port));
    const own = new OwnSentinels([master, replica]);
    own.#sentinels = await Promise.all(
      Array.from({ length: SENTINELS }, () => withFreePort((port) => own.#startSentinel(port, master, downAfter))),
    );
    await own.#agreed((fields) => fields['master-link-status'] === 'ok');
    return own;
  }

  /** The master and its replica. */
  get servers(): OwnServer[] {
    return this.#watched.map(({ server }) => server);
  }

  /** Clients of those servers that are up. */
  get admins(): Redis[] {
    return this.#watched.filter(({ server }) => server.isRunning).map(({ client }) => client);
  }

  /** As ioredis takes it. */
  get connection(): { sentinels: { host: string; port: number }[]; name: string } {
    return { sentinels: this.#sentinels.map(({ port }) => ({ host: '127.0.0.1', port })), name: this.name };
  }

  async #startSentinel(port: number, master: OwnServer, downAfter: number): Promise<Sentinel> {
    const path = join(this.#folder, `sentinel-${port}.conf`);
    const watch = `sentinel monitor ${this.name} 127.0.0.1 ${master.port} 2`;
    const times = ['down-after-milliseconds', 'failover-timeout'].map((what, i) => {
      return `sentinel ${what} ${this.name} ${[downAfter, FAILOVER_TIMEOUT][i]}`;
    });
    writeFileSync(path, [`port ${port}`, 'bind 127.0.0.1', `dir ${this.#folder}`, watch, ...times, ''].join('\n'));
    const { child, log } = spawnServer([path, '--sentinel']);
    const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 20, enableReadyCheck: false });
    client.on('error', () => undefined); // until it listens
    const ended = once(child, 'exit').then(() => {
      client.disconnect();
      throw new Error(`a sentinel of this test does not start:\n${log()}`);
    });
    await Promise.race([client.ping(), ended]);
    ended.catch(() => undefined);
    return { port, child, client };
  }

  /** Changes users of all sentinels. */
  async acl(...rule: string[]): Promise<void> {
    for (const { client } of this.#sentinels) await client.acl('SETUSER', ...(rule as [string]));
  }

  /** Waits until the sentinels know each other, and a replica that is up. */
  async #agreed(isFit: (replica: Record<string, string>) => boolean): Promise<void> {
    for (const { client } of this.#sentinels) {
      const isReady = async () => {
        const state = fields((await client.call('SENTINEL', 'MASTER', this.name)) as string[]);
        const replicas = (await client.call('SENTINEL', 'REPLICAS', this.name)) as string[][];
        const isUp = replicas.map(fields).some((replica) => replica.flags === 'slave' && isFit(replica));
        return state.flags === 'master' && state['num-other-sentinels'] === String(SENTINELS - 1) && isUp;
      };
      await until('the sentinels to agree', isReady, AGREE_MS);
    }
  }

  /** The port of the master; 0 while sentinels tell different ones. */
  async masterPort(): Promise<number> {
    const told = await Promise.all(
      this.#sentinels.map(async ({ client }) => {
        return Number(((await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)) as string[])[1]);
      }),
    );
    return new Set(told).size === 1 ? (told[0] ?? 0) : 0;
  }

  /** Master and replica, as the sentinels see them. */
  async #roles(): Promise<[master: Watched, replica: Watched]> {
    const port = await until('the sentinels to agree', () => this.masterPort(), AGREE_MS);
    const [one, other] = this.#watched as [Watched, Watched];
    return one.server.port === port ? [one, other] : [other, one];
  }

  /** Something happens to the master; resolves when the replica is the master. */
  async replaceMaster(happens: (master: OwnServer) => unknown): Promise<void> {
    const [{ server }] = await this.#roles();
    await happens(server);
    await until('another master', async () => ![0, server.port].includes(await this.masterPort()), AGREE_MS);
  }

  /** Until when (epoch ms) the replica has heard of everything; see `caughtUp`. */
  async heard(): Promise<number> {
    const [master, replica] = await this.#roles();
    return caughtUp(master.client, replica.client, AGREE_MS);
  }

  /**
   * The replica takes over, and nothing is lost. A master that is up goes on as one for seconds after `SENTINEL FAILOVER`: it is
   * to take no writes any more, and the replica is to have all that it took.
   */
  async failover(): Promise<void> {
    const [master, replica] = await this.#roles();
    await master.client.call('CLIENT', 'PAUSE', AGREE_MS, 'WRITE');
    await caughtUp(master.client, replica.client, AGREE_MS);
    await this.replaceMaster(() => until('a sentinel to begin', () => this.#beginFailover(), AGREE_MS));
    await master.client.replicaof('127.0.0.1', replica.server.port);
    await master.client.call('CLIENT', 'UNPAUSE');
  }

  /** The replica hears of nothing new, until the sentinels mend that in some seconds. */
  async deafen(closedPort: number): Promise<void> {
    const [, replica] = await this.#roles();
    await replica.client.replicaof('127.0.0.1', closedPort);
  }

  async #beginFailover(): Promise<boolean> {
    const asked = this.#sentinels[0]?.client.call('SENTINEL', 'FAILOVER', this.name);
    return Promise.resolve(asked).then(
      () => true,
      // the replica may not have told enough of itself yet
      (error: unknown) => String(error).includes('INPROG'),
    );
  }

  /** Starts the server again that is gone: it becomes the replica. Waits until all is as it was at first. */
  async mend(): Promise<void> {
    const [master, replica] = await this.#roles();
    if (!replica.server.isRunning) await replica.server.start();
    await replica.client.replicaof('127.0.0.1', master.server.port);
    await caughtUp(master.client, replica.client, AGREE_MS);
    await this.#agreed(() => true);
  }

  /** Kills the first sentinel; two are left, and that is enough of three. */
  async killSentinel(): Promise<void> {
    const sentinel = this.#sentinels.shift();
    sentinel?.client.disconnect();
    if (sentinel) await killServer(sentinel.child);
  }

  async close(): Promise<void> {
    for (const { client } of [...this.#sentinels, ...this.#watched]) client.disconnect();
    await Promise.all(this.#sentinels.map(({ child }) => killServer(child)));
    await Promise.all(this.servers.map((server) => server.close()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function fields(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? '']] : [])));
}
