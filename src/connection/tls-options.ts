/**
 * Reads `connection.tls`, which ioredis hands to Node's `tls.connect`: what the engine can do is carried out, what has no effect on a client passes,
 * and what it cannot do is refused, with what to do instead. `docs/connections.md` has a row for each.
 */
import { constants, createPrivateKey } from 'node:crypto';
import tls from 'node:tls';
import { checkUnknownOption } from './known-options.js';
import { identityCheck, numberOf, type CheckServerIdentity } from './peer-certificate.js';
import { readCiphers, readGroups, readSignatures, SUITE_NAMES, TLS12, TLS13, VERSIONS } from './tls-names.js';
import { NotSupportedError } from '../errors/not-supported-error.js';
import type { NativeTls } from '../native/types.js';

type Fields = Readonly<Record<string, unknown>>;

/** Where to connect: said again here, it counts. */
const PLACE = ['host', 'port', 'path', 'family'];

/** What reaches the engine. */
export const TLS_CARRIED_OUT = [
  ...PLACE,
  ...['ca', 'cert', 'key', 'passphrase', 'crl', 'servername', 'rejectUnauthorized', 'checkServerIdentity'],
  ...[
    'minVersion',
    'maxVersion',
    'secureProtocol',
    'secureOptions',
    'ciphers',
    'ecdhCurve',
    'sigalgs',
    'ALPNProtocols',
  ],
];

/** What changes nothing: a server's options, Node's own sockets, and what the engine does in any case, or never. */
export const TLS_WITHOUT_EFFECT = [
  ...['ALPNCallback', 'SNICallback', 'dhparam', 'handshakeTimeout', 'honorCipherOrder', 'isServer', 'pauseOnConnect'],
  ...['pskIdentityHint', 'requestCert', 'server', 'sessionIdContext', 'sessionTimeout', 'ticketKeys'],
  ...['allowHalfOpen', 'autoSelectFamily', 'autoSelectFamilyAttemptTimeout', 'enableTrace', 'highWaterMark', 'hints'],
  ...['keepAlive', 'keepAliveInitialDelay', 'noDelay', 'readable', 'timeout', 'writable'],
  // it takes authorities that others have signed, and no key exchange of which a size could be too small
  ...['allowPartialTrustChain', 'minDHSize', 'requestOCSP', 'session'],
];

const PEM = 'pass `cert` and `key` as PEM text';
const OWN_SOCKETS = 'the engine opens its sockets by itself: pass `host` and `port`';

/** What the engine cannot do, and what to do instead. */
export const TLS_REFUSED: Readonly<Record<string, string>> = {
  blockList: 'connect by an address that is not on it',
  clientCertEngine: PEM,
  fd: OWN_SOCKETS,
  localAddress: "the system's routes choose it",
  localPort: 'the system chooses it',
  lookup: 'look the address up before, and pass it as `host`, and the name as `servername`',
  onread: OWN_SOCKETS,
  pfx: '`openssl pkcs12 -nodes -in FILE` makes PEM text of it: pass that as `cert`, `key` and `ca`',
  privateKeyEngine: PEM,
  privateKeyIdentifier: PEM,
  pskCallback: 'log in by a password, or by `cert` and `key`',
  secureContext: 'pass what it was made of: `ca`, `cert`, `key` and the like',
  signal: 'call `close()` or `disconnect()`',
  socket: OWN_SOCKETS,
};

/**
 * What the engine needs of `connection.tls`.
 * @throws NotSupportedError naming what cannot be carried out; TypeError for a value that Node refuses, too
 */
export function readTls(given: unknown): NativeTls {
  if (given === true) return {};
  if (typeof given !== 'object' || given === null) {
    throw new NotSupportedError('a named profile as connection.tls', 'pass an object of options');
  }
  const options = given as Fields;
  for (const [name, value] of Object.entries(options)) check(name, value);
  const native: NativeTls = {};
  if (options.rejectUnauthorized === false) native.rejectUnauthorized = false;
  const servername = textOf(options, 'servername');
  if (servername) native.servername = servername;
  for (const key of ['ca', 'crl'] as const) {
    const text = pem(key, options[key]);
    if (text !== undefined) native[key] = text;
  }
  const cert = pem('cert', theOne(options, 'cert'));
  if (cert !== undefined) native.cert = cert;
  const key = privateKey(options);
  if (key !== undefined) native.key = key;
  readOffer(options, native);
  readCheck(options, native);
  return native;
}

/**
 * The same of connections to what others tell of: nodes or sentinels.
 * @throws NotSupportedError also for one place that is to be that of all
 */
export function readTlsOfNodes(given: unknown): NativeTls {
  const [said] = Object.keys(placeIn(given));
  if (said === undefined) return readTls(given);
  throw new NotSupportedError(optionNamed(said), 'nodes are reached where they say, which `natMap` translates');
}

/** Where `connection.tls` says to connect, which counts more than what stands beside it. */
export function placeIn(given: unknown): Fields {
  const options = Object(given) as Fields;
  const said = PLACE.filter((name) => isGiven(options[name]));
  return Object.fromEntries(said.map((name) => [name, options[name]]));
}

const optionNamed = (name: string): string => `the connection option "tls.${name}"`;

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

function check(name: string, value: unknown): void {
  if (!isGiven(value) || TLS_CARRIED_OUT.includes(name) || TLS_WITHOUT_EFFECT.includes(name)) return;
  if (Object.hasOwn(TLS_REFUSED, name)) throw new NotSupportedError(optionNamed(name), TLS_REFUSED[name]);
  checkUnknownOption(`tls.${name}`, value);
}

function textOf(options: Fields, name: string): string | undefined {
  const value = options[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw new TypeError(`connection.tls.${name} must be a string`);
}

// ---- Certificates and keys

/** PEM text of certificates or a key, undefined when there is none; several follow one another. */
function pem(name: string, value: unknown): string | undefined {
  if (!isGiven(value)) return undefined;
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map((item) => pem(name, item) ?? '').join('\n');
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8');
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString('utf8');
  throw new NotSupportedError(`a value that is neither text nor Buffer as connection.tls.${name}`);
}

/** Of several client certificates Node takes the one that fits. */
function theOne(options: Fields, name: string): unknown {
  const value = options[name];
  if (!Array.isArray(value)) return value;
  if (value.length > 1) {
    throw new NotSupportedError(`a list of several as connection.tls.${name}`, 'pass the one that the server asks for');
  }
  return value[0];
}

/** The client's key, deciphered. */
function privateKey(options: Fields): string | undefined {
  const value = theOne(options, 'key');
  const { pem: own, passphrase: ownPassphrase } = Object(value) as { pem?: unknown; passphrase?: unknown };
  const text = pem('key', own ?? value);
  if (text === undefined || !text.includes('ENCRYPTED')) return text;
  const passphrase = textOf({ passphrase: ownPassphrase ?? options.passphrase }, 'passphrase');
  return createPrivateKey({ key: text, passphrase }).export({ type: 'pkcs8', format: 'pem' }).toString();
}

function readCheck({ checkServerIdentity, rejectUnauthorized }: Fields, native: NativeTls): void {
  if (!isGiven(checkServerIdentity) || checkServerIdentity === tls.checkServerIdentity) return;
  if (typeof checkServerIdentity !== 'function') {
    throw new TypeError('connection.tls.checkServerIdentity must be a function');
  }
  // what it says changes nothing then
  if (rejectUnauthorized === false) return;
  const check = checkServerIdentity as CheckServerIdentity;
  native.checkIdentity = identityCheck(check, native.ca);
  native.checkNumber = numberOf(check);
}

// ---- What is offered

function readOffer(options: Fields, native: NativeTls): void {
  let versions = versionsOf(options);
  const list = textOf(options, 'ciphers');
  if (list) {
    const { tls12, tls13, isTooStrict } = readCiphers(list);
    if (isTooStrict) throw new NotSupportedError('a SECLEVEL above 2 in connection.tls.ciphers', 'name the suites');
    native.cipherSuites = [...tls13, ...tls12];
    if (native.cipherSuites.length === 0) {
      throw new NotSupportedError(optionNamed('ciphers'), `the engine has ${SUITE_NAMES.join(', ')}`);
    }
    const isOffered = (version: number) => (version === TLS13 ? tls13 : tls12).length > 0;
    versions = versions.filter(isOffered);
    if (versions.length === 0) throw new TypeError('connection.tls.ciphers has none of the versions that are wanted');
  }
  if (versions.length < 2) native.versions = versions;
  const groups = textOf(options, 'ecdhCurve');
  if (groups && groups !== 'auto')
    native.groups = orRefuse('ecdhCurve', readGroups(groups), 'the engine has X25519, P-256 and P-384');
  const signatures = textOf(options, 'sigalgs');
  if (signatures) {
    const had = 'the engine has RSA, RSA-PSS and ECDSA with SHA256, SHA384 or SHA512, and ed25519';
    native.signatures = orRefuse('sigalgs', readSignatures(signatures), had);
  }
  const protocols = protocolsOf(options.ALPNProtocols);
  if (protocols.length > 0) native.protocols = protocols;
}

function orRefuse(name: string, numbers: number[], instead: string): number[] {
  if (numbers.length === 0) throw new NotSupportedError(optionNamed(name), instead);
  return numbers;
}

/** The versions that the engine may speak, of the two that it can. */
function versionsOf(options: Fields): number[] {
  const [low, high] = rangeOf(options);
  const forbidden = Number(options.secureOptions ?? 0);
  const isForbidden = (version: number) =>
    (forbidden & (version === TLS13 ? constants.SSL_OP_NO_TLSv1_3 : constants.SSL_OP_NO_TLSv1_2)) !== 0;
  const versions = [TLS13, TLS12].filter((version) => low <= version && version <= high && !isForbidden(version));
  if (versions.length === 0) {
    throw new NotSupportedError('a connection by neither TLS 1.2 nor TLS 1.3', 'have the server speak one of them');
  }
  return versions;
}

function rangeOf(options: Fields): [low: number, high: number] {
  const method = textOf(options, 'secureProtocol');
  const [min, max] = [textOf(options, 'minVersion'), textOf(options, 'maxVersion')];
  // those of the process: it may have been started with others
  if (!method) return [version(min || tls.DEFAULT_MIN_VERSION, 'min'), version(max || tls.DEFAULT_MAX_VERSION, 'max')];
  if (min || max) {
    throw new TypeError('connection.tls.secureProtocol cannot be combined with minVersion or maxVersion');
  }
  const range = METHODS[method.replace(/_(client_)?method$/, '')];
  if (!range || !method.endsWith('_method')) {
    throw new NotSupportedError(optionNamed('secureProtocol'), 'say `minVersion` and `maxVersion`');
  }
  return range;
}

const LOWEST = VERSIONS.TLSv1;
const METHODS: Readonly<Record<string, [low: number, high: number]>> = {
  TLS: [LOWEST, TLS13],
  // as Node has it
  SSLv23: [LOWEST, TLS12],
  TLSv1: [LOWEST, LOWEST],
  TLSv1_1: [VERSIONS['TLSv1.1'], VERSIONS['TLSv1.1']],
  TLSv1_2: [TLS12, TLS12],
};

function version(name: string, bound: 'min' | 'max'): number {
  const number = Object.hasOwn(VERSIONS, name) ? VERSIONS[name] : undefined;
  if (number !== undefined) return number;
  const error = new TypeError(`${JSON.stringify(name)} is not a valid ${bound}imum TLS protocol version`);
  throw Object.assign(error, { code: 'ERR_TLS_INVALID_PROTOCOL_VERSION' });
}

/** Names of protocols, as bytes: a list of them, or what travels, in which its length stands before each. */
function protocolsOf(given: unknown): number[][] {
  if (!isGiven(given)) return [];
  if (Array.isArray(given)) return given.map((name) => [...Buffer.from(name as string | Uint8Array)]);
  if (!ArrayBuffer.isView(given)) throw new TypeError('connection.tls.ALPNProtocols must be a list or a Buffer');
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  const names: number[][] = [];
  for (let at = 0; at < bytes.length; at += 1 + bytes[at]) names.push([...bytes.subarray(at + 1, at + 1 + bytes[at])]);
  return names;
}
