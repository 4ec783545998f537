import { createRequire } from 'node:module';
import { Cluster, Redis } from 'ioredis';
import { messageOf, UsageError } from '../ending.js';
import type { ConnectionSettings } from '../server.js';
import type { JobLibrary } from './library.js';

/** A way to a server that is gone, as a proxy of one run is after it, is given up. */
const giveUp = (tries: number) => (tries > 20 ? null : 50);
const TUNED = {
  maxRetriesPerRequest: null,
  enableAutoPipelining: true,
  retryStrategy: giveUp,
  sentinelRetryStrategy: giveUp,
};

type Classes = Pick<typeof import('bullmq'), 'Queue' | 'Worker' | 'FlowProducer' | 'QueueEvents'>;

/** The BullMQ that is installed beside us. `name` tells two of them apart when BullMQ is measured against itself. */
export async function loadBullmq(name = 'bullmq'): Promise<JobLibrary> {
  const { Queue, Worker, FlowProducer, QueueEvents } = await classes();
  return { name, version: installedVersion(), Queue, Worker, FlowProducer, QueueEvents, address: 'bullmq' };
}

/**
 * BullMQ as those run it who want it fast: queues and workers share one connection, and ioredis sends the commands of a tick together. Where
 * that helps, this is whom we are measured against.
 */
export async function loadTunedBullmq(): Promise<JobLibrary> {
  const { Queue, Worker, FlowProducer, QueueEvents } = await classes();
  const connections = new Map<string, Redis | Cluster>();
  const shared = (settings: ConnectionSettings): Redis | Cluster => {
    const key = JSON.stringify(settings);
    const found = connections.get(key);
    if (found) return found;
    const connection = tunedConnection(settings);
    // as many as share it
    connection.setMaxListeners(0);
    // queues and workers tell of theirs
    connection.on('error', () => undefined);
    connections.set(key, connection);
    return connection;
  };
  return {
    name: 'bullmq, shared connection with auto-pipelining',
    version: installedVersion(),
    address: 'bullmq',
    inConnection: { enableAutoPipelining: TUNED.enableAutoPipelining },
    shared,
    Queue,
    Worker,
    FlowProducer,
    QueueEvents,
  };
}

function tunedConnection({ nodes, ...settings }: ConnectionSettings): Redis | Cluster {
  if (!nodes) return new Redis({ ...settings, ...TUNED });
  const { enableAutoPipelining, maxRetriesPerRequest } = TUNED;
  const redisOptions = { ...settings, maxRetriesPerRequest };
  return new Cluster(nodes, { enableAutoPipelining, clusterRetryStrategy: giveUp, redisOptions });
}

async function classes(): Promise<Classes> {
  return import('bullmq').catch((error: unknown) => {
    throw new UsageError(`there is no BullMQ to measure against (npm ci installs it): ${messageOf(error)}`);
  });
}

function installedVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('bullmq/package.json');
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('bullmq/package.json has no version');
}
