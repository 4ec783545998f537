// The library of functions, as an administrator looks after it.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { OwnCluster } from '../support/own-cluster.js';
import { useOwnServer } from '../support/use-own-server.js';

describe('library', () => {
  const own = useOwnServer();
  beforeEach(() => own.redis.call('FUNCTION', 'FLUSH'));
  const place = () => `127.0.0.1:${own.server.port}`;
  const library = (...args: string[]) => cli(['library', ...args, '--url', `redis://${place()}`]);
  const names = async () =>
    (JSON.stringify(await own.redis.call('FUNCTION', 'LIST')).match(/"chasquimq_[0-9a-f]{10}"/g) ?? []).map((name) =>
      name.slice(1, -1),
    );

  it('is missing, is loaded, and is there', async () => {
    const missing = await library('check');
    const [, name = ''] =
      /: (chasquimq_[0-9a-f]{10}) is missing\. chasquimq library load brings it there\.\n$/.exec(missing.stdout) ?? [];
    expect(missing).toEqual({
      code: 1,
      stdout: `${place()}: ${name} is missing. chasquimq library load brings it there.\n`,
      stderr: '',
    });
    expect(await names()).toEqual([]);
    const loaded = { code: 0, stdout: `${place()}: ${name} is loaded.\n`, stderr: '' };
    for (const action of ['load', 'load', 'check']) expect(await library(action)).toEqual(loaded);
    expect(await names()).toEqual([name]);
  });

  it('tells programs the same', async () => {
    const told = async (action: string) => {
      const { code, stdout } = await library(action, '--json');
      return { code, ...(JSON.parse(stdout) as { library: string; servers: unknown[] }) };
    };
    const servers = (state: string) => [{ server: place(), state }];
    expect(await told('check')).toMatchObject({ code: 1, servers: servers('missing') });
    const { library: name, ...rest } = await told('load');
    expect(rest).toEqual({ code: 0, servers: servers('loaded') });
    expect(await names()).toEqual([name]);
    await own.redis.call(
      'FUNCTION',
      'LOAD',
      'REPLACE',
      `#!lua name=${name}\nredis.register_function('f', function() end)`,
    );
    expect(await told('check')).toMatchObject({ code: 1, servers: servers('different') });
    expect(await told('load')).toMatchObject({ code: 1, servers: servers('different') });
    await own.redis.acl('SETUSER', 'default', '-function|list');
    expect(await told('check')).toMatchObject({ code: 1, servers: servers('unknown') });
    await own.redis.acl('SETUSER', 'default', '+function|list');
  });

  it('is printed for those who load it by other means, with the end of its last line or without', async () => {
    const { code, stdout, stderr } = await cli(['library', 'print'], { env: { REDIS_URL: 'nonsense://' } });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^#!lua name=chasquimq_[0-9a-f]{10}\n.*\n$/s);
    for (const text of [stdout, stdout.trimEnd()]) {
      await own.redis.call('FUNCTION', 'FLUSH');
      await own.redis.call('FUNCTION', 'LOAD', text);
      expect((await library('check')).code).toBe(0);
    }
  });

  it('is not loaded by who may not', async () => {
    await own.redis.acl('SETUSER', 'few', 'reset', 'on', 'nopass', '+@all', '-function|load');
    const url = `redis://few:any@${place()}`;
    const { code, stderr } = await cli(['library', 'load', '--url', url]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^chasquimq: The server at .* cannot be used: NOPERM .*\n$/),
    ]);
    expect((await cli(['library', 'check', '--url', url])).code).toBe(1);
  });

  it.each([
    [[], 'Say what to do: chasquimq library check | load | print.'],
    [['lod'], 'There is no action lod. Did you mean load?'],
    [['check', '--replace'], '--replace belongs to load.'],
    [['print', '--json'], '--json does not go with print.'],
    [['check', 'mail'], '"mail" is one argument too many.'],
  ])('does not understand %j', async (args, message) => {
    expect(await cli(['library', ...args])).toEqual({
      code: 2,
      stdout: '',
      stderr: `chasquimq library: ${message}\nSee chasquimq library --help\n`,
    });
  });
});

describe('library in a cluster', () => {
  let cluster: OwnCluster;
  beforeAll(async () => {
    cluster = await OwnCluster.start();
  });
  afterAll(() => cluster.close());

  it('is loaded on each master', async () => {
    const url = cluster.startupNodes.map(({ host, port }) => `${host}:${port}`).join(',');
    const { code, stdout, stderr } = await cli(['library', 'load', '--json', '--cluster', '--url', url]);
    expect([code, stderr]).toEqual([0, '']);
    const { servers } = JSON.parse(stdout) as { servers: { server: string; state: string }[] };
    expect(new Set(servers.map(({ server }) => server)).size).toBe(3);
    expect(servers.map(({ state }) => state)).toEqual(['loaded', 'loaded', 'loaded']);
    expect((await cli(['library', 'check', '--cluster', '--url', url])).code).toBe(0);
  });
});
