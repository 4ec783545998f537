/** What is done to a queue in which many jobs wait. Each operation leaves about as many as there were. */
import type { JobLibrary, QueueLike, WorkerLike } from '../adapters/library.js';
import { bulkOf, tinyPayload } from '../scenarios/scenario.js';
import { Tally } from '../scenarios/tally.js';
import type { ConnectionSettings } from '../server.js';

const BULK = 50;
const PAGE = 100;
const CONCURRENCY = 10;
const DELAY_MS = 86_400_000;

/** One library's queue. */
export interface Side {
  readonly library: JobLibrary;
  readonly queue: QueueLike;
  readonly queueName: string;
  readonly connection: ConnectionSettings;
  /** Ids of jobs that wait: the least and the greatest that were ever given. */
  readonly ids: { first: number; last: number };
}

export interface Operation {
  readonly name: string;
  /** How often it is done in one round. */
  readonly times: number;
  /** How often it was done while the clock ran. */
  run(side: Side, times: number, clock: Clock): Promise<number>;
}

/** Started and stopped by an operation that has something to prepare. */
export interface Clock {
  start(): void;
  stop(): void;
}

/** One after the other: each waits for its answer. */
function oneByOne(name: string, times: number, act: (side: Side, i: number) => Promise<unknown>): Operation {
  return {
    name,
    times,
    async run(side, count, clock) {
      clock.start();
      for (let i = 0; i < count; i += 1) await act(side, i);
      clock.stop();
      return count;
    },
  };
}

const added = (side: Side, job: { readonly id?: string }): void => {
  side.ids.last = Number(job.id);
};

/** An id in the middle of those that wait, another one each time. */
const middle = ({ ids }: Side, i: number): string => String(Math.floor((ids.first + ids.last) / 2) + i);

export const operations: readonly Operation[] = [
  oneByOne('add', 300, async (side, i) => added(side, await side.queue.add('job', tinyPayload(i)))),
  oneByOne('addBulk of 50', 60, async (side) => {
    const jobs = (await side.queue.addBulk(bulkOf(0, BULK))) as { readonly id?: string }[];
    added(side, jobs.at(-1) ?? {});
  }),
  oneByOne('add with a delay', 300, (side, i) => side.queue.add('later', tinyPayload(i), { delay: DELAY_MS })),
  oneByOne('getJob', 300, (side, i) => side.queue.getJob(middle(side, i))),
  oneByOne('getJobs, 100 from the middle', 20, (side) => {
    const from = Math.floor((side.ids.last - side.ids.first) / 2);
    return side.queue.getJobs(['waiting'], from, from + PAGE - 1, true);
  }),
  oneByOne('getJobCounts', 300, (side) => side.queue.getJobCounts()),
  oneByOne('remove', 100, (side, i) => side.queue.remove(middle(side, i))),
  { name: 'fetch, run, complete', times: 2_000, run: processSome },
];

/** The worker stops in the midst of the queue: what it has begun it ends, and that is counted too. */
async function processSome(side: Side, times: number, clock: Clock): Promise<number> {
  const { library, queueName, connection } = side;
  const tally = new Tally(times);
  const worker: WorkerLike = new library.Worker(queueName, async () => undefined, {
    ...{ connection, concurrency: CONCURRENCY, autorun: false },
  });
  const failed = new Promise<never>((_, reject) => worker.on('error', reject));
  worker.on('completed', tally.add);
  await worker.waitUntilReady();
  clock.start();
  const running = worker.run();
  await Promise.race([tally.done, failed]);
  const done = tally.count;
  clock.stop();
  await worker.close();
  await running;
  side.ids.first += tally.count;
  return done;
}
