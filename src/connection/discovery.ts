/**
 * Reads who knows where the server is: `sentinels` as ioredis takes them, and the nodes of a cluster. The engine asks
 * them at each connection.
 */
import { NotSupportedError } from '../errors/not-supported-error.js';
import type { NativeAddress, NativeDiscovery, NativeTls } from '../native/types.js';

type Fields = Record<string, unknown>;

const SENTINEL_PORT = 26_379;
const NODE_PORT = 6379;

/** Options that are only read together with `sentinels`. Those that say when and how often to ask change nothing. */
export const SENTINEL_OPTIONS = [
  'sentinels',
  'name',
  'role',
  'sentinelUsername',
  'sentinelPassword',
  'sentinelTLS',
  'enableTLSForSentinelMode',
  'updateSentinels',
  'sentinelRetryStrategy',
  'sentinelReconnectStrategy',
  'sentinelCommandTimeout',
  'sentinelMaxConnections',
  'failoverDetector',
  'preferredSlaves',
];

/**
 * Options of ioredis's `Cluster` that change nothing here: the engine connects to the one node that serves the queue,
 * looks for it again at its own pace, and takes every address as it is told.
 */
export const CLUSTER_OPTIONS = [
  'nodes',
  'redisOptions',
  'clusterRetryStrategy', // asked when to give up, as `retryStrategy`
  'clusterNodeRetryStrategy',
  'scaleReads',
  'maxRedirections',
  'retryDelayOnMoved',
  'retryDelayOnFailover',
  'retryDelayOnClusterDown',
  'retryDelayOnTryAgain',
  'slotsRefreshTimeout',
  'slotsRefreshInterval',
  'resolveSrv',
  'dnsLookup',
  'shardedSubscribers',
  'scripts',
];

/** Whether ioredis would speak TLS with the server: with sentinels it wants to be told twice. */
export function speaksTls(fields: Fields): boolean {
  return Boolean(fields.tls) && (!fields.sentinels || Boolean(fields.enableTLSForSentinelMode));
}

/**
 * Who is to be asked, if anybody.
 * @throws Error with ioredis's text when there is no sentinel, or no name; NotSupportedError naming what cannot be mapped
 */
export function readDiscovery(fields: Fields, toNativeTls: (tls: unknown) => NativeTls): NativeDiscovery | undefined {
  if (fields.sentinels) return readSentinels(fields, toNativeTls);
  if (!fields.nodes) return undefined;
  if (!Array.isArray(fields.nodes) || fields.nodes.length === 0) throw new TypeError('connection.nodes names no node');
  return { nodes: fields.nodes.map((node) => address(node, NODE_PORT)), ...readNatMap(fields.natMap) };
}

function readSentinels(fields: Fields, toNativeTls: (tls: unknown) => NativeTls): NativeDiscovery {
  const { sentinels, name, role, sentinelTLS } = fields;
  if (!Array.isArray(sentinels) || sentinels.length === 0) {
    throw new Error('Requires at least one sentinel to connect to.');
  }
  if (typeof name !== 'string' || !name) throw new Error('Requires the name of master.');
  if (role && role !== 'master') throw new NotSupportedError('a replica as connection.role');
  for (const option of ['sentinelUsername', 'sentinelPassword']) {
    if (typeof fields[option] === 'function') throw new NotSupportedError(`a function as connection.${option}`);
  }
  const [username, password] = [text(fields.sentinelUsername), text(fields.sentinelPassword)];
  return {
    nodes: sentinels.map((sentinel) => address(sentinel, SENTINEL_PORT)),
    ...readNatMap(fields.natMap),
    sentinel: {
      name,
      onlyThese: fields.updateSentinels === false,
      ...(username && { username }),
      ...(password && { password }),
      ...(sentinelTLS ? { tls: toNativeTls(sentinelTLS) } : {}),
    },
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

/** A port, `host:port`, a URL, or an object with both. */
function address(given: unknown, defaultPort: number): NativeAddress {
  if (typeof given === 'number') return { host: '127.0.0.1', port: given };
  if (typeof given === 'string') {
    if (/^\d+$/.test(given)) return { host: '127.0.0.1', port: Number(given) };
    const { hostname, port } = new URL(given.includes('://') ? given : `redis://${given}`);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || defaultPort) };
  }
  const { host, port } = (given ?? {}) as Fields;
  const number = Number(port ?? defaultPort);
  if (!Number.isInteger(number) || number < 1 || number > 65_535) {
    throw new RangeError('the port of a node must be an integer from 1 to 65535');
  }
  return { host: text(host) ?? '127.0.0.1', port: number };
}

function readNatMap(natMap: unknown): Pick<NativeDiscovery, 'natFrom' | 'natTo'> {
  if (typeof natMap === 'function') throw new NotSupportedError('a function as connection.natMap');
  const entries = Object.entries((natMap ?? {}) as Fields);
  return {
    natFrom: entries.map(([told]) => {
      const at = told.lastIndexOf(':');
      return address({ host: told.slice(0, at), port: told.slice(at + 1) }, NODE_PORT);
    }),
    natTo: entries.map(([, seen]) => address(seen, NODE_PORT)),
  };
}
