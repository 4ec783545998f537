// Pins how `connection` is read.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { optionsShown, readConnection, type ConnectionUse } from '../../src/connection/read-connection.js';
import { NotSupportedError } from '../../src/errors/not-supported-error.js';
import { drivers } from '../support/drivers.js';

const read = (connection: unknown, use: ConnectionUse = 'commands') => readConnection(connection, use).native;

afterEach(() => vi.restoreAllMocks());

describe('options', () => {
  it.each([undefined, null, {}])('may be left out: %j', (connection) => expect(read(connection)).toEqual({}));

  it('reach the engine under their names', () => {
    const connection = { host: 'h', port: 1234, username: 'u', password: 'p', db: 3, connectionName: 'c' };
    expect(read({ ...connection, connectTimeout: 500 })).toEqual({ ...connection, connectTimeout: 500 });
  });

  it('may be numbers written as text, and a password a number', () => {
    expect(read({ port: '1234', db: '2', password: 42 })).toEqual({ port: 1234, db: 2, password: '42' });
  });

  it.each([
    [4, 4],
    ['6', 6],
    ['IPv4', 4],
    ['IPv6', 6],
    [0, undefined],
    [null, undefined],
  ])('with family %j', (family, expected) => {
    expect(read({ family }).family).toBe(expected);
  });

  it.each([5, 7, 'x'])('with family %j are refused', (family) => {
    expect(() => read({ family })).toThrow('connection.family must be');
  });

  it('with a path need no host and port', () => {
    expect(read({ path: '/tmp/x.sock', host: 'localhost', port: 6379 })).toEqual({ path: '/tmp/x.sock' });
  });

  it.each([
    ['port', 0],
    ['port', 65_536],
    ['port', NaN],
    ['port', 'http'],
    ['db', -1],
    ['db', 1.5],
    ['connectTimeout', Infinity],
  ])('out of range are refused: %s %s', (key, value) => {
    expect(() => read({ [key]: value })).toThrow(`connection.${key} must be an integer`);
  });

  // connection-options-without-effect: a wanted difference (docs/differences.md)
  it('that change nothing are accepted', () => {
    const connection = {
      maxRetriesPerRequest: null,
      enableReadyCheck: false,
      lazyConnect: true,
      keepAlive: 1,
    };
    expect(read(connection)).toEqual({});
  });

  it.each(['commandTimeout', 'useSRVRecords', 'readOnly', 'Connector'])('not supported are named: %s', (key) => {
    expect(() => read({ [key]: 1 })).toThrow(new NotSupportedError(`the connection option "${key}"`));
    expect(read({ [key]: undefined })).toEqual({});
  });

  it.each(['socket', 'sslMode', 'authToken', 'TLSProfile', 'proxyUrl', 'credentialsProvider', 'use_unix_socket', 'IP'])(
    'not known are refused where they say where or how safely to connect: %s',
    (key) => {
      expect(() => read({ [key]: 1 })).toThrow(new NotSupportedError(`the connection option "${key}"`));
      expect(read({ [key]: false })).toEqual({});
    },
  );

  it('not known are ignored otherwise, with one warning for each name', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    expect(read({ host: 'h', supportsKeyspaces: 1, surprise: null })).toEqual({ host: 'h' });
    expect(read({ supportsKeyspaces: 2 })).toEqual({});
    expect(read('redis://h?reportErrors=1')).toEqual({ host: 'h' });
    const options = { type: 'ChasquiMQWarning', code: 'CHASQUIMQ_UNKNOWN_OPTION' };
    expect(warn.mock.calls).toEqual([
      ['The connection option "supportsKeyspaces" is not known and is ignored', options],
      ['The connection option "reportErrors" is not known and is ignored', options],
    ]);
  });

  it('of ioredis 6 are accepted', () => {
    const warn = vi.spyOn(process, 'emitWarning');
    for (const protocol of [2, 3]) expect(read({ host: 'h', protocol, replyMapping: 'resp3' })).toEqual({ host: 'h' });
    expect(read({ himportFieldsets: [] })).toEqual({});
    expect(warn).not.toHaveBeenCalled();
  });

  // key-prefix-option: a wanted difference (docs/differences.md)
  it('with keyPrefix get the text of BullMQ', () => {
    expect(() => read({ keyPrefix: 'x' })).toThrow(
      'BullMQ: ioredis does not support ioredis prefixes, use the prefix option instead.',
    );
  });

  it.each([true, '', 0, null, undefined, false])(
    'with rejectUnauthorized: %j let in any certificate for false alone',
    (value) => {
      const { tls } = read({ tls: { rejectUnauthorized: value } });
      expect(tls?.rejectUnauthorized !== false).toBe(value !== false);
    },
  );

  it('with connectTimeout: 0 have no limit', () => {
    expect(read({ connectTimeout: 0 })).toEqual({ connectTimeout: 2 ** 31 - 1 });
  });

  it('of a cluster are those of its nodes, where these say something', () => {
    const redisOptions = { tls: { servername: 's' }, password: 'p', username: 'u' };
    const shared = { tls: redisOptions.tls, password: 'p', username: 'u' };
    for (const node of ['rediss://h:1', 'redis://h:1/2', { host: 'h', port: 1, password: undefined, db: 2 }])
      expect(read({ nodes: [node], redisOptions })).toMatchObject(shared);
    expect(read({ nodes: ['redis://:own@h:1'], redisOptions })).toMatchObject({ ...shared, password: 'own' });
    expect(read({ nodes: ['rediss://h:1'] })).toMatchObject({ tls: {} });
    expect(read({ nodes: ['redis://h:1/2'], redisOptions })).not.toHaveProperty('db');
  });

  it('say whether commands wait for the connection, and when to give up', () => {
    const retryStrategy = () => null;
    expect(readConnection({ retryStrategy }, 'commands')).toMatchObject({ retryStrategy, failFast: false });
    expect(readConnection({ enableOfflineQueue: false }, 'commands').failFast).toBe('once-up');
    expect(readConnection({ enableOfflineQueue: false }, 'commands', true).failFast).toBe('always');
  });

  it('with maxRetriesPerRequest are warned of where the connection blocks', () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    read({ maxRetriesPerRequest: 3 });
    expect(print).not.toHaveBeenCalled();
    read({ maxRetriesPerRequest: 3 }, 'blocking');
    expect(print).toHaveBeenCalledWith(
      'BullMQ: WARNING! Your redis options maxRetriesPerRequest must be null and will be overridden by BullMQ.',
    );
  });
});

describe('a URL', () => {
  it.each([
    ['redis://u:p%40ss@h:1234/3', { host: 'h', port: 1234, username: 'u', password: 'p@ss', db: 3 }],
    ['redis://:secret@h', { host: 'h', password: 'secret' }],
    ['rediss://h:1', { host: 'h', port: 1, tls: {} }],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }],
    ['localhost:7000', { host: 'localhost', port: 7000 }],
    ['redis://h?db=2&family=6', { host: 'h', db: 2, family: 6 }],
    ['7000', { port: 7000 }],
    ['//h:7000', { host: 'h', port: 7000 }],
    ['//u:p@h/3', { host: 'h', username: 'u', password: 'p', db: 3 }],
    ['unix:///tmp/x.sock', { path: '/tmp/x.sock' }],
    ['unix://u:p@localhost/tmp/x.sock?db=3', { path: '/tmp/x.sock', username: 'u', password: 'p', db: 3 }],
    ['/tmp/x.sock', { path: '/tmp/x.sock' }],
    ['/tmp/x.sock?db=2', { path: '/tmp/x.sock', db: 2 }],
  ])('is read: %s', (url, expected) => {
    expect(read(url)).toEqual(expected);
    expect(read({ url })).toEqual(expected);
  });

  it('may be a URL object', () => expect(read(new URL('redis://h:1'))).toEqual({ host: 'h', port: 1 }));

  it('wins over options beside it, as with ioredis', () => {
    expect(read({ url: 'redis://h:1', host: 'other', db: 4 })).toEqual({ host: 'h', port: 1, db: 4 });
  });

  it('says that there is TLS, and the option beside it how', () => {
    const tls = { servername: 's' };
    expect(read({ url: 'rediss://h', tls })).toEqual({ host: 'h', tls });
    expect(read({ url: 'redis://h', tls })).toEqual({ host: 'h', tls });
  });

  it('that is none is refused without repeating it', () => {
    expect(() => read('redis://user:hunter2@:port')).toThrow(/^connection is not a valid URL$/);
  });

  it('of another scheme is not supported', () => {
    expect(() => read('https://h')).toThrow(NotSupportedError);
  });
});

describe.each(drivers)('an instance of $driver', ({ Redis }) => {
  it('lends its options', () => {
    const client = new Redis({
      host: 'h',
      port: 1,
      db: 2,
      password: 'p',
      lazyConnect: true,
      maxRetriesPerRequest: null,
    });
    expect(read(client)).toEqual({ host: 'h', port: 1, db: 2, password: 'p', connectTimeout: 10_000 });
    expect(read(client, 'blocking')).toMatchObject({ host: 'h' });
    client.disconnect();
  });

  it('with maxRetriesPerRequest is refused where the connection blocks', () => {
    const client = new Redis({ lazyConnect: true });
    expect(() => read(client, 'blocking')).toThrow('BullMQ: Your redis options maxRetriesPerRequest must be null.');
    client.disconnect();
  });

  // other-drivers: a wanted difference (docs/differences.md)
  it('of another kind is not supported', () => {
    expect(() => read({ connect: () => {}, duplicate: () => {}, options: {} })).toThrow(NotSupportedError);
    expect(() => read({ connect: () => {}, duplicate: () => {}, isCluster: true })).toThrow(NotSupportedError);
  });
});

describe('sentinels', () => {
  const sentinels = [{ host: 's', port: 1 }, { host: 't' }, {}];
  const nodes = [
    { host: 's', port: 1 },
    { host: 't', port: 26_379 },
    { host: '127.0.0.1', port: 26_379 },
  ];
  const none = { natFrom: [], natTo: [] };

  it.each(drivers)('are whom the engine asks, also those of a client of $driver', ({ Redis }) => {
    const discovery = { nodes, ...none, sentinel: { name: 'm', onlyThese: false } };
    expect(read({ sentinels, name: 'm', password: 'p' })).toEqual({ password: 'p', discovery });
    const client = new Redis({ sentinels, name: 'm', lazyConnect: true });
    expect(read(client).discovery).toEqual(discovery);
    client.disconnect();
  });

  it('have a login of their own, and the server has TLS when it is asked for twice, as with ioredis', () => {
    const login = { sentinelUsername: 'u', sentinelPassword: 'p', sentinelTLS: { servername: 'x' } };
    const options = { sentinels, name: 'm', ...login, updateSentinels: false, tls: { servername: 'y' } };
    const sentinel = { name: 'm', username: 'u', password: 'p', tls: { servername: 'x' }, onlyThese: true };
    expect(read(options)).toEqual({ discovery: { nodes, ...none, sentinel } });
    expect(read({ ...options, enableTLSForSentinelMode: true }).tls).toEqual({ servername: 'y' });
  });

  it('may tell addresses that are others from here', () => {
    const natMap = { '10.0.0.1:6379': { host: 'outside', port: 7 } };
    const { discovery } = read({ sentinels, name: 'm', natMap });
    expect(discovery).toMatchObject({
      natFrom: [{ host: '10.0.0.1', port: 6379 }],
      natTo: [{ host: 'outside', port: 7 }],
    });
  });

  it.each<[object, string]>([
    [{ sentinels: [], name: 'm' }, 'Requires at least one sentinel to connect to.'],
    [{ sentinels }, 'Requires the name of master.'],
    [{ sentinels: [{ port: 0 }], name: 'm' }, 'the port of a node must be an integer from 1 to 65535'],
    [{ sentinels, name: 'm', role: 'slave' }, 'a replica as connection.role'],
    [{ sentinels, name: 'm', natMap: () => null }, 'a function as connection.natMap'],
  ])('are refused with the reason: %j', (connection, message) => {
    expect(() => read(connection)).toThrow(message);
  });
});

describe('a cluster', () => {
  const nodes = [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
    { host: '127.0.0.1', port: 3 },
    { host: 'd', port: 6379 },
  ];
  const discovery = { nodes, natFrom: [], natTo: [] };

  it.each(drivers)('is read from an instance of $driver', ({ Cluster }) => {
    const given = [{ host: 'a', port: 1 }, 'redis://b:2', 3, { host: 'd' }];
    const options = { redisOptions: { password: 'p', tls: {} }, dnsLookup: () => {}, lazyConnect: true };
    const client = new Cluster(given, options);
    expect(read(client)).toMatchObject({ discovery, password: 'p', tls: {} });
    expect(readConnection(client, 'commands').retryStrategy).toBe(client.options.clusterRetryStrategy);
    client.disconnect();
  });

  it('may be given as options, with what its connections need beside the nodes or below redisOptions', () => {
    expect(read({ nodes, username: 'u', redisOptions: { password: 'p' } })).toEqual({
      username: 'u',
      password: 'p',
      host: 'a',
      port: 1,
      discovery,
    });
    expect(read({ nodes: ['redis://u:p@a:1', 'b:2', '3', 'd'] })).toMatchObject({
      username: 'u',
      password: 'p',
      discovery,
    });
  });

  it.each(drivers)('needs a node, and options that are understood: $driver', ({ Cluster }) => {
    expect(() => read({ nodes: [] })).toThrow('connection.nodes names no node');
    expect(() => read({ redisOptions: {} })).toThrow('connection.nodes names no node');
    expect(() => read({ nodes, redisOptions: { commandTimeout: 1 } })).toThrow(
      new NotSupportedError('the connection option "commandTimeout"'),
    );
    const client = new Cluster(['a'], { redisOptions: { maxRetriesPerRequest: 3 }, lazyConnect: true });
    expect(() => read(client, 'blocking')).toThrow('BullMQ: Your redis options maxRetriesPerRequest must be null.');
    client.disconnect();
  });
});

describe('tls', () => {
  it('passes certificates on as text', () => {
    const tls = {
      ca: [Buffer.from('A'), 'B'],
      cert: 'C',
      key: Buffer.from('K'),
      rejectUnauthorized: false,
      servername: 's',
    };
    const rest = { rejectUnauthorized: false, servername: 's' };
    expect(read({ tls }).tls).toEqual({ ca: 'A\nB', cert: 'C', key: 'K', ...rest });
  });

  it.each([
    ['RedisCloudFixed', 'a named profile as connection.tls'],
    [{ pfx: Buffer.from('x') }, 'the connection option "tls.pfx"'],
    [{ ca: 5 }, 'a value that is neither text nor Buffer as connection.tls.ca'],
  ])('names what it cannot map: %j', (tls, feature) => {
    expect(() => read({ tls })).toThrow(new NotSupportedError(feature).message);
  });
});

describe('options that are shown', () => {
  it('have an object as connection, also where that was a URL as text', () => {
    const given = { connection: 'redis://u:p@h:1/2', prefix: 'p' };
    const shown = optionsShown(given);
    expect(shown).toEqual({ connection: { url: 'redis://u:p@h:1/2' }, prefix: 'p' });
    expect(read(shown.connection)).toEqual(read(given.connection));
    expect(given.connection).toBe('redis://u:p@h:1/2');
  });

  it('are a copy, whose connection is the one given', () => {
    const given = { connection: { host: 'h' } };
    const shown = optionsShown(given);
    expect([shown === given, shown.connection === given.connection]).toEqual([false, true]);
  });
});
