/**
 * QueueEvents beside a busy queue, as dashboards and waiting callers have them: one and ten listeners hear of every job that a worker completes. What is measured is the
 * worker, in the same process.
 */
import { throughputMetrics } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

function listenerScenario(listeners: number): Scenario {
  return {
    name: `listeners-${listeners}`,
    title: `worker, concurrency 100, beside ${listeners === 1 ? 'one listener' : `${listeners} listeners`}`,
    metrics: throughputMetrics,
    size: { kind: 'calibrated', step: 1, firstProbe: 1_000 },
    isLong: true,
    async run(stage, jobs) {
      let heard = 0;
      for (let i = 0; i < listeners; i += 1) {
        const events = await stage.openQueueEvents();
        events.on('completed', () => {
          heard += 1;
        });
      }
      const sample = await processAll(stage, jobs, {
        concurrency: 100,
        retention: { removeOnComplete: true },
        processor: async () => undefined,
      });
      if (heard === 0) throw new Error('no listener heard of a job');
      return sample;
    },
  };
}

export const listenerScenarios: readonly Scenario[] = [listenerScenario(1), listenerScenario(10)];
