// Pins how `connection.tls` is read: what reaches the engine, what passes, and what is refused, with what to do.
import { execFileSync } from 'node:child_process';
import { constants } from 'node:crypto';
import { join } from 'node:path';
import tls from 'node:tls';
import ts from 'typescript';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { readConnection } from '../../src/connection/read-connection.js';
import { readCiphers } from '../../src/connection/tls-names.js';
import { TLS_CARRIED_OUT, TLS_REFUSED, TLS_WITHOUT_EFFECT } from '../../src/connection/tls-options.js';
import { NotSupportedError } from '../../src/errors/not-supported-error.js';
import { textOf } from '../support/doc-blocks.js';
import { ROOT } from '../support/registry.js';

const read = (options: object, beside: object = {}) => readConnection({ ...beside, tls: options }, 'commands').native;
const readTls = (options: object) => read(options).tls;

const TLS13 = [0x1302, 0x1301, 0x1303];

afterEach(() => vi.restoreAllMocks());

describe('what is offered', () => {
  it.each<[string, object, object]>([
    ['all versions', { minVersion: 'TLSv1', maxVersion: 'TLSv1.3' }, {}],
    ['one version', { minVersion: 'TLSv1.3' }, { versions: [0x0304] }],
    ['the other one', { maxVersion: 'TLSv1.2' }, { versions: [0x0303] }],
    ['those of a method', { secureProtocol: 'TLSv1_2_client_method' }, { versions: [0x0303] }],
    ['what is not forbidden', { secureOptions: constants.SSL_OP_NO_TLSv1_2 }, { versions: [0x0304] }],
    [
      'suites of both versions',
      { ciphers: 'TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256' },
      { cipherSuites: [0x1301, 0xc02f] },
    ],
    [
      "suites by IANA's names",
      { ciphers: 'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256' },
      { cipherSuites: [...TLS13, 0xcca8] },
    ],
    [
      'suites of one version',
      { ciphers: 'TLS_AES_128_CCM_SHA256:TLS_AES_128_GCM_SHA256' },
      { cipherSuites: [0x1301], versions: [0x0304] },
    ],
    ['suites that there are', { ciphers: 'DHE-RSA-AES256-SHA' }, { cipherSuites: TLS13, versions: [0x0304] }],
    ['groups', { ecdhCurve: 'X448:P-384:prime256v1:P-256' }, { groups: [0x0018, 0x0017] }],
    ['groups as OpenSSL 3.5 has them', { ecdhCurve: '?*X25519MLKEM768/?X25519:P-256' }, { groups: [0x001d, 0x0017] }],
    ['any groups', { ecdhCurve: 'auto' }, {}],
    ['signatures', { sigalgs: 'ed25519:rsa_pss_rsae_sha512:RSA+SHA1:PSS+SHA512' }, { signatures: [0x0807, 0x0806] }],
    ['protocols', { ALPNProtocols: ['h2', Buffer.from('x')] }, { protocols: [[0x68, 0x32], [0x78]] }],
    ['protocols as they travel', { ALPNProtocols: Buffer.from('\x02h2\x01x') }, { protocols: [[0x68, 0x32], [0x78]] }],
    ['no protocols', { ALPNProtocols: [] }, {}],
  ])('are %s', (_, options, expected) => {
    expect(readTls(options)).toEqual(expected);
  });

  it('goes by the versions that the process was started with', () => {
    vi.spyOn(tls, 'DEFAULT_MIN_VERSION', 'get').mockReturnValue('TLSv1.3');
    expect(readTls({})).toEqual({ versions: [0x0304] });
    expect(readTls({ minVersion: 'TLSv1.2' })).toEqual({});
  });

  it.each([
    ...['HIGH:!aNULL', 'ALL:!AES256', 'ECDHE+AESGCM', 'ECDHE+AESGCM:+AES256', 'kEECDH+aECDSA', 'HIGH:@STRENGTH'],
    ...['ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-SHA:-AES128:ALL', '!CHACHA20:ECDHE-RSA-CHACHA20-POLY1305:AES'],
    ...['EECDH+CHACHA20 EECDH+AES128, AES256+ECDSA', 'ECDHE-ECDSA-AES256-GCM-SHA384:HIGH:!kRSA:!DH', 'AESGCM:FIPS'],
  ])('of a list of ciphers is what OpenSSL makes of it: %s', (list) => {
    const all = execFileSync('openssl', ['ciphers', '-s', '-tls1_2', list], { encoding: 'utf8' }).trim().split(':');
    const numbers = all.flatMap((name) => readCiphers(name).tls12);
    expect(numbers.length).toBeGreaterThan(0);
    expect(readCiphers(list).tls12.toSorted()).toEqual(numbers.toSorted());
  });
});

describe('certificates and keys', () => {
  it('that are empty are none', () => {
    expect(readTls({ ca: '', cert: undefined, key: null, crl: '', servername: '', passphrase: '' })).toEqual({});
  });

  it('of which there are several follow one another, those of a client excepted', () => {
    expect(readTls({ ca: ['a', Buffer.from('b')], crl: ['c', 'd'] })).toEqual({ ca: 'a\nb', crl: 'c\nd' });
    expect(readTls({ cert: ['a'], key: ['b'] })).toEqual({ cert: 'a', key: 'b' });
    expect(() => readTls({ cert: ['a', 'b'] })).toThrow(NotSupportedError);
  });
});

describe('checkServerIdentity', () => {
  it('reaches the engine, unless it changes nothing', () => {
    const checkServerIdentity = () => undefined;
    const read = readTls({ checkServerIdentity });
    expect(read).toEqual({ checkIdentity: expect.any(Function), checkNumber: expect.any(Number) });
    // connections are shared by those who decide alike
    expect(readTls({ checkServerIdentity })?.checkNumber).toBe(read?.checkNumber);
    expect(readTls({ checkServerIdentity: () => undefined })?.checkNumber).not.toBe(read?.checkNumber);
    expect(readTls({ checkServerIdentity, rejectUnauthorized: false })).toEqual({ rejectUnauthorized: false });
    expect(readTls({ checkServerIdentity: tls.checkServerIdentity })).toEqual({});
    expect(() => readTls({ checkServerIdentity: 'no' })).toThrow(TypeError);
  });

  it.each<[string, () => unknown, object | undefined]>([
    ['nothing', () => undefined, undefined],
    ['an error', () => new Error('no'), { message: 'no' }],
    ['a text', () => 'no', { message: 'no' }],
    ['its code', () => Object.assign(new Error('no'), { code: 'NO' }), { message: 'no', code: 'NO' }],
  ])('gives %s', (_, check, expected) => {
    const { checkIdentity } = readTls({ ca: tls.rootCertificates[0], checkServerIdentity: check }) ?? {};
    const shown = Buffer.from(tls.rootCertificates[0].replace(/-----.*-----|\n/g, ''), 'base64');
    expect(checkIdentity?.('host', [shown])).toEqual(expected);
  });

  it('that throws refuses the server', () => {
    const checkServerIdentity = () => {
      throw new Error('broken');
    };
    const shown = Buffer.from(tls.rootCertificates[0].replace(/-----.*-----|\n/g, ''), 'base64');
    expect(readTls({ checkServerIdentity })?.checkIdentity?.('host', [shown])).toEqual({ message: 'broken' });
    expect(readTls({ checkServerIdentity })?.checkIdentity?.('host', [Buffer.from('x')])?.message).toMatch(/PEM|ASN1/i);
  });
});

describe('a place', () => {
  it('counts more than the one beside it', () => {
    const place = { host: 'h', port: 1, family: 6 };
    expect(read(place, { host: 'other', port: 2, db: 3 })).toEqual({ ...place, db: 3, tls: {} });
    expect(read({ path: '/x.sock' }, { host: 'other' })).toEqual({ path: '/x.sock', tls: {} });
    expect(read({ host: undefined }, { host: 'h' })).toEqual({ host: 'h', tls: {} });
  });

  it.each([
    ['nodes', { nodes: [{ host: 'h' }] }],
    ['sentinels', { sentinels: [{ host: 'h' }], name: 'm', enableTLSForSentinelMode: true }],
    ['sentinels of their own', { sentinels: [{ host: 'h' }], name: 'm', sentinelTLS: { host: 'h' } }],
  ])('is that of the others, where %s say it', (_, beside) => {
    expect(() => read({ host: 'h' }, beside)).toThrow(/"tls.host" is not supported by ChasquiMQ yet: .*natMap/);
  });
});

describe('what is refused says what to do', () => {
  it.each(Object.entries(TLS_REFUSED))('%s', (name, instead) => {
    const expected = new NotSupportedError(`the connection option "tls.${name}"`, instead);
    expect(() => readTls({ [name]: {} })).toThrow(expected);
    expect(readTls({ [name]: undefined })).toEqual({});
  });

  it.each<[object, RegExp]>([
    [
      { ciphers: 'DHE-RSA-AES256-SHA:TLS_AES_128_CCM_SHA256' },
      /"tls.ciphers" .*: the engine has TLS_AES_256_GCM_SHA384, /,
    ],
    [{ ciphers: 'HIGH:@SECLEVEL=3' }, /SECLEVEL/],
    [{ ecdhCurve: 'P-521' }, /"tls.ecdhCurve" .*: the engine has X25519/],
    [{ sigalgs: 'RSA+SHA1' }, /"tls.sigalgs" .*: the engine has RSA/],
    [{ maxVersion: 'TLSv1.1' }, /neither TLS 1.2 nor TLS 1.3/],
    [{ secureProtocol: 'TLSv1_method' }, /neither TLS 1.2 nor TLS 1.3/],
    [{ secureProtocol: 'SSLv3_method' }, /"tls.secureProtocol" .*: say `minVersion`/],
    [{ secureProtocol: 'TLS_server_method' }, /"tls.secureProtocol"/],
    [{ certificate: 'x' }, /"tls.certificate" is not supported by ChasquiMQ yet$/],
    [{ rejectUnauthorised: true }, /"tls.rejectUnauthorised"/],
  ])('%j', (options, message) => {
    expect(() => readTls(options)).toThrow(NotSupportedError);
    expect(() => readTls(options)).toThrow(message);
  });

  it.each<[object, string]>([
    [{ minVersion: 'TLS1.2' }, '"TLS1.2" is not a valid minimum TLS protocol version'],
    [{ maxVersion: 'toString' }, '"toString" is not a valid maximum TLS protocol version'],
    [{ secureProtocol: 'TLS_method', minVersion: 'TLSv1.2' }, 'cannot be combined'],
    [{ ciphers: 'TLS_AES_128_GCM_SHA256', maxVersion: 'TLSv1.2' }, 'none of the versions'],
    [{ ciphers: 1 }, 'connection.tls.ciphers must be a string'],
    [{ ALPNProtocols: 'h2' }, 'must be a list or a Buffer'],
  ])('as Node does: %j', (options, message) => {
    expect(() => readTls(options)).toThrow(TypeError);
    expect(() => readTls(options)).toThrow(message);
  });
});

describe('what has no effect', () => {
  it.each(TLS_WITHOUT_EFFECT)('passes: %s', (name) => {
    const warn = vi.spyOn(process, 'emitWarning');
    expect(readTls({ [name]: 1 })).toEqual({});
    expect(warn).not.toHaveBeenCalled();
  });

  it('and is not known is warned of', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    expect(readTls({ enabled: true })).toEqual({});
    expect(warn.mock.calls[0]?.[0]).toBe('The connection option "tls.enabled" is not known and is ignored');
  });
});

describe('an option of tls.connect', () => {
  const known = [...TLS_CARRIED_OUT, ...TLS_WITHOUT_EFFECT, ...Object.keys(TLS_REFUSED)];

  it.each(known)('has one row in the documentation: %s', (name) => {
    const rows = textOf('docs/connections.md')
      .split('\n')
      .filter((line) => line.startsWith('| `tls.') && line.includes('`'));
    const naming = rows.filter((row) => new RegExp(`\`(tls\\.)?${name}\``).test(row.split('|')[1] ?? ''));
    expect(naming).toHaveLength(1);
  });

  it('that Node has is known', () => {
    const theirs = ['tls.d.ts', 'net.d.ts'].flatMap((file) => membersOf(join(ROOT, 'node_modules/@types/node', file)));
    expect(theirs.length).toBeGreaterThan(60);
    expect([...new Set(theirs)].filter((name) => !known.includes(name))).toEqual([]);
  });
});

const CLIENT_TYPES =
  /^(ConnectionOptions|SecureContextOptions|CommonConnectionOptions|TLSSocketOptions|SocketConstructorOpts|SocketConnectOpts|TcpSocketConnectOpts|ConnectOpts|IpcSocketConnectOpts|TcpNetConnectOpts|ServerOpts|TlsOptions)$/;

/** Names of the options of a connection, and of a server, whose options Node's types mix with them. */
function membersOf(file: string): string[] {
  const source = ts.createSourceFile(file, ts.sys.readFile(file) ?? '', ts.ScriptTarget.Latest);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node) && CLIENT_TYPES.test(node.name.text))
      found.push(...node.members.flatMap(({ name }) => (name && ts.isIdentifier(name) ? [name.text] : [])));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}
