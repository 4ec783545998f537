/**
 * What a process costs by what it holds: so many queues, each with a worker, and one QueueEvents. Each object gets the connection options, or all of them share a client of
 * ioredis. They are opened in a process of its own, each queue adds a job, and its worker runs it. When all have come to rest, the connections that the server has more than before are counted, and the
 * memory of the process is read after a collection of garbage. Then, for a minute in a whole run and for ten seconds in a quick one, what reaches the server is counted, and told
 * by the minute: requests, which are reads from connections, and commands, those within scripts too. What sentinels send is measured before, and left out. The last table of a
 * report has the length of that time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Metric, Sample } from '../measure.js';
import type { Server } from '../server.js';
import type { Stage } from '../stage.js';
import type { Scenario } from './scenario.js';

const METRICS: readonly Metric[] = [
  'connections',
  'processMegabytes',
  'idleRequestsMinute',
  'idleCommandsMinute',
  'idleRedisMillis',
  'idleNodeMillis',
];
/** What is sent once at the start is over by then. */
const REST_MS = 3_000;
const POLL_MS = 100;
/** How long is looked at what sentinels send, who do it evenly. */
const OTHERS_MS = 10_000;
const NOBODY = { requests: 0, commands: 0 };
/** Thousands of connections are opened, by one process. */
const TIME_LIMIT_MS = 300_000;

function crowdScenario(queues: number, isShared: boolean): Scenario {
  const whole = queues === 1 ? 'a queue, its worker' : `${queues.toLocaleString('en-US')} queues, their workers`;
  return {
    name: `crowd-${queues}${isShared ? '-shared' : ''}`,
    title: `a process with ${whole} and a QueueEvents${isShared ? ', one shared client' : ''}`,
    metrics: METRICS,
    // milliseconds, not jobs
    size: { kind: 'fixed', full: 60_000, quick: 10_000 },
    isLong: true,
    isOfPlainBase: true,
    mostPairs: 1,
    timeLimitMs: TIME_LIMIT_MS,
    waits: REST_MS / 1e3 + 10,
    run: (stage, ms) => run(stage, ms, queues, isShared),
  };
}

async function run(stage: Stage, ms: number, queues: number, isShared: boolean): Promise<Sample> {
  const { server } = stage;
  const others = server.connection.sentinels ? await trafficIn(server, OTHERS_MS) : NOBODY;
  const before = await settledConnections(server);
  const crowd = await stage.openCrowd(queues, isShared);
  await sleep(REST_MS);
  const connections = (await server.connections()) - before;
  const { megabytes } = await crowd.account('collect');
  const cpu = async () => ({ node: (await crowd.account()).cpuMicros, redis: await server.cpuMicros() });
  const from = await cpu();
  const traffic = await trafficIn(server, ms);
  const to = await cpu();
  const { seconds } = traffic;
  return {
    jobs: ms,
    seconds,
    values: {
      connections,
      processMegabytes: megabytes,
      idleRequestsMinute: Math.max(traffic.requests - others.requests, 0),
      idleCommandsMinute: Math.max(traffic.commands - others.commands, 0),
      idleRedisMillis: (to.redis - from.redis) / 1e3 / seconds,
      idleNodeMillis: (to.node - from.node) / 1e3 / seconds,
    },
  };
}

interface PerMinute {
  readonly requests: number;
  readonly commands: number;
}

/** What reaches a server while so much time goes by, but for what is asked here. */
async function trafficIn(server: Server, ms: number): Promise<PerMinute & { readonly seconds: number }> {
  const begin = performance.now();
  const before = await server.work();
  await sleep(ms);
  const after = await server.work();
  const seconds = (performance.now() - begin) / 1e3;
  // of the readings, the end of the first and the beginning of the second
  const own = 2 * server.masters;
  return {
    seconds,
    requests: ((after.reads - before.reads - own) / seconds) * 60,
    commands: ((after.commands - before.commands) / seconds) * 60,
  };
}

/** Those of a process that has just ended may not all be gone yet. */
async function settledConnections(server: Server): Promise<number> {
  let last = NaN;
  for (;;) {
    const now = await server.connections();
    if (now === last) return now;
    last = now;
    await sleep(POLL_MS);
  }
}

export const crowdScenarios: readonly Scenario[] = [false, true].flatMap((isShared) =>
  [1, 21, 1_000].map((queues) => crowdScenario(queues, isShared)),
);
