import { readFileSync } from 'node:fs';
import type { RedisOptions } from '../../index.js';
import { isGiven, textOf, type Arguments, type OptionsConfig } from './arguments.js';
import { Failure, UsageError, type Io } from './command.js';

/** The options by which every command finds the server; a command adds its own to them. */
export const SERVER_OPTIONS = {
  url: { type: 'string', short: 'u' },
  prefix: { type: 'string', short: 'p' },
  user: { type: 'string' },
  tls: { type: 'boolean' },
  'tls-ca': { type: 'string' },
  cluster: { type: 'boolean' },
  sentinel: { type: 'string' },
} as const satisfies OptionsConfig;

/** Their part of a command's help. */
export const SERVER_HELP = `Server:
  -u, --url <url>       redis://[user@]host[:port][/db], rediss:// for TLS, or the path of a unix socket;
                        several, with commas between them, for --cluster and --sentinel
                        (else REDIS_URL, else redis://127.0.0.1:6379)
      --user <name>     the ACL user, if the URL names none
      --tls             TLS, as rediss://
      --tls-ca <file>   trusts the certificate authority of this PEM file
      --cluster         the server is a node of a Redis Cluster
      --sentinel <name> the servers are sentinels, and this is the master that they know; /db is its database
  -p, --prefix <text>   the queues' prefix (bull)
A password comes by the URL, or better by REDIS_PASSWORD, which ps does not show.
`;

/** Where the queues are. */
export interface Server {
  /** Options for the `connection` of a queue. They hold the password: never printed. */
  readonly connection: RedisOptions;
  readonly prefix: string;
  /** Where that is, without user and password, for people. */
  readonly shown: string;
  /** The address of each server named, without user and password. */
  readonly urls: readonly URL[];
  readonly isCluster: boolean;
}

const DEFAULT_URL = 'redis://127.0.0.1:6379';

/** A tool tells soon that there is nobody. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * What the command line and the environment say of the server.
 * @throws UsageError for a URL nobody can read, whose text is not repeated: it may hold a password
 */
export function readServer(read: Arguments, { env }: Pick<Io, 'env'>): Server {
  const source = textOf(read, 'url') === undefined ? 'REDIS_URL' : '--url';
  const text = textOf(read, 'url') ?? (env.REDIS_URL || DEFAULT_URL);
  const urls = text.split(',').map((each) => urlOf(each.trim(), source));
  const isCluster = isGiven(read, 'cluster');
  const sentinel = textOf(read, 'sentinel');
  if (isCluster && sentinel !== undefined) throw new UsageError('--cluster and --sentinel exclude each other.');
  if (urls.length > 1 && !isCluster && sentinel === undefined) {
    throw new UsageError(`${source} names several servers: say --cluster or --sentinel <name>.`);
  }
  const common = commonOf(read, urls, env);
  const db = databaseOf(urls, source, isCluster);
  const nodes = urls.map(({ hostname, port }) => ({ host: bare(hostname), ...(port && { port: Number(port) }) }));
  return {
    connection: isCluster
      ? { ...common, nodes }
      : sentinel === undefined
        ? { ...common, ...placeOf(urls[0]), ...db }
        : {
            ...{ ...common, ...db, sentinels: nodes, name: sentinel },
            ...('tls' in common && { enableTLSForSentinelMode: true }),
          },
    prefix: textOf(read, 'prefix') ?? 'bull',
    shown: urls.map((url) => shownOf(url, db)).join(', '),
    urls,
    isCluster,
  };
}

function urlOf(text: string, source: string): URL {
  if (text.startsWith('/')) return new URL(`unix://${text}`);
  let url: URL;
  try {
    url = new URL(text.includes('://') ? text : `redis://${text}`);
  } catch {
    throw new UsageError(`${source} is not a URL such as ${DEFAULT_URL}.`);
  }
  if (!['redis:', 'rediss:', 'unix:', 'redis+unix:'].includes(url.protocol)) {
    throw new UsageError(`${source} begins with ${url.protocol}//, and should with redis://, rediss:// or unix://.`);
  }
  if (![url.username, url.password, url.pathname].every(isDecodable)) {
    throw new UsageError(`${source} has a % that begins no code: write %25 for it.`);
  }
  if (!url.protocol.includes('unix') && !/^\/?\d*$/.test(url.pathname)) {
    throw new UsageError(`${source} names a database that is no number.`);
  }
  return url;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** What is the same for all servers that are named. */
function commonOf(read: Arguments, urls: readonly URL[], env: Io['env']): RedisOptions {
  const [url] = urls as [URL];
  const username = decodeURIComponent(url.username) || textOf(read, 'user') || env.REDIS_USERNAME;
  const password = decodeURIComponent(url.password) || env.REDIS_PASSWORD;
  const ca = textOf(read, 'tls-ca');
  const isTls = ca !== undefined || isGiven(read, 'tls') || urls.some(({ protocol }) => protocol === 'rediss:');
  return {
    connectTimeout: CONNECT_TIMEOUT_MS,
    ...(username && { username }),
    ...(password && { password }),
    ...(isTls && { tls: ca === undefined ? {} : { ca: fileText(ca) } }),
  };
}

/** The database: of sentinels the one in their master, which one of the URLs may name for all. */
function databaseOf(urls: readonly URL[], source: string, isCluster: boolean): { db?: number } {
  const paths = urls.filter(({ protocol }) => !protocol.includes('unix')).map(({ pathname }) => pathname.slice(1));
  const named = new Set(paths.filter((path) => path !== '').map(Number));
  if (named.size > 1) throw new UsageError(`${source} names several databases: the master has one of them.`);
  const [db] = named;
  if (isCluster && db) throw new UsageError(`${source} names database ${db}: a cluster has only database 0.`);
  return db === undefined || isCluster ? {} : { db };
}

function placeOf(url: URL): RedisOptions {
  if (url.protocol.includes('unix')) return { path: decodeURIComponent(url.pathname) };
  return {
    ...(url.hostname && { host: bare(url.hostname) }),
    ...(url.port && { port: Number(url.port) }),
  };
}

function shownOf(url: URL, { db }: { db?: number }): string {
  if (url.protocol.includes('unix')) return decodeURIComponent(url.pathname);
  return `${url.hostname || '127.0.0.1'}:${url.port || '6379'}${db ? `/${db}` : ''}`;
}

/** An IPv6 address without its brackets. */
function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Failure(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
}
