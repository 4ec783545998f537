// How a command finds its server: the options, the environment, and what goes with them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readArguments } from '../../src/tools/cli/arguments.js';
import { readServer, SERVER_OPTIONS } from '../../src/tools/cli/server.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli } from '../support/cli.js';
import { OwnSentinels } from '../support/own-sentinels.js';
import { server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { Authority, TlsFront } from '../support/tls.js';

const read = (args: string[], env: Record<string, string> = {}) => {
  const { connection, shown, prefix } = readServer(readArguments(args, SERVER_OPTIONS), { env });
  const { connectTimeout, ...options } = connection;
  expect(connectTimeout).toBe(5_000);
  return { ...options, shown, prefix };
};

describe('where the server is', () => {
  it.each<[string, string[], Record<string, string>, object]>([
    ['nothing is said', [], {}, { host: '127.0.0.1', port: 6379, shown: '127.0.0.1:6379', prefix: 'bull' }],
    ['by the environment', [], { REDIS_URL: 'redis://a:1/2' }, { host: 'a', port: 1, db: 2, shown: 'a:1/2' }],
    [
      'by the option, which comes first',
      ['-u', 'redis://b'],
      { REDIS_URL: 'redis://a' },
      { host: 'b', shown: 'b:6379' },
    ],
    ['without a scheme', ['--url', 'b:7'], {}, { host: 'b', port: 7, shown: 'b:7' }],
    ['an IPv6 address', ['--url', 'redis://[::1]:7'], {}, { host: '::1', port: 7, shown: '[::1]:7' }],
    ['a socket', ['--url', '/run/redis.sock'], {}, { path: '/run/redis.sock', shown: '/run/redis.sock' }],
    ['user and password', ['--url', 'redis://me:p%40ss@b'], {}, { username: 'me', password: 'p@ss', shown: 'b:6379' }],
    [
      'the password of the environment',
      ['--url', 'b', '--user', 'me'],
      { REDIS_PASSWORD: 'x' },
      { username: 'me', password: 'x' },
    ],
    ['TLS by its scheme', ['--url', 'rediss://b'], {}, { host: 'b', tls: {} }],
    ['TLS by its option', ['--url', 'b', '--tls'], {}, { host: 'b', tls: {} }],
    [
      'a cluster',
      ['--url', 'a:1,b', '--cluster'],
      {},
      { nodes: [{ host: 'a', port: 1 }, { host: 'b' }], shown: 'a:1, b:6379' },
    ],
    ['sentinels', ['--url', 'a,b', '--sentinel', 'm'], {}, { sentinels: [{ host: 'a' }, { host: 'b' }], name: 'm' }],
    [
      'sentinels of a master whose database is named',
      ['--url', 'a:1/3,b', '--sentinel', 'm'],
      {},
      { sentinels: [{ host: 'a', port: 1 }, { host: 'b' }], db: 3, shown: 'a:1/3, b:6379/3' },
    ],
    ['a cluster, whose one database is named', ['--url', 'a:1/0', '--cluster'], {}, { shown: 'a:1' }],
    ['a prefix', ['-p', '{app}'], {}, { prefix: '{app}' }],
  ])('%s', (_, args, env, expected) => {
    expect(read(args, env)).toMatchObject(expected);
  });

  it.each([
    [['--url', 'a/1,b/2', '--sentinel', 'm'], '--url names several databases: the master has one of them.'],
    [['--url', 'a/0,b/2', '--sentinel', 'm'], '--url names several databases: the master has one of them.'],
    [['--url', 'a,b/2', '--cluster'], '--url names database 2: a cluster has only database 0.'],
  ])('refuses %j', (args, message) => {
    expect(() => read(args)).toThrow(message);
  });
});

describe('a server that is reached in another way', () => {
  const stage = useStage(chasquimq);
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-cli-'));
  let [authority, front, sentinels]: [Authority?, TlsFront?, OwnSentinels?] = [];
  beforeAll(async () => {
    authority = new Authority();
    writeFileSync(join(folder, 'ca.pem'), authority.ca);
    front = await new TlsFront(authority.sign('IP:127.0.0.1')).open();
    sentinels = await OwnSentinels.start();
  });
  afterAll(async () => {
    await front?.close();
    await authority?.close();
    await sentinels?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('by TLS, with an authority of its own', async () => {
    const queue = stage.queue();
    await queue.add('job', 1);
    const url = `rediss://127.0.0.1:${front?.port}/${server.db}`;
    const args = ['failed', queue.name, 'count', '--url', url];
    expect(await cli([...args, '--tls-ca', join(folder, 'ca.pem')])).toEqual({ code: 0, stdout: '0\n', stderr: '' });
    expect(await cli(args)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/certificate/i) });
  });

  it.each([[0], [3]])('by sentinels, in database %s', async (db) => {
    const { sentinels: nodes = [], name = '' } = sentinels?.connection ?? {};
    const queue = stage.queue({ connection: { ...sentinels?.connection, db } as never });
    await queue.add('job', 1);
    const url = nodes.map(({ host, port }) => `${host}:${port}/${db}`).join(',');
    const { code, stdout } = await cli(['inspect', '--json', '--sample', '0s', '--sentinel', name, '--url', url]);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ name: queue.name, counts: { waiting: 1 } }]]);
  });
});
