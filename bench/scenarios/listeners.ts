/**
 * QueueEvents beside a busy queue, as dashboards and waiting callers have them: one and ten listeners hear of every job that a worker completes. What is measured is the
 * worker, in the same process. When it is done, each listener has to have heard of each job, or comes to.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { throughputMetrics } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll, warmUpOf } from './worker.js';

const CONCURRENCY = 100;
const POLL_MS = 20;
/** A listener that has heard nothing for so long hears nothing any more. */
const SILENCE_MS = 2_000;

function listenerScenario(listeners: number): Scenario {
  return {
    name: `listeners-${listeners}`,
    title: `worker, concurrency ${CONCURRENCY}, beside ${listeners === 1 ? 'one listener' : `${listeners} listeners`}`,
    metrics: throughputMetrics,
    size: { kind: 'calibrated', step: 1, firstProbe: 1_000 },
    isLong: true,
    async run(stage, jobs) {
      const heard = Array.from({ length: listeners }, () => 0);
      for (const i of heard.keys()) {
        const events = await stage.openQueueEvents();
        events.on('completed', () => {
          heard[i] += 1;
        });
      }
      const sample = await processAll(stage, jobs, {
        concurrency: CONCURRENCY,
        retention: { removeOnComplete: true },
        processor: async () => undefined,
      });
      await expectHeard(heard, warmUpOf(jobs, CONCURRENCY) + jobs);
      return sample;
    },
  };
}

async function expectHeard(heard: readonly number[], jobs: number): Promise<void> {
  const isDone = () => heard.every((count) => count >= jobs);
  let last = '';
  for (let silentMs = 0; !isDone() && silentMs < SILENCE_MS; silentMs += POLL_MS) {
    if (heard.join() !== last) silentMs = 0;
    last = heard.join();
    await sleep(POLL_MS);
  }
  if (heard.some((count) => count !== jobs))
    throw new Error(`of ${jobs} jobs, the listeners heard of ${heard.join(', ')}`);
}

export const listenerScenarios: readonly Scenario[] = [listenerScenario(1), listenerScenario(10)];
