// Pins what the options of `connection.tls` do: they are those of Node's tls.connect, which ioredis hands them to.
import { constants } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DetailedPeerCertificate, TlsOptions } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { Authority, TlsFront, type Agreement, type Certificate } from '../support/tls.js';
import { EventLog } from '../support/waiting.js';

const NAMES = 'DNS:localhost,IP:127.0.0.1';

describe.each(libraries)('$name: connection.tls', ({ lib }) => {
  const stage = useStage(lib);
  let authority: Authority;
  let stranger: Authority;
  let certificate: Certificate;
  let folder: string;
  beforeAll(() => {
    authority = new Authority();
    stranger = new Authority('somebody else');
    certificate = authority.sign(NAMES);
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-tls-'));
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await authority.close();
    await stranger.close();
  });

  interface Server {
    /** What the server shows. */
    shown?: Certificate;
    /** Whose certificates clients have to show. */
    clientCa?: string;
    options?: TlsOptions;
    path?: string;
  }

  async function front({ shown = certificate, clientCa, options, path }: Server): Promise<TlsFront> {
    return stage.keep(await new TlsFront(shown, clientCa, options).open(path));
  }

  const login = () => {
    const { username, password, db } = server;
    return { db, ...(username && { username }), ...(password && { password }) };
  };

  /** What the server and a queue that connects with these options agree on. */
  async function agreed(tls: object, to: Server = {}): Promise<Agreement> {
    const opened = await front(to);
    const place = to.path === undefined ? { host: '127.0.0.1', port: opened.port } : { path: to.path };
    const queue = stage.keep(
      new lib.Queue(stage.queueName, { connection: { ...place, ...login(), tls: { ca: authority.ca, ...tls } } }),
    );
    await queue.waitUntilReady();
    expect((await queue.add('job', {})).id).toMatch(/^\d+$/);
    return opened.agreements[0];
  }

  /** The error that such a queue emits. */
  async function refusal(tls: object, to: Server = {}): Promise<Error & { code?: string }> {
    const { port } = await front(to);
    const connection = { host: '127.0.0.1', port, ...login(), tls: { ca: authority.ca, ...tls } };
    const queue = stage.keep(new lib.Queue(stage.queueName, { connection }));
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    return error;
  }

  it.each<[string, object, string]>([
    ['minVersion', { minVersion: 'TLSv1.3' }, 'TLSv1.3'],
    ['maxVersion', { maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['both', { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['a range below', { minVersion: 'TLSv1', maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['secureProtocol', { secureProtocol: 'TLSv1_2_method' }, 'TLSv1.2'],
    ['an old secureProtocol', { secureProtocol: 'SSLv23_method' }, 'TLSv1.2'],
    ['secureProtocol for all', { secureProtocol: 'TLS_method' }, 'TLSv1.3'],
    ['secureOptions', { secureOptions: constants.SSL_OP_NO_TLSv1_3 | constants.SSL_OP_NO_COMPRESSION }, 'TLSv1.2'],
    ['none of them', {}, 'TLSv1.3'],
  ])('the version is that of %s', async (_, tls, protocol) => {
    expect(await agreed(tls)).toMatchObject({ protocol });
  });

  it('a server that speaks none of the versions is told of', async () => {
    const error = await refusal({ minVersion: 'TLSv1.3' }, { options: { maxVersion: 'TLSv1.2' } });
    expect(error.message).toMatch(/version/i);
  });

  it.each<[string, string, string, string?]>([
    ['ECDHE-ECDSA-AES128-GCM-SHA256', 'TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256', 'TLSv1.2'],
    [
      'ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305',
      'TLSv1.2',
      'ECDHE-ECDSA-CHACHA20-POLY1305',
      'TLSv1.2',
    ],
    ['HIGH:!AES256:!CHACHA20:!aNULL:!AES128-SHA', 'TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256', 'TLSv1.2'],
    ['ECDHE+AESGCM+AES256@SECLEVEL=0', 'TLSv1.2', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'TLSv1.2'],
    ['TLS_CHACHA20_POLY1305_SHA256', 'TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256'],
    ['TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256', 'TLSv1.3', 'TLS_AES_128_GCM_SHA256'],
    ['ECDHE-ECDSA-AES128-GCM-SHA256', 'TLSv1.3', 'TLS_AES_256_GCM_SHA384'],
    ['DEFAULT:@SECLEVEL=1', 'TLSv1.3', 'TLS_AES_256_GCM_SHA384'],
  ])('ciphers: %s, by %s', async (ciphers, protocol, cipher, maxVersion) => {
    expect(await agreed({ ciphers, maxVersion })).toMatchObject({ protocol, cipher });
  });

  it('ciphers of TLS 1.3 alone leave the other one out', async () => {
    const old = { options: { maxVersion: 'TLSv1.2' } as const };
    expect((await refusal({ ciphers: 'TLS_AES_128_GCM_SHA256' }, old)).message).toMatch(/version/i);
  });

  it('ecdhCurve', async () => {
    const options = { ecdhCurve: 'P-384' };
    expect(await agreed({ ecdhCurve: 'X448:secp384r1' }, { options })).toMatchObject({ protocol: 'TLSv1.3' });
    expect(await agreed({ ecdhCurve: 'auto' }, { options })).toMatchObject({ protocol: 'TLSv1.3' });
    expect((await refusal({ ecdhCurve: 'X25519:P-256' }, { options })).message).toMatch(/handshake/i);
  });

  it('sigalgs', async () => {
    const sigalgs = 'ECDSA+SHA256:RSA-PSS+SHA384:ed448';
    expect((await agreed({ sigalgs })).sigalgs).toEqual(expect.arrayContaining(['ECDSA+SHA256', 'RSA-PSS+SHA384']));
    expect((await refusal({ sigalgs: 'RSA-PSS+SHA256' })).message).toMatch(/handshake/i);
  });

  it.each([
    ['a list', ['other', 'redis']],
    ['what travels', Buffer.from('\x05other\x05redis')],
  ])('ALPNProtocols as %s', async (_, ALPNProtocols) => {
    const options = { ALPNProtocols: ['redis'] };
    expect(await agreed({ ALPNProtocols }, { options })).toMatchObject({ alpn: 'redis' });
    expect((await agreed({ ALPNProtocols })).alpn).toBeFalsy();
  });

  it('servername is the name that is asked for', async () => {
    const shown = authority.sign('DNS:redis.example');
    expect(await agreed({ servername: 'redis.example' }, { shown })).toMatchObject({ servername: 'redis.example' });
    expect((await agreed({ servername: '' })).servername).toBeUndefined();
  });

  it('host and port count more than those of the connection', async () => {
    const { port } = await front({});
    const tls = { ca: authority.ca, host: '127.0.0.1', port };
    const connection = { host: 'nowhere.invalid', port: 1, ...login(), tls };
    const queue = stage.keep(new lib.Queue(stage.queueName, { connection }));
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it('the path of a unix socket', async () => {
    expect(await agreed({}, { path: join(folder, `${lib === libraries[0]?.lib}.sock`) })).toMatchObject({
      protocol: 'TLSv1.3',
    });
  });

  it.each<[string, () => object]>([
    ['passphrase', () => ({ ...authority.locked(authority.sign('DNS:client'), 'secret'), passphrase: 'secret' })],
    [
      'that of a key',
      () => {
        const { cert, key } = authority.locked(authority.sign('DNS:client'), 'secret');
        return { cert: [cert], key: [{ pem: Buffer.from(key), passphrase: 'secret' }] };
      },
    ],
    ['one that is not needed', () => ({ ...authority.sign('DNS:client'), passphrase: 'secret' })],
  ])('a client with a certificate, and a passphrase: %s', async (_, tls) => {
    const clientCa = authority.ca;
    expect(await agreed(tls(), { clientCa })).toMatchObject({ client: 'server' });
  });

  it.each<[string, () => unknown]>([
    ['bytes', () => new Uint8Array(Buffer.from(authority.ca))],
    ['a view of bytes', () => new DataView(new Uint8Array(Buffer.from(authority.ca)).buffer)],
    ['a list of both', () => [stranger.ca, Buffer.from(authority.ca)]],
  ])('ca as %s', async (_, ca) => {
    expect(await agreed({ ca: ca() })).toMatchObject({ protocol: 'TLSv1.3' });
  });

  it('crl', async () => {
    const lists = [authority.crl(authority.sign(NAMES)), stranger.crl()];
    expect(await agreed({ crl: lists })).toMatchObject({ protocol: 'TLSv1.3' });
    expect(await refusal({ crl: authority.crl(certificate) })).toMatchObject({ code: 'CERT_REVOKED' });
    expect(await refusal({ crl: stranger.crl() })).toMatchObject({ code: 'UNABLE_TO_GET_CRL' });
  });

  describe('checkServerIdentity', () => {
    const shown = () => authority.sign('DNS:other.example');

    it('that finds nothing wrong takes a certificate for another name', async () => {
      expect(await agreed({ checkServerIdentity: () => undefined }, { shown: shown() })).toMatchObject({
        protocol: 'TLSv1.3',
      });
    });

    it('is called with the name and what the server shows', async () => {
      const calls: [string, DetailedPeerCertificate][] = [];
      const checkServerIdentity = (...call: [string, DetailedPeerCertificate]) => void calls.push(call);
      await agreed({ checkServerIdentity, servername: 'redis.example' }, { shown: shown() });
      const [host, peer] = calls[0];
      expect(host).toBe('redis.example');
      expect(peer).toMatchObject({
        subject: { CN: 'server' },
        subjectaltname: 'DNS:other.example',
        fingerprint256: expect.stringMatching(/^([\dA-F]{2}:){31}[\dA-F]{2}$/),
        raw: expect.any(Buffer),
        issuerCertificate: { subject: { CN: 'ChasquiMQ test authority' } },
      });
      const root = peer.issuerCertificate;
      expect(root.issuerCertificate).toBe(root);
    });

    it('is called with the address when there is no name', async () => {
      const hosts: string[] = [];
      await agreed({ checkServerIdentity: (host: string) => void hosts.push(host) });
      expect(hosts[0]).toBe('127.0.0.1');
    });

    it.each<[string, () => unknown, object]>([
      ['an error', () => new Error('not mine'), { message: expect.stringContaining('not mine') }],
      [
        'one with a code',
        () => Object.assign(new Error('not mine'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }),
        { message: expect.stringContaining('not mine'), code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
      ],
    ])('that gives %s refuses the server', async (_, checkServerIdentity, expected) => {
      expect(await refusal({ checkServerIdentity })).toMatchObject(expected);
    });

    it('changes nothing about who has to vouch for the server', async () => {
      const called = { times: 0 };
      const checkServerIdentity = () => void called.times++;
      const error = await refusal({ checkServerIdentity, ca: stranger.ca });
      expect(error).toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
      expect(called.times).toBe(0);
    });

    it('changes nothing where any certificate is taken', async () => {
      const checkServerIdentity = () => new Error('not mine');
      const tls = { checkServerIdentity, rejectUnauthorized: false };
      expect(await agreed(tls, { shown: shown() })).toMatchObject({ protocol: 'TLSv1.3' });
    });
  });

  it('what means nothing to a client passes', async () => {
    const forServers = { honorCipherOrder: true, requestCert: false, sessionTimeout: 10, handshakeTimeout: 500 };
    const ofSockets = {
      timeout: 60_000,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 5,
      highWaterMark: 9_000,
    };
    const others = { requestOCSP: true, minDHSize: 2_048, allowPartialTrustChain: true, session: undefined };
    expect(await agreed({ ...forServers, ...ofSockets, ...others })).toMatchObject({ protocol: 'TLSv1.3' });
  });
});
