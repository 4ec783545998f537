import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { killServer, OwnServer, spawnServer, withFreePort } from './own-server.js';
import { until } from './waiting.js';

const SENTINELS = 3;
/** How long they may take to agree, on a machine that is busy. */
const AGREE_MS = 60_000;
/** Milliseconds after which a server that does not answer is taken for gone. */
const DOWN_AFTER = 1_000;

interface Sentinel {
  readonly port: number;
  readonly child: ChildProcess;
  readonly client: Redis;
}

/** A master, a replica and three sentinels that watch over them, on loopback. */
export class OwnSentinels {
  readonly name = 'mymaster';
  readonly #folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
  #sentinels: Sentinel[] = [];

  private constructor(readonly servers: [OwnServer, OwnServer]) {}

  /** `args` are settings of the servers. */
  static async start(...args: string[]): Promise<OwnSentinels> {
    const fast = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', ...args];
    const master = await OwnServer.start(...fast);
    const replica = await OwnServer.start(...fast, '--replicaof', '127.0.0.1', String(master.port));
    const watched = new OwnSentinels([master, replica]);
    watched.#sentinels = await Promise.all(
      Array.from({ length: SENTINELS }, () => withFreePort((port) => watched.#startSentinel(port))),
    );
    await watched.#agreed();
    return watched;
  }

  /** As ioredis takes it. */
  get connection(): { sentinels: { host: string; port: number }[]; name: string } {
    return { sentinels: this.#sentinels.map(({ port }) => ({ host: '127.0.0.1', port })), name: this.name };
  }

  async #startSentinel(port: number): Promise<Sentinel> {
    const path = join(this.#folder, `sentinel-${port}.conf`);
    const watch = `sentinel monitor ${this.name} 127.0.0.1 ${this.servers[0].port} 2`;
    const times = ['down-after-milliseconds', 'failover-timeout'].map((what, i) => {
      return `sentinel ${what} ${this.name} ${[DOWN_AFTER, 5 * DOWN_AFTER][i]}`;
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

  /** Waits until the sentinels know each other, and a replica that is in sync. */
  async #agreed(): Promise<void> {
    for (const { client } of this.#sentinels) {
      const isReady = async () => {
        const state = fields((await client.call('SENTINEL', 'MASTER', this.name)) as string[]);
        const replicas = (await client.call('SENTINEL', 'REPLICAS', this.name)) as string[][];
        const isUp = replicas.some((replica) => {
          const { flags, 'master-link-status': link } = fields(replica);
          return flags === 'slave' && link === 'ok';
        });
        return state.flags === 'master' && state['num-other-sentinels'] === String(SENTINELS - 1) && isUp;
      };
      await until('the sentinels to agree', isReady, AGREE_MS);
    }
  }

  /** The port of the master; 0 while two sentinels tell different ones. */
  async masterPort(): Promise<number> {
    const told = await Promise.all(
      this.#sentinels.map(async ({ client }) => {
        return Number(((await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)) as string[])[1]);
      }),
    );
    return told[0] === told[1] ? (told[0] ?? 0) : 0;
  }

  /** Something happens to the master; resolves when the replica is the master. */
  async replaceMaster(happens: (master: OwnServer) => unknown): Promise<void> {
    const port = await this.masterPort();
    const master = this.servers.find((server) => server.port === port);
    if (master) await happens(master);
    await until('another master', async () => ![0, port].includes(await this.masterPort()), AGREE_MS);
  }

  /** Kills the first sentinel; two are left, and that is enough of three. */
  async killSentinel(): Promise<void> {
    const sentinel = this.#sentinels.shift();
    sentinel?.client.disconnect();
    if (sentinel) await killServer(sentinel.child);
  }

  async close(): Promise<void> {
    for (const { client } of this.#sentinels) client.disconnect();
    await Promise.all(this.#sentinels.map(({ child }) => killServer(child)));
    await Promise.all(this.servers.map((server) => server.close()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function fields(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? '']] : [])));
}
