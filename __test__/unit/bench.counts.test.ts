// The counts of the bench: commands are read whatever pieces they come in, and only what is worse fails.
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { readArguments } from '../../bench/counts/arguments.js';
import { compare, complaintAbout } from '../../bench/counts/baseline.js';
import type { Counted } from '../../bench/counts/baseline.js';
import { MEMORY } from '../../bench/counts/count.js';
import type { Counts } from '../../bench/counts/count.js';
import { leastOf, leastOfTwo, mostCommon } from '../../bench/counts/rounds.js';
import { UsageError } from '../../bench/ending.js';
import { Proxy } from '../../bench/proxy/proxy.js';
import { RequestReader } from '../../bench/proxy/requests.js';
import { parseConnection } from '../../bench/server.js';
import { Authority } from '../support/tls.js';

const counted = (counts: Counts, server = 'Redis 7.0.15'): Counted => ({ server, counts: { add: counts } });

describe('commands on their way', () => {
  const bytes = Buffer.from('*3\r\n$7\r\nevalsha\r\n$4\r\n*1\r\n\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n');

  it.each([1, 2, 3, 7, 1_000])('are read from pieces of %i bytes', (size) => {
    const names: string[] = [];
    const reader = new RequestReader((name) => names.push(name));
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    expect(names).toEqual(['EVALSHA', 'PING']);
  });

  it.each(['plain', 'by TLS'])('are counted by a proxy that clients reach %s', async (way) => {
    const authority = new Authority();
    const secure = { certificate: authority.sign('IP:127.0.0.1'), ca: authority.ca };
    const server = parseConnection(process.env.REDIS_URL ?? '');
    const proxy = await Proxy.open(server, 0, way === 'plain' ? undefined : secure);
    expect(proxy.connection.tls).toEqual(way === 'plain' ? undefined : { ca: authority.ca });
    const client = new Redis(proxy.connection);
    await client.ping();
    await proxy.traffic(true);
    // one after the other: of TLS, each may come in a piece of its own
    await client.echo('one');
    await client.echo('other');
    await client.ping();
    expect(await proxy.traffic()).toMatchObject({ roundTrips: 3, commands: { ECHO: 2, PING: 1 } });
    client.disconnect();
    await proxy.close();
    await authority.close();
  });

  it('are nothing else', () => {
    expect(() => new RequestReader(() => undefined).push(Buffer.from('PING\r\n'))).toThrow('no command');
  });
});

describe('a comparison', () => {
  it('finds one command more', () => {
    const { worse, better } = compare(counted({ 'sent: GET': 10 }), counted({ 'sent: GET': 11 }));
    expect(worse).toEqual([{ scenario: 'add', figure: 'sent: GET', was: 10, is: 11 }]);
    expect(better).toEqual([]);
  });

  it('finds a command that was not there, and tells of one that is gone', () => {
    const { worse, better } = compare(counted({ 'sent: GET': 10 }), counted({ 'sent: MGET': 1 }));
    expect(worse.map(({ figure }) => figure)).toEqual(['sent: MGET']);
    expect(better.map(({ figure }) => figure)).toEqual(['sent: GET']);
  });

  it('allows bytes a little, and commands nothing', () => {
    const was = counted({ 'bytes to Redis': 10_000, 'round trips': 10_000 });
    const worse = (is: number) =>
      compare(was, counted({ 'bytes to Redis': is, 'round trips': is })).worse.map(({ figure }) => figure);
    expect(worse(10_020)).toEqual(['round trips']);
    expect(worse(10_030)).toEqual(['bytes to Redis', 'round trips']);
  });

  it('says what another server leaves out', () => {
    const [was, is] = [100, 200].map((bytes) => ({ [MEMORY]: bytes * 1_000, 'round trips': 1 }));
    const here = compare(counted(was), counted(is));
    expect([here.worse.map(({ figure }) => figure), here.notCompared]).toEqual([[MEMORY], []]);
    const there = compare(counted(was), counted(is, 'Redis 8.2.3'));
    expect([there.worse, there.notCompared]).toEqual([[], [expect.stringContaining('Redis 8.2.3')]]);
  });

  it('misses a scenario that is not counted any more', () => {
    const { worse } = compare(counted({ 'round trips': 1 }), { ...counted({}), counts: {} });
    expect(worse).toMatchObject([{ scenario: 'add', is: 0 }]);
  });
});

describe('several runs', () => {
  it('go on until they are enough, and the least counts', async () => {
    const runs = [{ trips: 3 }, { trips: 2, extra: 1 }, { trips: 1 }];
    const least = await leastOf({ name: 'x', run: async () => runs.shift() ?? {} }, ({ trips = 0 }) => trips <= 2);
    expect([least, runs.length]).toEqual([{ trips: 2 }, 1]);
  });

  it('agree, or are doubtful', () => {
    const { counts, doubtful } = mostCommon([{ a: 1, b: 1 }, { a: 1, b: 2 }, { a: 1 }, { a: 2, b: 1 }]);
    expect([counts, doubtful]).toEqual([{ a: 1, b: 1 }, ['b']]);
  });

  it('have a figure only if each of them has it', () => {
    expect(leastOfTwo({ a: 1, b: 2 }, { a: 3 })).toEqual({ a: 1 });
  });
});

describe('a baseline', () => {
  const baseline = (trips: number, reason: string) => ({ ...counted({ trips }), reason });

  it('that changes needs a reason of its own', () => {
    expect(complaintAbout(baseline(2, 'why'), baseline(1, 'why'))).toContain('reason');
    expect(complaintAbout(baseline(2, 'because'), baseline(1, 'why'))).toBeUndefined();
    expect(complaintAbout(baseline(1, 'why'), baseline(1, 'why'))).toBeUndefined();
    expect(complaintAbout(baseline(1, ''), undefined)).toContain('reason');
  });
});

describe('arguments', () => {
  it('are read', () => {
    expect(readArguments(['--only', 'add', '--json'])).toEqual({ only: 'add', json: true, reason: undefined });
  });

  it.each([[['--write', 'no']], [['--write', 'a long reason', '--only', 'add']], [['--what']], [['add']]])(
    '%j are refused',
    (argv) => expect(() => readArguments(argv)).toThrow(UsageError),
  );
});
