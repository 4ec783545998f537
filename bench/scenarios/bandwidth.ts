/**
 * Payloads of 100 bytes to 1 MiB, added in bulk and processed at concurrency 20: megabytes of data a second, there and back.
 */
import type { BulkEntry } from '../adapters/library.js';
import type { Scenario } from './scenario.js';

const MB = 1e6;
/** What a first probe moves, and what the server has to hold at most. */
const [BYTES_OF_PROBE, MOST_BYTES] = [4 * MB, 256 * MB];
const [LEAST_PROBED, MOST_PROBED] = [16, 2_000];
/** As a program would: not many megabytes in one call. */
const [BULK_BYTES, BULK_JOBS] = [MB, 50];

function bandwidthScenario(bytes: number, label: string): Scenario {
  const firstProbe = Math.min(Math.max(Math.round(BYTES_OF_PROBE / bytes), LEAST_PROBED), MOST_PROBED);
  const chunk = Math.min(Math.max(Math.floor(BULK_BYTES / bytes), 1), BULK_JOBS);
  const text = 'x'.repeat(bytes - '{"text":""}'.length);
  return {
    name: `bandwidth-${label.replace(' ', '').toLowerCase()}`,
    title: `bandwidth: data of ${label}, there and back`,
    metrics: ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
    size: { kind: 'calibrated', step: 1, firstProbe, most: Math.floor(MOST_BYTES / bytes) },
    isLong: true,
    async run(stage, jobs) {
      const queue = await stage.openQueue({ removeOnComplete: true });
      const completions = stage.tally(jobs);
      const worker = await stage.openWorker({
        processor: async ({ data }) => {
          if ((data as { text: string }).text.length !== text.length)
            throw new Error('the data are not what was added');
        },
        concurrency: 20,
        onCompleted: completions.add,
      });
      const watch = stage.stopwatch();
      watch.start();
      for (let from = 0; from < jobs; from += chunk) {
        const count = Math.min(chunk, jobs - from);
        await queue.addBulk(Array.from({ length: count }, (): BulkEntry => ({ name: 'job', data: { text } })));
      }
      stage.run(worker);
      await completions.done;
      watch.stop();
      await stage.expectCounts(queue, {});

      const { seconds, values } = await watch.sample(jobs);
      const { nodeCpuMicros, redisCpuMicros } = values;
      const megabytes = (2 * jobs * bytes) / MB;
      return { jobs, seconds, values: { megabytesPerSecond: megabytes / seconds, nodeCpuMicros, redisCpuMicros } };
    },
  };
}

export const bandwidthScenarios: readonly Scenario[] = [
  bandwidthScenario(100, '100 B'),
  bandwidthScenario(1024, '1 KiB'),
  bandwidthScenario(10 * 1024, '10 KiB'),
  bandwidthScenario(64 * 1024, '64 KiB'),
  bandwidthScenario(200 * 1024, '200 KiB'),
  bandwidthScenario(1024 * 1024, '1 MiB'),
];
