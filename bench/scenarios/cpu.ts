/**
 * Handlers that take CPU: 50 us, as much as the queue itself, and 1 ms, many times that. The event loop that runs them also serves the connections: what
 * is compared is how much of its time is left to the handlers.
 */
import { performance } from 'node:perf_hooks';
import { throughputMetrics } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

function burn(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

function cpuScenario(micros: number, label: string): Scenario {
  return {
    name: `cpu-${micros}us`,
    title: `handlers that take ${label} of CPU, concurrency 20`,
    metrics: throughputMetrics,
    size: { kind: 'calibrated', step: 1, firstProbe: 300 },
    run: (stage, jobs) =>
      processAll(stage, jobs, {
        concurrency: 20,
        retention: { removeOnComplete: true },
        processor: async () => burn(micros / 1e3),
      }),
  };
}

export const cpuScenarios: readonly Scenario[] = [cpuScenario(50, '50 us'), cpuScenario(1_000, '1 ms')];
