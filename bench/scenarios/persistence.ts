/**
 * What a server costs that keeps its data on disk: without, with an append-only file that is synced every second, and with one that is synced at each command. Jobs are
 * added in bulks of 50 and processed at concurrency 100. Only on a server that the bench has started: it changes the server's settings.
 */
import { throughputMetrics } from '../measure.js';
import { bulkOf } from './scenario.js';
import type { Scenario } from './scenario.js';

const CHUNK = 50;

type Sync = 'none' | 'everysec' | 'always';

function persistenceScenario(sync: Sync): Scenario {
  return {
    name: `persistence-${sync}`,
    title: sync === 'none' ? 'bulks of 50 and a worker, nothing on disk' : `the same, appendfsync ${sync}`,
    metrics: throughputMetrics,
    size: { kind: 'calibrated', step: CHUNK, firstProbe: 500 },
    isLong: true,
    needsOwnServer: true,
    async run(stage, jobs) {
      await stage.keepOnDisk(sync);
      const queue = await stage.openQueue({ removeOnComplete: true });
      const completions = stage.tally(jobs);
      const worker = await stage.openWorker({
        processor: async () => undefined,
        concurrency: 100,
        onCompleted: completions.add,
      });
      const watch = stage.stopwatch();
      watch.start();
      stage.run(worker);
      for (let from = 0; from < jobs; from += CHUNK) await queue.addBulk(bulkOf(from, CHUNK));
      await completions.done;
      watch.stop();
      await stage.expectCounts(queue, {});
      return watch.sample(jobs);
    },
  };
}

export const persistenceScenarios: readonly Scenario[] = (['none', 'everysec', 'always'] as const).map(
  persistenceScenario,
);
