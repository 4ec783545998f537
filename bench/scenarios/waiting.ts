/**
 * Handlers that take time, as those of most programs do: jobs end a few at a time, however many run at once, so what one end costs counts
 * more than what a batch does. The rate is that of the handlers, on both sides; what is compared is the CPU that Redis and Node spend on a job.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Metric } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

const METRICS: readonly Metric[] = ['redisCpuMicros', 'nodeCpuMicros'];

interface Handlers {
  readonly ms: number;
  readonly concurrency: number;
  /** What they return. */
  readonly kilobytes?: number;
  /** Of all handlers the part that takes so many milliseconds instead. */
  readonly slow?: { readonly part: number; readonly ms: number };
  readonly isLong?: boolean;
}

function waitingScenario({ ms, concurrency, kilobytes = 0, slow, isLong = kilobytes > 0 }: Handlers): Scenario {
  const result = kilobytes > 0 ? 'r'.repeat(kilobytes * 1024) : undefined;
  const mean = slow ? ms * (1 - slow.part) + slow.ms * slow.part : ms;
  const jobs = (seconds: number) => Math.max(Math.round(((1_000 / mean) * concurrency * seconds) / 10) * 10, 50);
  const processor = async () => {
    const most = slow && Math.random() < slow.part ? slow.ms : ms;
    // they do not all end in one tick, as jobs that came at different times do not
    await pause(most * (0.5 + Math.random()));
    return result;
  };
  const name = `waiting-${ms}-${concurrency}${kilobytes > 0 ? `-${kilobytes}kb` : ''}${slow ? '-slow' : ''}`;
  const gives = kilobytes > 0 ? `, results of ${kilobytes} KiB` : '';
  const share = slow ? `, ${slow.part * 100} % of them of ${slow.ms} ms` : '';
  return {
    name,
    title: `handlers of ${ms} ms${share}, concurrency ${concurrency}${gives}`,
    metrics: METRICS,
    isLong,
    size: { kind: 'fixed', full: jobs(2), quick: jobs(0.5) },
    run: (stage, count) => processAll(stage, count, { concurrency, retention: { removeOnComplete: true }, processor }),
  };
}

const isLong = true;

export const waitingScenarios: readonly Scenario[] = [
  waitingScenario({ ms: 5, concurrency: 1 }),
  waitingScenario({ ms: 5, concurrency: 20, isLong }),
  waitingScenario({ ms: 5, concurrency: 50, isLong }),
  waitingScenario({ ms: 5, concurrency: 100, isLong }),
  waitingScenario({ ms: 20, concurrency: 1, isLong }),
  waitingScenario({ ms: 20, concurrency: 20 }),
  waitingScenario({ ms: 20, concurrency: 50 }),
  waitingScenario({ ms: 20, concurrency: 100, isLong }),
  waitingScenario({ ms: 100, concurrency: 1, isLong }),
  waitingScenario({ ms: 100, concurrency: 20, isLong }),
  waitingScenario({ ms: 100, concurrency: 50, isLong }),
  waitingScenario({ ms: 100, concurrency: 100 }),
  waitingScenario({ ms: 5, concurrency: 20, slow: { part: 0.02, ms: 500 }, isLong }),
  waitingScenario({ ms: 20, concurrency: 50, kilobytes: 1 }),
  waitingScenario({ ms: 20, concurrency: 50, kilobytes: 10 }),
  waitingScenario({ ms: 20, concurrency: 50, kilobytes: 100 }),
];
