/** Where the queue of a run is: one server, a master and its replica under sentinels, or a cluster. */
import type { Redis } from 'ioredis';
import type { RedisOptions } from '../../src/index.js';
import { OwnCluster } from '../support/own-cluster.js';
import { OwnSentinels } from '../support/own-sentinels.js';
import { OwnServer } from '../support/own-server.js';
import type { Way } from './way.js';

export type Topology = keyof typeof start;

/** Milliseconds after which a master that does not answer is replaced: no machine is so busy that a healthy one is. */
const DOWN_AFTER_MS = 5_000;

export interface Servers {
  readonly title: string;
  /** Ports of all of them. */
  readonly ports: readonly number[];
  /** Clients of those that are up. They look past every fault but those of the servers themselves. */
  readonly admins: readonly Redis[];
  /** How a program finds the queue by `way`; without one, past every fault of ways. */
  connection(way?: Way): RedisOptions;
  /** The server, if it is one. */
  readonly single?: OwnServer;
  /** The master of the queue and its replica, if there are such. */
  readonly replicated?: Replicated;
  /** The slot of the queue moves to another master. */
  readonly moveSlot?: () => Promise<void>;
  close(): Promise<void>;
}

export interface Replicated {
  /** Waits until a failover may be planned. */
  calm(): Promise<void>;
  /** The replica takes over as planned, and nothing is lost. */
  failover(): Promise<void>;
  /** Something happens to the master; resolves when its replica has taken over. */
  replaceMaster(happens: (master: OwnServer) => unknown): Promise<void>;
  /** Waits until the replica has heard of all that was acknowledged up to a moment, which it gives (epoch ms). */
  heard(): Promise<number>;
  /** Starts what is gone; resolves when all is as it was at first. */
  mend(): Promise<void>;
}

const start = { standalone: startSingle, sentinel: startSentinels, cluster: startCluster } as const;

export const topologies = Object.keys(start) as Topology[];

/** `key`: one of the queue's. */
export function startServers(topology: Topology, key: string): Promise<Servers> {
  return start[topology](key);
}

async function startSingle(): Promise<Servers> {
  const server = await OwnServer.start('--appendonly', 'yes', '--appendfsync', 'always');
  const admin = server.client();
  admin.on('error', () => undefined);
  return {
    title: 'one server',
    ports: [server.port],
    admins: [admin],
    connection: (way) => (way && Object.values(natMap(way))[0]) ?? server.connection,
    single: server,
    async close() {
      admin.disconnect();
      await server.close();
    },
  };
}

async function startSentinels(): Promise<Servers> {
  const own = await OwnSentinels.start(DOWN_AFTER_MS);
  return {
    title: 'a master and its replica under three sentinels',
    ports: own.servers.map(({ port }) => port),
    get admins() {
      return own.admins;
    },
    connection: (way) => ({ ...own.connection, ...(way && { natMap: natMap(way) }) }),
    replicated: {
      calm: async () => undefined,
      failover: () => own.failover(),
      replaceMaster: (happens) => own.replaceMaster(happens),
      heard: () => own.heard(),
      mend: () => own.mend(),
    },
    close: () => own.close(),
  };
}

async function startCluster(key: string): Promise<Servers> {
  const own = await OwnCluster.start(DOWN_AFTER_MS);
  return {
    title: 'three masters of a cluster with a replica each',
    ports: own.startupNodes.map(({ port }) => port),
    get admins() {
      return own.admins;
    },
    connection: (way) =>
      way ? { nodes: Object.values(natMap(way)), natMap: natMap(way) } : { nodes: own.startupNodes },
    replicated: {
      calm: () => own.calm(key),
      failover: () => own.failover(key),
      replaceMaster: (happens) => own.replaceMaster(key, happens),
      heard: () => own.heard(key),
      mend: () => own.mend(),
    },
    moveSlot: () => own.migrate(key),
    close: () => own.close(),
  };
}

function natMap(way: Way): Record<string, { host: string; port: number }> {
  return Object.fromEntries(way.ports.map(([target, port]) => [`127.0.0.1:${target}`, { host: '127.0.0.1', port }]));
}
