/**
 * Handlers that take time, as those of most programs do: jobs end a few at a time, however many run at once, so what one end costs counts
 * more than what a batch does. The rate is that of the handlers, on both sides; what is compared is the CPU that Redis and Node spend on a job.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Metric } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

const METRICS: readonly Metric[] = ['redisCpuMicros', 'nodeCpuMicros'];

function waitingScenario(ms: number, concurrency: number, kilobytes = 0): Scenario {
  const result = kilobytes > 0 ? 'r'.repeat(kilobytes * 1024) : undefined;
  const perSecond = (1_000 / ms) * concurrency;
  const jobs = (seconds: number) => Math.max(Math.round((perSecond * seconds) / 10) * 10, 50);
  const processor = async () => {
    // they do not all end in one tick, as jobs that came at different times do not
    await pause(ms * (0.5 + Math.random()));
    return result;
  };
  const name = `waiting-${ms}-${concurrency}${kilobytes > 0 ? `-${kilobytes}kb` : ''}`;
  const gives = kilobytes > 0 ? `, results of ${kilobytes} KiB` : '';
  return {
    name,
    title: `handlers of ${ms} ms, concurrency ${concurrency}${gives}`,
    metrics: METRICS,
    isLong: kilobytes > 0,
    size: { kind: 'fixed', full: jobs(2), quick: jobs(0.5) },
    run: (stage, count) => processAll(stage, count, { concurrency, retention: { removeOnComplete: true }, processor }),
  };
}

export const waitingScenarios: readonly Scenario[] = [
  waitingScenario(5, 1),
  waitingScenario(20, 20),
  waitingScenario(20, 50),
  waitingScenario(100, 100),
  waitingScenario(20, 50, 1),
  waitingScenario(20, 50, 10),
  waitingScenario(20, 50, 100),
];
