/**
 * Payloads of 100 bytes to 1 MiB, added in bulk and processed at concurrency 20: megabytes of data a second, there and back. Beside it, what
 * pipelined SET and GET of the same bytes reach on this server in the same run: `rawShare` is the part of it that the library reaches.
 */
import type { BulkEntry } from '../adapters/library.js';
import type { Scenario } from './scenario.js';
import { Tally } from './tally.js';

const MB = 1e6;
/** What a run moves, within these numbers of jobs. */
const [BYTES_OF_FULL, BYTES_OF_QUICK] = [16 * MB, 4 * MB];
const [LEAST_JOBS, MOST_JOBS] = [16, 5_000];
/** As a program would: not many megabytes in one call. */
const [BULK_BYTES, BULK_JOBS] = [MB, 50];

function bandwidthScenario(bytes: number, label: string): Scenario {
  const jobsOf = (total: number) => Math.min(Math.max(Math.round(total / bytes), LEAST_JOBS), MOST_JOBS);
  const chunk = Math.min(Math.max(Math.floor(BULK_BYTES / bytes), 1), BULK_JOBS);
  const text = 'x'.repeat(bytes - '{"text":""}'.length);
  return {
    name: `bandwidth-${label.replace(' ', '').toLowerCase()}`,
    title: `bandwidth: data of ${label}, there and back`,
    metrics: ['megabytesPerSecond', 'rawShare', 'nodeCpuMicros', 'redisCpuMicros'],
    size: { kind: 'fixed', full: jobsOf(BYTES_OF_FULL), quick: jobsOf(BYTES_OF_QUICK) },
    isLong: true,
    async run(stage, jobs) {
      const raw = await stage.rawSeconds(text, jobs);
      const queue = await stage.openQueue({ removeOnComplete: true });
      const completions = new Tally(jobs);
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
      return {
        jobs,
        seconds,
        values: { megabytesPerSecond: megabytes / seconds, rawShare: raw / seconds, nodeCpuMicros, redisCpuMicros },
      };
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
