import type { BulkEntry, JobData, JobSettings, QueueLike } from '../adapters/library.js';
import type { Metric, Sample } from '../measure.js';
import type { Regime } from '../regimes.js';
import type { Stage } from '../stage.js';

/** One workload, written once against the API that both libraries share. */
export interface Scenario {
  /** For `--only`, and the key of its target. */
  readonly name: string;
  /** Its row in the report. */
  readonly title: string;
  readonly metrics: readonly Metric[];
  readonly size: Size;
  /** A quick run and the gate leave it out, unless it is named. */
  readonly isLong?: boolean;
  /** The gate has it all the same. */
  readonly isGated?: boolean;
  /** How the server is reached: plainly unless told. */
  readonly regime?: Regime;
  /** BullMQ is run as it comes: the other ways to run it make no difference to what is measured. */
  readonly isOfPlainBase?: boolean;
  /** Seconds that a short run of it waits, for handlers and for processes that start: a quick run in which it is named plans with them. */
  readonly waits?: number;
  /** What is counted is the same each time, or takes minutes: so many pairs are enough. */
  readonly mostPairs?: number;
  /** It takes longer than other scenarios may. */
  readonly timeLimitMs?: number;
  /** It changes settings of the server, which the bench may do to one that was started for it only. */
  readonly needsOwnServer?: boolean;
  /** Opens what it needs on the stage, does `jobs` jobs, proves by the counts in Redis that they were done. */
  run(stage: Stage, jobs: number): Promise<Sample>;
}

/**
 * How many jobs a run has. Calibrated: for each side as many, in whole steps, as last for the period of the mode,
 * because a count that suits one library is over in milliseconds, or lasts for minutes, with the other. Fixed: the
 * same on both sides, for scenarios whose result is not a rate.
 */
export type Size =
  | {
      readonly kind: 'calibrated';
      readonly step: number;
      readonly firstProbe: number;
      /** Where jobs are large: what the server is to hold. */
      readonly most?: number;
    }
  | { readonly kind: 'fixed'; readonly full: number; readonly quick: number };

/** Jobs an `addBulk` call adds where a scenario needs a filled queue and the filling is not what it measures. */
const FILL_CHUNK = 1_000;

/** The smallest payload that still tells jobs apart. */
export function tinyPayload(i: number): JobData {
  return { i };
}

/** Ten objects of ten short strings each, about 1.5 KB as JSON. Sixteen of them, so that no two jobs in a row are equal. */
const nestedPayloads: readonly JobData[] = Array.from({ length: 16 }, (_, version) => {
  const branch = (i: number) =>
    Object.fromEntries(Array.from({ length: 10 }, (_, k) => [`key${k}`, `value ${version}-${i}-${k}`]));
  return Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`branch${i}`, branch(i)]));
});

export function nestedPayload(i: number): JobData {
  return nestedPayloads[i % nestedPayloads.length] ?? {};
}

/** What the jobs of a queue are, by their number. */
export interface Contents {
  readonly optionsOf?: (i: number) => JobSettings;
  /** {@link tinyPayload} unless told. */
  readonly payloadOf?: (i: number) => JobData;
}

/** Adds `jobs` jobs, in order, in chunks of the same size on both sides. */
export async function fill(queue: QueueLike, jobs: number, contents?: Contents): Promise<void> {
  for (let from = 0; from < jobs; from += FILL_CHUNK) {
    await queue.addBulk(bulkOf(from, Math.min(FILL_CHUNK, jobs - from), contents));
  }
}

/** Adds jobs and has a worker run all of them, where that is not what a scenario measures. They stay, completed. */
export async function complete(stage: Stage, queue: QueueLike, jobs: number, contents?: Contents): Promise<void> {
  await fill(queue, jobs, contents);
  const completions = stage.tally(jobs);
  const worker = await stage.openWorker({
    processor: async () => undefined,
    concurrency: 100,
    onCompleted: completions.add,
  });
  stage.run(worker);
  await completions.done;
}

export function bulkOf(from: number, count: number, contents: Contents = {}): BulkEntry[] {
  const { optionsOf, payloadOf = tinyPayload } = contents;
  return Array.from({ length: count }, (_, k) => {
    const entry = { name: 'job', data: payloadOf(from + k) };
    return optionsOf ? { ...entry, opts: optionsOf(from + k) } : entry;
  });
}
