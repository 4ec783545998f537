/**
 * Jobs of 1,000 groups, on the consuming side as in worker.ts: one worker, concurrency 100, a handler that does nothing. BullMQ has no groups: it runs
 * the same jobs one behind the other, which is what users give up for turns.
 */
import { throughputMetrics } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

const GROUPS = 1_000;

const base = {
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: 1, firstProbe: 2_000 },
  isLong: true,
} as const;

const work = {
  concurrency: 100,
  retention: { removeOnComplete: true },
  processor: async () => undefined,
  optionsOf: (i: number) => ({ group: { id: `tenant ${i % GROUPS}` } }),
};

export const groupScenarios: readonly Scenario[] = [
  {
    ...base,
    name: 'groups-1000',
    title: 'worker, concurrency 100, removeOnComplete: 1,000 groups beside none',
    run: (stage, jobs) => processAll(stage, jobs, work),
  },
  {
    ...base,
    name: 'groups-1000-limits',
    title: 'the same, each group with a concurrency and a rate limit',
    // so high that they are looked at, and keep nobody waiting
    run: (stage, jobs) =>
      processAll(stage, jobs, { ...work, group: { concurrency: 50, limit: { max: 100_000, duration: 1_000 } } }),
  },
];
