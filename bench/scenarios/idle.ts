/**
 * What nothing costs: a hundred workers on an empty queue, as a program with many queues or processes has them over night. CPU and commands of a
 * second, after they have had one to come to rest.
 *
 * What the scenarios before it left is collected first, for either library: V8 collects it when the process is idle, and would else do so at the
 * cost of whichever library lets the process be idle.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Scenario } from './scenario.js';

const WORKERS = 100;
const REST_MS = 1_000;

export const idleScenario: Scenario = {
  name: 'idle',
  title: 'a hundred idle workers',
  metrics: ['idleNodeMillis', 'idleRedisMillis', 'idleCommands'],
  // milliseconds, not jobs
  size: { kind: 'fixed', full: 5_000, quick: 1_000 },
  isLong: true,
  async run(stage, ms) {
    const queue = await stage.openQueue();
    const crew = { processor: async () => undefined, concurrency: 1, onCompleted: () => undefined };
    for (const worker of await Promise.all(Array.from({ length: WORKERS }, () => stage.openWorker(crew)))) {
      stage.run(worker);
    }
    collectGarbage();
    await sleep(REST_MS);
    const watch = stage.stopwatch();
    const before = await stage.serverWork();
    watch.start();
    await sleep(ms);
    watch.stop();
    const { seconds, values } = await watch.sample(1);
    const after = await stage.serverWork();
    await stage.expectCounts(queue, {});
    return {
      jobs: ms,
      seconds,
      values: {
        idleNodeMillis: (values.nodeCpuMicros ?? NaN) / 1e3 / seconds,
        idleRedisMillis: (values.redisCpuMicros ?? NaN) / 1e3 / seconds,
        idleCommands: (after.commands - before.commands) / seconds,
      },
    };
  },
};

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
}
