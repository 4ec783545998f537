/**
 * Which connection options have an effect, which need none, and which are refused.
 *
 * What ioredis knows and the engine cannot do is refused. What nobody here has heard of comes from a newer or another
 * driver: it is ignored, with one warning that names it, so that a driver's next release does not break whoever passes
 * its options on; unless its name says that it is about where or how safely to connect, for then ignoring it would lead
 * elsewhere.
 */
import { CLUSTER_OPTIONS, SENTINEL_OPTIONS } from './discovery.js';
import { NotSupportedError } from '../errors/not-supported-error.js';

/** Options that reach the engine. */
const MAPPED = [
  'host',
  'port',
  'family',
  'path',
  'username',
  'password',
  'db',
  'tls',
  'connectTimeout',
  'connectionName',
];

/**
 * ioredis options that change nothing here, each for its reason. The engine owns its connections: it checks that the
 * server is ready, keeps commands until it has reconnected and sends each exactly once, pipelines by itself,
 * reconnects on a schedule of its own, and chooses the protocol it speaks.
 */
export const NO_EFFECT = [
  'url',
  'skipVersionCheck', // see targetOf()
  'maxRetriesPerRequest',
  'retryStrategy', // asked when to give up
  'enableOfflineQueue', // see Connection.failFast
  'reconnectOnError',
  'maxLoadingRetryTime',
  'enableReadyCheck',
  'lazyConnect',
  'autoResubscribe',
  'autoResendUnfulfilledCommands',
  'enableAutoPipelining',
  'autoPipeliningIgnoredCommands',
  'keepAlive', // on, as the system has it
  'noDelay',
  'disconnectTimeout',
  'blockingTimeoutGrace',
  'stringNumbers',
  'showFriendlyErrorStack',
  'disableClientInfo',
  'clientInfoTag',
  // of ioredis 6: how a client's own user sees replies, and what that user sends
  'protocol',
  'replyMapping',
  'himportFieldsets',
];

const ACCEPTED = new Set([...MAPPED, ...NO_EFFECT, 'natMap', ...SENTINEL_OPTIONS, ...CLUSTER_OPTIONS]);

/**
 * ioredis options that the engine cannot carry out. Their value here is the one that it does anyway; another would be a
 * broken promise.
 */
export const REFUSED: Readonly<Record<string, unknown>> = {
  keyPrefix: '',
  readOnly: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  monitor: false,
  useSRVRecords: false,
  Connector: undefined,
};

/** Words in an unknown option's name that say that it is about where to connect, or how safely. */
const WHERE_OR_HOW_SAFELY = new Set(
  (
    'address addresses addr agent auth authentication authorization ca cert certificate certs certificates ' +
    'cipher ciphers cluster connector credential credentials crl database db dns endpoint endpoints encrypt encryption ' +
    'fingerprint host hostname hosts iam ip ipv4 ipv6 key keys login lookup master masters node nodes pass passphrase passwd ' +
    'password path pfx port ports proxy reject replica replicas seed seeds secret secure sentinel sentinels server ' +
    'servers servername slave slaves sni socket socks srv ssh ssl tls token tunnel unauthorized unix uri url user username ' +
    'verify'
  ).split(' '),
);

const warnedOf = new Set<string>();

/** @throws NotSupportedError naming an option that would have had to change what the engine does */
export function checkConnectionOption(name: string, value: unknown): void {
  if (value === undefined || value === null || value === false || ACCEPTED.has(name)) return;
  if (!Object.hasOwn(REFUSED, name)) checkUnknownOption(name, value);
  else if (REFUSED[name] !== value) throw new NotSupportedError(`the connection option "${name}"`);
}

/** @throws NotSupportedError naming an option that nobody here has heard of, if its name says that to ignore it would lead elsewhere */
export function checkUnknownOption(name: string, value: unknown): void {
  if (value === false) return;
  // `tls.` says nothing of the option behind it
  if (saysWhereOrHowSafely(name.slice(name.lastIndexOf('.') + 1))) {
    throw new NotSupportedError(`the connection option "${name}"`);
  }
  warnOnce(name);
}

/** The words of a name are told apart by capitals, underscores and the like: `sslProfile` has two, `support` is one. */
function saysWhereOrHowSafely(name: string): boolean {
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/([A-Z])([A-Z][a-z])/g, '$1 $2');
  return words.split(/[^A-Za-z\d]+/).some((word) => WHERE_OR_HOW_SAFELY.has(word.toLowerCase()));
}

/** Once a name, however many queues there are. `--disable-warning=CHASQUIMQ_UNKNOWN_OPTION` silences it. */
function warnOnce(name: string): void {
  if (warnedOf.has(name)) return;
  warnedOf.add(name);
  process.emitWarning(`The connection option "${name}" is not known and is ignored`, {
    type: 'ChasquiMQWarning',
    code: 'CHASQUIMQ_UNKNOWN_OPTION',
  });
}
