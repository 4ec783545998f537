import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import { messageOf, UsageError } from '../ending.js';
import type { ConnectionSettings } from '../server.js';
import type { JobLibrary, QueueSettings, WorkerSettings } from './library.js';

/** A way to a server that is gone, as a proxy of one run is after it, is given up. */
const TUNED = {
  maxRetriesPerRequest: null,
  enableAutoPipelining: true,
  retryStrategy: (tries: number) => (tries > 20 ? null : 50),
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
  const connections = new Map<string, Redis>();
  const shared = (settings: ConnectionSettings): Redis => {
    const key = JSON.stringify(settings);
    const found = connections.get(key);
    if (found) return found;
    const connection = new Redis({ ...settings, ...TUNED });
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
    FlowProducer,
    QueueEvents,
    Queue: class extends Queue {
      constructor(name: string, options: QueueSettings) {
        super(name, { ...options, connection: shared(options.connection) });
      }
    },
    Worker: class extends Worker {
      constructor(name: string, processor: ConstructorParameters<typeof Worker>[1], options: WorkerSettings) {
        super(name, processor, { ...options, connection: shared(options.connection) });
      }
    },
  };
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
