/**
 * Reads `connection`, in every form users bring: ioredis-style options, also with `sentinels` or the `nodes` of a
 * cluster, `{ url }`, a URL string, or an ioredis instance (whose options are read; the instance itself is neither used
 * nor closed; its end is that of queues and flow producers).
 *
 * An option either means the same as with ioredis, or it is refused or warned of with its name: none is dropped in
 * silence. `known-options.ts` says which.
 */
import type { GivenClient } from './client-end.js';
import { credentialsOf } from './credentials.js';
import { checkConnectionOption } from './known-options.js';
import { readDiscovery, speaksTls } from './discovery.js';
import { NotSupportedError } from '../errors/not-supported-error.js';
import type { NativeConnection, NativeQueueOptions } from '../native/types.js';
import type { RetryStrategy } from './readiness.js';
import { placeIn, readTls, readTlsOfNodes } from './tls-options.js';

/** Whether the connection blocks (worker, queue events), for which BullMQ wants `maxRetriesPerRequest: null`. */
export type ConnectionUse = 'commands' | 'blocking';

/** What `connection` says, for the engine and for the facade. */
export interface Connection {
  native: NativeConnection;
  /** Says when to give up connecting; without it, never. */
  retryStrategy: RetryStrategy | undefined;
  /** Whether commands reject while the connection is down: never, once it was up, or always. */
  failFast: false | 'once-up' | 'always';
  /** The ioredis client that was given for commands. */
  client: GivenClient | undefined;
}

type Fields = Record<string, unknown>;

/**
 * What the user's `connection` says.
 * @param failAtOnce `skipWaitingForReady`: without an offline queue, commands do not even wait for the first connection
 * @throws Error with BullMQ's text for `keyPrefix` and for an instance with `maxRetriesPerRequest` on a blocking use;
 * NotSupportedError naming an option or a kind of client that cannot be mapped.
 */
export function readConnection(connection: unknown, use: ConnectionUse, failAtOnce = false): Connection {
  const fields = fieldsOf(connection, use);
  if (fields.keyPrefix) {
    throw new Error('BullMQ: ioredis does not support ioredis prefixes, use the prefix option instead.');
  }
  for (const [name, value] of Object.entries(fields)) checkConnectionOption(name, value);
  const { retryStrategy, enableOfflineQueue } = fields;
  return {
    native: toNative(fields),
    retryStrategy: typeof retryStrategy === 'function' ? (retryStrategy as RetryStrategy) : undefined,
    failFast: enableOfflineQueue === false && (failAtOnce ? 'always' : 'once-up'),
    client: use === 'commands' && isClient(connection) ? connection : undefined,
  };
}

/** A copy of options; of a connection that is a URL as text it has `{ url }`, so that `opts.connection` is an object. */
export function optionsShown<O extends { connection?: unknown }>(opts: O): O {
  const { connection } = opts;
  return typeof connection === 'string' ? { ...opts, connection: { url: connection } } : { ...opts };
}

/** What the engine needs to find a queue. The connection itself may ask to skip the check of the server's version. */
export function targetOf(
  name: string,
  prefix: string,
  { native }: Connection,
  opts: { connection?: unknown; skipVersionCheck?: boolean | undefined },
): NativeQueueOptions {
  const asked = (opts.connection as Fields | null | undefined)?.skipVersionCheck === true;
  // JavaScript callers may give numbers
  return {
    name: String(name),
    prefix: String(prefix),
    connection: native,
    skipVersionCheck: Boolean(opts.skipVersionCheck) || asked,
  };
}

function fieldsOf(connection: unknown, use: ConnectionUse): Fields {
  if (connection === undefined || connection === null) return {};
  if (typeof connection === 'string') return fieldsOfUrl(connection);
  if (typeof connection !== 'object') throw new TypeError('connection must be options, an ioredis client or a URL');
  if (connection instanceof URL) return fieldsOfUrl(connection.href);

  const given = connection as Fields;
  if (isClient(given)) return fieldsOfClient(given, use);
  if (use === 'blocking' && given.maxRetriesPerRequest) {
    console.error(
      'BullMQ: WARNING! Your redis options maxRetriesPerRequest must be null and will be overridden by BullMQ.',
    );
  }
  if (given.redisOptions || given.nodes) return fieldsOfCluster(given.nodes, given);
  const url = textOf(given, 'url');
  if (!url) return given;
  const fields = { ...given, ...fieldsOfUrl(url) };
  // as with ioredis: the URL says that there is TLS, and the option how
  return given.tls ? { ...fields, tls: given.tls } : fields;
}

/** A client is told from options by its methods: `options` objects have none of these. */
function isClient(given: unknown): given is Fields & GivenClient {
  const { connect, duplicate } = Object(given) as Fields;
  return typeof connect === 'function' && typeof duplicate === 'function';
}

function fieldsOfClient(client: Fields, use: ConnectionUse): Fields {
  const options = client.options;
  const isIoredis = typeof client.defineCommand === 'function' && typeof options === 'object' && options !== null;
  if (!isIoredis) throw new NotSupportedError('a client other than ioredis as connection');
  const fields = client.isCluster
    ? fieldsOfCluster(client.startupNodes, options as Fields)
    : selected(client, options as Fields);
  if (use === 'blocking' && fields.maxRetriesPerRequest) {
    throw new Error('BullMQ: Your redis options maxRetriesPerRequest must be null.');
  }
  return fields;
}

/** The options of an ioredis client, with the database that `client.select()` has chosen since. */
function selected({ condition }: Fields, options: Fields): Fields {
  const db = (condition as { select?: unknown } | null | undefined)?.select;
  return typeof db === 'number' ? { ...options, db } : options;
}

/**
 * Options of a cluster's connections and of the cluster itself. A node may bring its password, and whatever else, in
 * its URL or beside its host: it then is that of all.
 */
function fieldsOfCluster(nodes: unknown, options: Fields): Fields {
  const [first] = (Array.isArray(nodes) ? nodes : []) as unknown[];
  if (first === undefined) throw new TypeError('connection.nodes names no node');
  const ofFirst = typeof first === 'string' ? fieldsOfUrl(first) : typeof first === 'object' ? (first as Fields) : {};
  const { redisOptions, clusterRetryStrategy = options.retryStrategy, ...ofCluster } = options;
  const shared = { ...ofCluster, ...(redisOptions as Fields | undefined) };
  return {
    ...shared,
    ...ofNode(ofFirst, shared),
    retryStrategy: clusterRetryStrategy,
    nodes,
  };
}

/** What a node brings, where that is said: a cluster has one database, and `rediss:` tells no certificates. */
function ofNode(node: Fields, shared: Fields): Fields {
  const isSaid = ([key, value]: [string, unknown]): boolean =>
    value !== undefined && key !== 'db' && !(key === 'tls' && value === true && shared.tls);
  return Object.fromEntries(Object.entries(node).filter(isSaid));
}

function fieldsOfUrl(text: string): Fields {
  if (/^\d+$/.test(text)) return { port: text };
  if (text.startsWith('/') && !text.startsWith('//')) {
    const [path, query] = text.split('?', 2);
    return { ...Object.fromEntries(new URLSearchParams(query)), path };
  }
  let url: URL;
  try {
    url = new URL(text.includes('://') ? text : `redis://${text.replace(/^\/\//, '')}`);
  } catch (cause) {
    // The text is not repeated: it may hold a password.
    throw new TypeError('connection is not a valid URL', { cause });
  }
  const isPath = url.protocol === 'unix:' || url.protocol === 'redis+unix:';
  if (!isPath && url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new NotSupportedError(`the connection URL scheme "${url.protocol}"`);
  }
  const fields: Fields = Object.fromEntries(url.searchParams);
  if (url.username) fields.username = decodeURIComponent(url.username);
  if (url.password) fields.password = decodeURIComponent(url.password);
  if (isPath) return { ...fields, path: decodeURIComponent(url.pathname) };
  if (url.hostname) fields.host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (url.port) fields.port = url.port;
  if (url.pathname.length > 1) fields.db = url.pathname.slice(1);
  if (url.protocol === 'rediss:') fields.tls = true;
  return fields;
}

function toNative(given: Fields): NativeConnection {
  const isSecure = speaksTls(given);
  const isDiscovered = Boolean(given.sentinels || given.nodes);
  const fields = isSecure && !isDiscovered ? { ...given, ...placeIn(given.tls) } : given;
  const native: NativeConnection = {};
  // With a path ioredis ignores host and port, which its own defaults fill in.
  const path = textOf(fields, 'path');
  if (path) native.path = path;
  else {
    const host = textOf(fields, 'host');
    if (host) native.host = host;
    const port = integer(fields, 'port', 1, 65_535);
    if (port !== undefined) native.port = port;
  }
  const family = familyOf(fields);
  if (family) native.family = family;
  for (const key of ['username', 'password', 'connectionName'] as const) {
    const isAsked = key !== 'connectionName' && typeof fields[key] === 'function';
    const value = isAsked ? undefined : textOf(fields, key);
    if (value) native[key] = value;
  }
  Object.assign(native, credentialsOf(fields));
  const db = integer(fields, 'db', 0, 2 ** 31 - 1);
  if (db !== undefined) native.db = db;
  const connectTimeout = integer(fields, 'connectTimeout', 0, 2 ** 31 - 1);
  // 0 is no limit
  if (connectTimeout !== undefined) native.connectTimeout = connectTimeout || 2 ** 31 - 1;
  if (isSecure) native.tls = isDiscovered ? readTlsOfNodes(fields.tls) : readTls(fields.tls);
  const discovery = readDiscovery(fields, readTlsOfNodes);
  if (discovery) native.discovery = discovery;
  return native;
}

/** Text of an option, undefined when it is empty. Numbers are taken as text: a password may be written as one. */
function textOf(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  if (key === 'url' && value instanceof URL) return value.href;
  throw new TypeError(`connection.${key} must be a string`);
}

function integer(fields: Fields, key: string, min: number, max: number): number | undefined {
  const value = fields[key];
  if (value === undefined || value === null || value === '') return undefined;
  const number = Number(value);
  if (!Number.isInteger(number) || number < min || number > max) {
    throw new RangeError(`connection.${key} must be an integer from ${min} to ${max}`);
  }
  return number;
}

/** As Node takes it: 0 is any. */
function familyOf(fields: Fields): number | undefined {
  const { family } = fields;
  if (family === 'IPv4') return 4;
  if (family === 'IPv6') return 6;
  const number = integer(fields, 'family', 0, 6);
  if (!number || number === 4 || number === 6) return number;
  throw new RangeError('connection.family must be 4 or 6, or 0 for any');
}
