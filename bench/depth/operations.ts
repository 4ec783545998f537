/** What is done to a queue in which many jobs wait. Each operation leaves about as many as there were. */
import type { JobLibrary, QueueLike, WorkerLike } from '../adapters/library.js';
import { bulkOf, tinyPayload } from '../scenarios/scenario.js';
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
  run(side: Side, turn: Turn, clock: Clock): Promise<number>;
}

export interface Turn {
  /** Counted from 0; the first warms up. */
  readonly round: number;
  readonly times: number;
}

/** Started and stopped by an operation that has something to prepare. */
export interface Clock {
  start(): void;
  stop(): void;
}

/** One after the other: each waits for its answer. `act` is given another number each time, in all rounds. */
function oneByOne(name: string, count: number, act: (side: Side, n: number) => Promise<unknown>): Operation {
  return {
    name,
    times: count,
    async run(side, { round, times }, clock) {
      clock.start();
      for (let i = 0; i < times; i += 1) await act(side, round * times + i);
      clock.stop();
      return times;
    },
  };
}

const added = (side: Side, job: { readonly id?: string }): void => {
  side.ids.last = Number(job.id);
};

/** An id in the middle of those that wait, another one each time. */
const middle = ({ ids }: Side, n: number): string => String(Math.floor((ids.first + ids.last) / 2) + n);

/** What a job that is not there costs says nothing of one that is. */
function gone({ library }: Side, id: string): Error {
  return new Error(`${library.name}: job ${id} was to be there, and is not`);
}

export const operations: readonly Operation[] = [
  oneByOne('add', 300, async (side, n) => added(side, await side.queue.add('job', tinyPayload(n)))),
  oneByOne('addBulk of 50', 60, async (side) => {
    const jobs = (await side.queue.addBulk(bulkOf(0, BULK))) as { readonly id?: string }[];
    added(side, jobs.at(-1) ?? {});
  }),
  oneByOne('add with a delay', 300, (side, n) => side.queue.add('later', tinyPayload(n), { delay: DELAY_MS })),
  oneByOne('getJob', 300, async (side, n) => {
    const id = middle(side, n);
    if (!(await side.queue.getJob(id))) throw gone(side, id);
  }),
  oneByOne('getJobs, 100 from the middle', 20, async (side) => {
    const from = Math.floor((side.ids.last - side.ids.first) / 2);
    const jobs = await side.queue.getJobs(['waiting'], from, from + PAGE - 1, true);
    if (jobs.length !== PAGE) throw new Error(`${side.library.name}: ${jobs.length} jobs from the middle, not ${PAGE}`);
  }),
  oneByOne('getJobCounts', 300, (side) => side.queue.getJobCounts()),
  oneByOne('remove', 100, async (side, n) => {
    const id = middle(side, n);
    if ((await side.queue.remove(id)) !== 1) throw gone(side, id);
  }),
  { name: 'fetch, run, complete', times: 2_000, run: processSome },
];

/** The worker stops in the midst of the queue: what it has begun it ends, and that is counted too. */
async function processSome(side: Side, { times }: Turn, clock: Clock): Promise<number> {
  const { library, queueName, connection } = side;
  const completed: (string | undefined)[] = [];
  let enough: () => void = () => undefined;
  const done = new Promise<void>((resolve) => (enough = resolve));
  const worker: WorkerLike = new library.Worker(queueName, async () => undefined, {
    ...{ connection, concurrency: CONCURRENCY, autorun: false },
  });
  const failed = new Promise<never>((_, reject) => worker.on('error', reject));
  worker.on('completed', ({ id }) => {
    if (completed.push(id) === times) enough();
  });
  await worker.waitUntilReady();
  clock.start();
  const running = worker.run();
  await Promise.race([done, failed]);
  const counted = completed.length;
  clock.stop();
  await worker.close();
  await running;
  if (new Set(completed).size !== completed.length) throw new Error(`${library.name}: a job completed twice`);
  side.ids.first += completed.length;
  return counted;
}
