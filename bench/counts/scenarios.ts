/**
 * The counted scenarios. Each is in such a form that what happens in it depends on no race: calls wait for each other, jobs come
 * when the worker waits for them, handlers that run at once end in one tick. What two fast sides do to each other is the bench's.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Queue, Worker } from '../../src/index.js';
import type { Ground } from './ground.js';

export interface CountedScenario {
  readonly name: string;
  /** What it stands for. */
  readonly about: string;
  /** In each run of `body`. */
  readonly jobs: number;
  /** Makes ready, and returns what is counted. It is run once before, so that what happens once is not in the counts. */
  prepare(ground: Ground): Promise<() => Promise<void>>;
}

const HOUR_MS = 3_600_000;
const LENDS_WITHIN_MS = 3;
const TEXT_10_KIB = 'x'.repeat(10 * 1024);

const tiny = (i: number) => ({ i });
const bulk = (jobs: number) => Array.from({ length: jobs }, (_, i) => ({ name: 'job', data: tiny(i) }));

async function times(count: number, body: (i: number) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i += 1) await body(i);
}

/** What `body` does with a queue of its own. */
function producing(
  name: string,
  about: string,
  jobs: number,
  body: (queue: Queue) => Promise<unknown>,
): CountedScenario {
  return {
    name,
    about,
    jobs,
    async prepare(ground) {
      const queue = await ground.openQueue();
      return async () => void (await body(queue));
    },
  };
}

/** One call after the other, each about one job. */
function oneByOne(
  name: string,
  about: string,
  jobs: number,
  call: (queue: Queue, i: number) => Promise<unknown>,
): CountedScenario {
  return producing(name, about, jobs, (queue) => times(jobs, (i) => call(queue, i)));
}

const adds: readonly CountedScenario[] = [
  oneByOne('add', 'one add after the other', 50, (queue, i) => queue.add('job', tiny(i))),
  oneByOne('add-10kb', 'one add of 10 KiB after the other', 20, (queue) => queue.add('job', { text: TEXT_10_KIB })),
  producing('add-in-flight', '100 adds of one tick', 100, (queue) =>
    Promise.all(Array.from({ length: 100 }, (_, i) => queue.add('job', tiny(i)))),
  ),
  producing('add-bulk-50', 'addBulk of 50, ten times', 500, (queue) => times(10, () => queue.addBulk(bulk(50)))),
  producing('add-bulk-1000', 'addBulk of 1000, twice', 2_000, (queue) => times(2, () => queue.addBulk(bulk(1_000)))),
  oneByOne('add-delayed', 'one delayed add after the other', 50, (queue, i) =>
    queue.add('job', tiny(i), { delay: HOUR_MS }),
  ),
  oneByOne('add-priority', 'one add with a priority after the other', 50, (queue, i) =>
    queue.add('job', tiny(i), { priority: 1 + (i % 10) }),
  ),
  oneByOne('schedulers', 'one upsert of a scheduler after the other', 20, (queue, i) =>
    queue.upsertJobScheduler(`s${i}`, { every: HOUR_MS }),
  ),
];

/** Its stack is stored, and must not have the paths of this machine in it. */
const failure = Object.assign(new Error('the first attempt fails'), {
  stack: 'Error: the first attempt fails\n    at handler (program.js:1:1)',
});

interface Trickle {
  readonly name: string;
  readonly about: string;
  readonly jobs: number;
  readonly options?: Parameters<Queue['add']>[2];
  readonly data?: object;
  readonly result?: string;
  /** The first attempt fails. */
  readonly fails?: boolean;
}

/** One job at a time for an idle worker, from its add to the moment in which the worker waits again. */
function trickle({ name, about, jobs, options, data, result, fails = false }: Trickle): CountedScenario {
  return {
    name,
    about,
    jobs,
    async prepare(ground) {
      const queue = await ground.openQueue();
      const processor = async ({ attemptsMade }: { attemptsMade: number }) => {
        if (fails && attemptsMade === 0) throw failure;
        return result;
      };
      await ground.startWorker({ processor });
      return () =>
        times(jobs, async (i) => {
          const completed = ground.ended('completed');
          await Promise.all([queue.add('job', data ?? tiny(i), options), completed]);
          await ground.settled();
        });
    },
  };
}

const trickles: readonly CountedScenario[] = [
  trickle({ name: 'trickle', about: 'one job at a time on an idle queue', jobs: 20 }),
  trickle({
    name: 'trickle-remove',
    about: 'the same, removed when completed',
    jobs: 20,
    options: { removeOnComplete: true },
  }),
  trickle({
    name: 'trickle-10kb',
    about: 'the same, with data and results of 10 KiB',
    jobs: 20,
    data: { text: TEXT_10_KIB },
    result: TEXT_10_KIB,
  }),
  trickle({ name: 'trickle-priority', about: 'the same, with a priority', jobs: 20, options: { priority: 5 } }),
  trickle({
    name: 'trickle-retry',
    about: 'the same, where the first attempt fails',
    jobs: 20,
    options: { attempts: 2 },
    fails: true,
  }),
];

/** As many jobs as the worker has slots. They all run at once, and end in one tick. */
function batches(name: string, about: string, removeOnComplete: boolean): CountedScenario {
  const [CONCURRENCY, ROUNDS] = [100, 5];
  return {
    name,
    about,
    jobs: CONCURRENCY * ROUNDS,
    async prepare(ground) {
      const queue = await ground.openQueue();
      let open: (() => void)[] = [];
      const processor = async () => {
        await new Promise<void>((resolve) => {
          if (open.push(resolve) < CONCURRENCY) return;
          for (const end of open) end();
          open = [];
        });
      };
      await ground.startWorker({ processor, concurrency: CONCURRENCY });
      const entries = bulk(CONCURRENCY).map((entry) => ({ ...entry, opts: { removeOnComplete } }));
      return () =>
        times(ROUNDS, async () => {
          const completed = ground.ended('completed', CONCURRENCY);
          await Promise.all([queue.addBulk(entries), completed]);
          await ground.settled();
        });
    },
  };
}

/** A few jobs that start one after the other, and end in one tick, while one slot is idle: their ends share a step. */
const few: CountedScenario = {
  name: 'few',
  about: 'four jobs that start one by one and end together',
  jobs: 20,
  async prepare(ground) {
    const [AT_ONCE, ROUNDS] = [4, 5];
    const queue = await ground.openQueue();
    const ends: (() => void)[] = [];
    const processor = () => new Promise<void>((resolve) => ends.push(resolve));
    await ground.startWorker({ processor, concurrency: AT_ONCE + 1 });
    return () =>
      times(ROUNDS, async () => {
        const completed = ground.ended('completed', AT_ONCE);
        await times(AT_ONCE, async (i) => {
          await queue.add('job', tiny(i));
          await ground.settled();
          // for its worker to lend the wait again, of which nothing tells
          await sleep(LENDS_WITHIN_MS);
        });
        for (const end of ends.splice(0)) end();
        await completed;
        await ground.settled();
      });
  },
};

function completeByHand(worker: Worker, jobs: number): Promise<void> {
  return times(jobs, async () => {
    const job = await worker.getNextJob('token');
    if (!job) throw new Error('there is no next job');
    await job.moveToCompleted('done', 'token', false);
  });
}

const byHand: CountedScenario = {
  name: 'by-hand',
  about: 'getNextJob and moveToCompleted, one job after the other',
  jobs: 20,
  async prepare(ground) {
    const queue = await ground.openQueue();
    const worker = await ground.openWorker({});
    return async () => {
      await queue.addBulk(bulk(20));
      await completeByHand(worker, 20);
    };
  },
};

/** By hand, because a worker that waits may be woken once or twice by a parent and its children. */
const flow: CountedScenario = {
  name: 'flow-by-hand',
  about: 'one parent with four children at a time, added, fetched and completed',
  jobs: 50,
  async prepare(ground) {
    const flows = await ground.openFlows();
    const worker = await ground.openWorker({});
    const { queueName } = ground;
    const children = Array.from({ length: 4 }, (_, i) => ({ name: 'child', queueName, data: tiny(i) }));
    return () =>
      times(10, async () => {
        await flows.add({ name: 'parent', queueName, data: {}, children });
        await completeByHand(worker, 5);
      });
  },
};

const addFlow: CountedScenario = {
  name: 'add-flow',
  about: 'one parent with ten children after the other, added',
  jobs: 110,
  async prepare(ground) {
    const flows = await ground.openFlows();
    const { queueName } = ground;
    const children = Array.from({ length: 10 }, (_, i) => ({ name: 'child', queueName, data: tiny(i) }));
    return () => times(10, () => flows.add({ name: 'parent', queueName, data: {}, children }));
  },
};

const reads: CountedScenario = {
  name: 'reads',
  about: 'getJob, getState, getJobs of 20 and getJobCounts, on 100 jobs that wait',
  jobs: 20,
  async prepare(ground) {
    const queue = await ground.openQueue();
    const [first] = await queue.addBulk(bulk(100));
    const id = String(first?.id);
    return () =>
      times(20, async () => {
        await queue.getJob(id);
        await queue.getJobState(id);
        await queue.getJobs(['waiting'], 0, 19, true);
        await queue.getJobCounts('waiting', 'active', 'completed', 'failed', 'delayed');
      });
  },
};

const dashboard: CountedScenario = {
  name: 'dashboard',
  about: 'getMetrics, exportPrometheusMetrics, getJobLogs and drain, one after the other',
  jobs: 10,
  async prepare(ground) {
    const queue = await ground.openQueue();
    const job = await queue.add('job', tiny(0));
    await job.log('one');
    return () =>
      times(10, async () => {
        await queue.getMetrics('completed');
        await queue.exportPrometheusMetrics();
        await queue.getJobLogs(String(job.id));
        await queue.drain(true);
      });
  },
};

const promote = oneByOne(
  'promote',
  'one delayed job after the other, added, promoted and removed',
  20,
  async (queue, i) => {
    const job = await queue.add('job', tiny(i), { delay: HOUR_MS });
    await job.promote();
    await job.remove();
  },
);

export const countedScenarios: readonly CountedScenario[] = [
  ...adds,
  addFlow,
  ...trickles,
  few,
  batches('batch-keep', 'batches of 100 that run at once, kept when completed', false),
  batches('batch-remove', 'the same, removed when completed', true),
  byHand,
  flow,
  promote,
  reads,
  dashboard,
];
