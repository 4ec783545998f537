// Scenarios over TLS, behind Sentinel and in a Cluster are those of one plain server, on servers that the bench starts while they last.
import { randomBytes } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadBullmq, loadTunedBullmq } from '../../bench/adapters/bullmq.js';
import { loadChasquimq } from '../../bench/adapters/chasquimq.js';
import { readArguments, scenariosOf } from '../../bench/arguments.js';
import { readGateArguments } from '../../bench/gate/arguments.js';
import { fullMode, runOnce } from '../../bench/pairs.js';
import type { Bench } from '../../bench/pairs.js';
import { ownRegimes, Servers } from '../../bench/regimes.js';
import type { OwnRegime } from '../../bench/regimes.js';
import { runAll } from '../../bench/run.js';
import { scenarios } from '../../bench/scenarios/index.js';
import type { Scenario } from '../../bench/scenarios/scenario.js';
import { parseConnection, Server } from '../../bench/server.js';

const named = (name: string) => scenarios.find((scenario) => scenario.name === name)!;
const namesOf = (chosen: readonly Scenario[]) => chosen.map(({ name }) => name);
const never = new Promise<never>(() => undefined);

describe('scenarios of a regime', () => {
  it.each(ownRegimes)('%s are named together, and are those without it', (regime) => {
    const chosen = readArguments(['--only', `${regime}-*`]).scenarios;
    expect(namesOf(chosen)).toEqual(
      expect.arrayContaining(
        ['trickle', 'latency', 'add-tiny', 'waiting-20-1', 'bandwidth-10kib', 'open-loop-50'].map(
          (name) => `${regime}-${name}`,
        ),
      ),
    );
    for (const scenario of chosen) {
      const plain = named(scenario.name.slice(regime.length + 1));
      expect(scenario).toMatchObject({ regime, metrics: plain.metrics, size: plain.size, run: plain.run });
      expect(scenario.title.endsWith(`: ${plain.title}`)).toBe(true);
      expect(plain.regime).toBeUndefined();
    }
    // its servers are started once
    const places = chosen.map((scenario) => scenarios.indexOf(scenario));
    expect(places).toEqual(places.map((_, i) => places[0] + i));
  });

  it('are in a whole run and in no quick one, and two of them in the gate', () => {
    const inRegime = (chosen: readonly Scenario[]) => namesOf(chosen.filter(({ regime }) => regime));
    expect(inRegime(scenariosOf(false)).length).toBeGreaterThan(24);
    expect(inRegime(scenariosOf(true))).toEqual([]);
    expect(inRegime(readGateArguments([]).scenarios)).toEqual(['tls-trickle', 'cluster-trickle']);
    expect(inRegime(readGateArguments(['--only', 'sentinel-trickle']).scenarios)).toEqual(['sentinel-trickle']);
  });
});

describe('the servers of a bench', () => {
  const mark = `bench-regimes-${randomBytes(4).toString('hex')}`;
  let servers: Servers;
  let plain: Server;
  beforeAll(async () => {
    plain = await Server.connect(parseConnection(process.env.REDIS_URL ?? ''));
    servers = new Servers(plain);
  });
  afterAll(() => servers.close());

  async function benchOf(regime: OwnRegime): Promise<Bench> {
    const ours = await loadChasquimq();
    return {
      libraries: { base: await loadBullmq(), challenger: ours },
      server: await servers.of(regime),
      serverOf: (wanted) => servers.of(wanted),
      mark,
      mode: { ...fullMode, quick: true },
      observer: { say: () => undefined, planned: () => undefined, step: () => undefined, done: () => undefined },
      ownsServer: true,
      interrupted: never,
    };
  }

  it('are the one that it was given, and that of the regime under way alone', async () => {
    expect(await servers.of()).toBe(plain);
    const tls = await servers.of('tls');
    expect(await servers.of('tls')).toBe(tls);
    expect(tls.connection).toMatchObject({ tls: { ca: expect.stringContaining('BEGIN CERTIFICATE') } });
    expect(await servers.of('plain')).toBe(plain);
    const gone = new Redis({ ...tls.connection, lazyConnect: true, retryStrategy: () => null });
    gone.on('error', () => undefined);
    await expect(gone.connect()).rejects.toThrow();
    expect(await servers.of('tls')).not.toBe(tls);
  });

  it.each(ownRegimes)('run a scenario of both libraries: %s', async (regime) => {
    const bench = await benchOf(regime);
    const scenario = named(`${regime}-trickle`);
    for (const base of [bench.libraries.base, await loadTunedBullmq(), bench.libraries.challenger]) {
      const { values } = await runOnce({ ...bench, libraries: { ...bench.libraries, base } }, scenario, 'base', 20, 1);
      expect(values.redisCpuMicros).toBeGreaterThan(0);
      // it is on this server that the jobs were, and their commands are counted
      expect(values.redisCommands).toBeGreaterThan(1);
      expect(values.roundTrips).toBeGreaterThan(1);
    }
    expect(await bench.server.keyBytes(mark)).toBe(0);
  });

  it.each(ownRegimes)('run workers that are processes of their own: %s', async (regime) => {
    const bench = await benchOf(regime);
    for (const side of ['base', 'challenger'] as const) {
      const { jobs } = await runOnce(bench, named('trickle-apart'), side, 10, 1);
      expect(jobs).toBe(10);
    }
  });

  it('count what a process of queues and workers holds, whichever server it is on', async () => {
    const scenario = named('cluster-crowd-21');
    const few = { ...scenario, run: named('crowd-1').run };
    const bench = await benchOf('cluster');
    for (const side of ['base', 'challenger'] as const) {
      const { values } = await runOnce(bench, few, side, 100, 1);
      expect(values.connections).toBeGreaterThanOrEqual(1);
      expect(values.processMegabytes).toBeGreaterThan(20);
      expect(values.idleRequestsMinute).toBeGreaterThanOrEqual(0);
      expect(values.idleCommandsMinute).toBeGreaterThanOrEqual(0);
    }
  });

  it('add up what the masters of a Cluster do and hold', async () => {
    const server = await servers.of('cluster');
    const client = new Cluster(server.connection.nodes ?? []);
    expect(server.masters).toBe(3);
    const keys = Array.from({ length: 30 }, (_, i) => `${mark}-${i}`);
    const before = (await server.commandCalls()).get('LPUSH') ?? 0;
    await Promise.all(keys.map((key) => client.lpush(key, 'x')));
    expect(((await server.commandCalls()).get('LPUSH') ?? 0) - before).toBe(keys.length);
    const sizes = await Promise.all(client.nodes('master').map((node) => node.dbsize()));
    expect(sizes.filter((size) => size > 0)).toHaveLength(3);
    expect(await server.keyBytes(mark)).toBeGreaterThan(30 * 50);
    await server.sweep(mark);
    expect(await server.keyBytes(mark)).toBe(0);
    client.disconnect();
  });

  it('that do not start are the fault of neither side', async () => {
    const bench = { ...(await benchOf('tls')), serverOf: async () => Promise.reject(new Error('no openssl')) };
    const [result] = await runAll(bench, [named('tls-trickle')]);
    expect(result).toMatchObject({
      pairs: [],
      faults: [{ side: undefined, message: 'there is no server for it: no openssl' }],
    });
  });
});
