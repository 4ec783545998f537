import { Cluster } from 'ioredis';
import type { ClusterOptions, Redis } from 'ioredis';
import { OwnServer, withFreePort } from './own-server.js';
import { caughtUp, unlessLoading } from './replication.js';
import { sleep, until } from './waiting.js';

const MASTERS = 3;
const SLOTS = 16_384;
/** How long nodes may take to agree, on a machine that is busy. */
const AGREE_MS = 60_000;
/** Nodes that are too slow for a failover give it up after 5 s. */
const ASK_AGAIN_MS = 6_000;
/** Milliseconds after which a node that does not answer is taken for gone. */
const NODE_TIMEOUT = 1_000;
/** So many times that long a node goes by its last election: asked to take over, it does so without a new one, and is not believed. */
const ELECTION_TIMEOUTS = 4;

/** A node, with a client to look at it and to tell it things. */
interface Node {
  readonly server: OwnServer;
  readonly client: Redis;
  readonly busPort: number;
  readonly id: string;
}

/** Three masters, each with as many replicas, on loopback. */
export class OwnCluster {
  readonly #nodes: Node[];
  readonly #nodeTimeout: number;
  readonly #replicas: number;
  /** When each was elected last. */
  readonly #elected = new Map<Node, number>();

  private constructor(nodes: Node[], nodeTimeout: number, replicas: number) {
    this.#nodes = nodes;
    this.#nodeTimeout = nodeTimeout;
    this.#replicas = replicas;
  }

  /** @param replicas of each master; a test that has one replaced needs one */
  static async start(nodeTimeout = NODE_TIMEOUT, replicas = 1): Promise<OwnCluster> {
    const count = MASTERS * (1 + replicas);
    const nodes = await Promise.all(Array.from({ length: count }, () => startNode(nodeTimeout)));
    const cluster = new OwnCluster(nodes, nodeTimeout, replicas);
    await cluster.#meet();
    return cluster;
  }

  /** Where its nodes are, as `new Cluster()` takes it. */
  get startupNodes(): { host: string; port: number }[] {
    return this.#nodes.map(({ server }) => server.connection);
  }

  /** Where those are that have been masters from the start. */
  get firstMasters(): { host: string; port: number }[] {
    return this.startupNodes.slice(0, MASTERS);
  }

  /** A client, which the caller disconnects. */
  client(options: ClusterOptions = {}): Cluster {
    return new Cluster(this.startupNodes, options);
  }

  /** Clients of the nodes that are up. */
  get admins(): Redis[] {
    return this.#up.map(({ client }) => client);
  }

  /** Changes users of all nodes. */
  async acl(...rule: string[]): Promise<void> {
    for (const { client } of this.#nodes) await client.acl('SETUSER', ...(rule as [string]));
  }

  async #meet(): Promise<void> {
    const masters = this.#nodes.slice(0, MASTERS);
    const share = Math.ceil(SLOTS / MASTERS);
    for (const [i, { client }] of masters.entries()) {
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
      await client.call('CLUSTER', 'ADDSLOTSRANGE', i * share, Math.min((i + 1) * share, SLOTS) - 1);
    }
    for (const [i, { server, busPort }] of this.#nodes.entries()) {
      const { host, port } = server.connection;
      const others = this.#nodes.slice(i + 1);
      await Promise.all(others.map(({ client }) => client.call('CLUSTER', 'MEET', host, port, busPort)));
    }
    const all = this.#nodes.map(({ id }) => id);
    await this.#agreed(async (client) => all.every((id) => new Set(ids(client)).has(id)));
    for (const [i, { client }] of this.#nodes.slice(MASTERS).entries()) {
      await client.call('CLUSTER', 'REPLICATE', masters[i % MASTERS].id);
    }
    await this.inSync();
  }

  /** Waits until this holds for what every node that is up says. */
  async #agreed(holds: (lines: string[], client: Redis) => Promise<boolean>): Promise<void> {
    for (const { client, server } of this.#up) {
      let said = '';
      const ask = async () => {
        said = String(await client.call('CLUSTER', 'NODES')).trim();
        return holds(said.split('\n'), client);
      };
      // one that has been started again, or takes in what its master has, answers later
      await until('the nodes to agree', () => unlessLoading(ask()), AGREE_MS).catch((error: unknown) => {
        throw new Error(`${String(error)}; the one at ${server.port} said:\n${said}`);
      });
    }
  }

  get #up(): Node[] {
    return this.#nodes.filter(({ server }) => server.isRunning);
  }

  /** Waits until every master is known to serve, and its replicas have what it has. */
  async inSync(): Promise<void> {
    await this.#agreed(async (_, client) => {
      const info = String(await client.call('CLUSTER', 'INFO'));
      const ranges = (await client.call('CLUSTER', 'SLOTS')) as unknown[][];
      // first, last, master, replicas
      return info.includes('cluster_state:ok') && ranges.every((range) => range.length === 3 + this.#replicas);
    });
    for (const { client } of this.#up) {
      const isInSync = async () => {
        const info = await client.info('replication');
        return info.includes('role:master') || info.includes('master_link_status:up');
      };
      await until('a replica to be in sync', isInSync, AGREE_MS);
    }
  }

  /** The node that serves this key, and its replica. */
  async serving(key: string): Promise<{ master: Node; replica: Node | undefined; slot: number }> {
    const slot = await this.#slotOf(key);
    const ranges = (await this.#up[0].client.call('CLUSTER', 'SLOTS')) as [
      number,
      number,
      ...[string, number, string][],
    ][];
    const range = ranges.find(([first, last]) => first <= slot && slot <= last);
    if (!range) throw new Error(`nobody serves slot ${slot}`);
    const [master, replica] = range.slice(2).map((told) => this.#node((told as [string, number, string])[2]));
    if (!master) throw new Error(`nobody serves slot ${slot}`);
    return { master, replica, slot };
  }

  async #slotOf(key: string): Promise<number> {
    return Number(await this.#up[0].client.call('CLUSTER', 'KEYSLOT', key));
  }

  #node(id: string): Node | undefined {
    return this.#nodes.find((node) => node.id === id);
  }

  /** Waits until the replica of who serves this key may be asked to take over. */
  async calm(key: string): Promise<void> {
    const { replica } = await this.serving(key);
    const elected = (replica && this.#elected.get(replica)) ?? -Infinity;
    // no node tells of it
    await sleep(Math.max(elected + (ELECTION_TIMEOUTS + 1) * this.#nodeTimeout - performance.now(), 0));
  }

  /** The replica of who serves this key takes over, in agreement with its master. */
  async failover(key: string): Promise<void> {
    await this.calm(key);
    const { master, replica } = await this.serving(key);
    if (!replica) throw new Error('there is no replica');
    let asked = -Infinity;
    await until(
      'a replica to take over',
      async () => {
        if (performance.now() - asked > ASK_AGAIN_MS) {
          asked = performance.now();
          await replica.client.call('CLUSTER', 'FAILOVER');
        }
        return ((await replica.client.call('ROLE')) as unknown[])[0] === 'master';
      },
      AGREE_MS,
    );
    await this.#serves(key, replica, master);
    this.#elected.set(replica, performance.now());
  }

  /** Whoever serves this key is killed; its replica takes over. */
  async kill(key: string): Promise<void> {
    await this.replaceMaster(key, (master) => master.kill());
  }

  /** Something happens to whoever serves this key; resolves when its replica has taken over. */
  async replaceMaster(key: string, happens: (master: OwnServer) => unknown): Promise<void> {
    const { master, replica } = await this.serving(key);
    if (!replica) throw new Error('there is no replica');
    await happens(master.server);
    await this.#serves(key, replica, master);
    this.#elected.set(replica, performance.now());
  }

  /** Until when (epoch ms) the replica of who serves this key has heard of everything; see `caughtUp`. */
  async heard(key: string): Promise<number> {
    const { master, replica } = await this.serving(key);
    if (!replica) throw new Error('there is no replica');
    return caughtUp(master.client, replica.client, AGREE_MS);
  }

  /** Starts the nodes again that are gone: they become replicas. */
  async mend(): Promise<void> {
    for (const { server } of this.#nodes) if (!server.isRunning) await server.start();
    await this.#agreed(async (lines) => lines.every((line) => !/fail|noaddr|handshake/.test(line.split(' ')[2] ?? '')));
    await this.inSync();
  }

  async #serves(key: string, wanted: Node, instead: Node): Promise<void> {
    const slot = await this.#slotOf(key);
    await this.#agreed(async (_, client) => {
      // nobody's, for a node that has heard of the end of the old master and not yet of the new one
      const ranges = (await client.call('CLUSTER', 'SLOTS')) as [number, number, [string, number, string]][];
      const range = ranges.find(([first, last]) => first <= slot && slot <= last);
      return range?.[2][2] === wanted.id && range[2][2] !== instead.id;
    });
  }

  /** Moves the slot of this key to another master, key by key; waits halfway until the first has sent clients on. */
  async migrate(key: string): Promise<void> {
    const { master, slot } = await this.serving(key);
    const masters = await Promise.all(
      this.#up.map(async (node) => ({ node, role: ((await node.client.call('ROLE')) as unknown[])[0] })),
    );
    const target = masters.find(({ node, role }) => role === 'master' && node !== master)?.node;
    if (!target) throw new Error('there is no other master');
    await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', master.id);
    await master.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id);
    const { host, port } = target.server.connection;
    const move = async (count: number): Promise<boolean> => {
      const keys = (await master.client.call('CLUSTER', 'GETKEYSINSLOT', slot, count)) as string[];
      if (keys.length > 0) await master.client.call('MIGRATE', host, port, '', 0, 10_000, 'KEYS', ...keys);
      return keys.length > 0;
    };
    await move(2);
    await until(
      'clients to be sent on',
      async () => (await master.client.info('errorstats')).includes('errorstat_ASK'),
      AGREE_MS,
    );
    const arrived = Number(await target.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot));
    // one of them may have had its time
    if (arrived > 2) throw new Error(`somebody wrote to a slot that is on its way: ${arrived} keys`);
    while (await move(100));
    await target.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
    await master.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
    await this.#serves(key, target, master);
  }

  async close(): Promise<void> {
    for (const { client } of this.#nodes) client.disconnect();
    await Promise.all(this.#nodes.map(({ server }) => server.close()));
  }
}

function startNode(nodeTimeout: number): Promise<Node> {
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeout)];
  const fast = [
    '--cluster-replica-validity-factor',
    '0',
    '--repl-diskless-sync-delay',
    '0',
    '--repl-ping-replica-period',
    '1',
  ];
  return withFreePort(async (busPort) => {
    const server = await OwnServer.start(...settings, ...fast, '--cluster-port', String(busPort));
    const client = server.client();
    client.on('error', () => undefined); // it is killed on purpose
    return { server, client, busPort, id: String(await client.call('CLUSTER', 'MYID')) };
  });
}

function ids(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.includes('handshake')).map((line) => line.split(' ')[0] ?? '');
}
