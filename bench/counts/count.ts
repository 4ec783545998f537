/** Runs a scenario and counts. */
import { randomBytes } from 'node:crypto';
import type { Server } from '../server.js';
import type { Proxy } from '../proxy/proxy.js';
import { crossings } from './boundary.js';
import { Ground } from './ground.js';
import type { Classes } from './ground.js';
import type { CountedScenario } from './scenarios.js';

/** Figures by name, such as `round trips` or `server: XADD`. They are of a whole run, not of a job. */
export type Counts = Readonly<Record<string, number>>;

export interface Counter {
  readonly classes: Classes;
  readonly proxy: Proxy;
  /** To the same server, by TLS. */
  readonly secureProxy: Proxy;
  readonly server: Server;
}

/** Bytes of Redis memory depend on its version, the others do not. */
export const MEMORY = 'memory bytes';
/** Times and ids are in what is sent, whose lengths differ from run to run. */
export const BYTES = ['bytes to Redis', 'bytes from Redis'] as const;

export function isBytes(figure: string): boolean {
  return BYTES.some((name) => name === figure);
}

export async function count({ classes, proxy, server }: Counter, scenario: CountedScenario): Promise<Counts> {
  const queueName = `counts-${scenario.name}-${randomBytes(4).toString('hex')}`;
  const ground = new Ground(classes, proxy, queueName);
  try {
    const body = await scenario.prepare(ground);
    await body();
    await ground.settled();

    const before = { commands: await server.commandCalls(), crossings: crossings() };
    await proxy.traffic(true);
    await body();
    await ground.settled();
    const passed = crossings();
    const traffic = await proxy.traffic();
    const commands = difference(await server.commandCalls(), before.commands);
    const memory = await server.keyBytes(queueName);

    return {
      'round trips': traffic.roundTrips,
      [BYTES[0]]: traffic.bytesIn,
      [BYTES[1]]: traffic.bytesOut,
      'calls into the engine': passed.toEngine - before.crossings.toEngine,
      'calls into JavaScript': passed.toJavaScript - before.crossings.toJavaScript,
      [MEMORY]: memory,
      ...named('sent', new Map(Object.entries(traffic.commands))),
      ...named('carried out', commands),
    };
  } finally {
    await ground.close();
    await server.sweep(queueName);
  }
}

function named(what: string, calls: ReadonlyMap<string, number>): Counts {
  const sorted = [...calls].sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, times]) => [`${what}: ${name}`, times]));
}

function difference(after: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): Map<string, number> {
  const grown = [...after].map(([name, calls]) => [name, calls - (before.get(name) ?? 0)] as const);
  return new Map(grown.filter(([, calls]) => calls > 0));
}
