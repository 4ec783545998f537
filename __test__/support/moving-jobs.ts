/** Jobs that are given back by their handler at their first start, in each way that there is, and workers of every kind that run them. */
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { DelayedError, RateLimitError, WaitingChildrenError, WaitingError } from '../../src/index.js';
import type { Job, JobsOptions, KeyLimit, Queue, Worker, WorkerOptions } from '../../src/index.js';
import { connection } from './redis.js';
import type { Stage } from './stage.js';
import { until } from './waiting.js';

const FILE = fileURLToPath(new URL('../life/programs/moving.cjs', import.meta.url));

/** Gives a job back, and then what its handler throws. */
type Move = (job: Job, token: string | undefined, worker: Worker, stage: Stage) => Promise<Error>;

/** Ways in which a handler gives its job back. */
export const moves: Record<string, Move> = {
  delayed: async (job, token) => (await job.moveToDelayed(Date.now() + 5, token), new DelayedError()),
  wait: async (job, token) => (await job.moveToWait(token), new WaitingError()),
  children: async (job, token, _, stage) => {
    const parent = { id: job.id!, queue: job.queueQualifiedName };
    await (stage.queue() as unknown as Queue).add('child', 0, { parent });
    if (await job.moveToWaitingChildren(token!)) return new WaitingChildrenError();
    // another worker was faster
    await job.moveToWait(token);
    return new WaitingError();
  },
  limit: async (_, __, worker) => (await worker.rateLimit(5), new RateLimitError()),
  group: async (job, _, worker) => (await worker.rateLimitGroup(job, 5), new RateLimitError()),
  failure: () => Promise.resolve(new Error('once more')),
};

const places: JobsOptions[] = [{ group: { id: 'g' } }, { group: { id: 's', order: 'strict' } }, {}, { priority: 2 }];

/** Jobs of each way, in each place, and for a file the connection as their data. */
export const movedJobs = (
  limitsOf: (name: string) => KeyLimit[],
): { name: string; data: object; opts: JobsOptions }[] =>
  Object.keys(moves).flatMap((name) =>
    (name === 'group' ? places.slice(0, 2) : places).map((place) => ({
      name,
      data: connection,
      opts: { ...place, attempts: 2, limits: limitsOf(name) },
    })),
  );

/** What the handler of this job throws, once it has given it back; undefined: it runs to its end. */
async function moved(job: Job, token: string | undefined, worker: Worker, stage: Stage): Promise<Error | undefined> {
  if (job.attemptsStarted > 1 || !Object.hasOwn(moves, job.name)) return undefined;
  return moves[job.name](job, token, worker, stage);
}

/** Takes jobs by itself until it is closed. */
async function work(worker: Worker, stage: Stage): Promise<void> {
  while (!worker.closing) {
    const job = await worker.getNextJob('token');
    const error = job && (await moved(job, 'token', worker, stage));
    if (job?.name === 'failure' && error) await job.moveToFailed(error, 'token');
    else if (error instanceof RateLimitError) await job.moveToWait('token');
    else if (!error) await job?.moveToCompleted(0, 'token', false);
  }
}

/** Workers that give such jobs back, of each kind. */
export const movers: Record<string, (stage: Stage, opts?: Partial<WorkerOptions>) => void> = {
  'in its process'(stage, opts) {
    const handler = async (job: Job, token?: string): Promise<void> => {
      const error = await moved(job, token, worker, stage);
      if (error) throw error;
    };
    const worker = stage.worker(handler as never, { ...RULES, ...opts }) as unknown as Worker;
  },
  'in a file': (stage, opts) => void stage.worker(FILE as never, { ...RULES, ...opts }),
  'in batches'(stage, opts) {
    const handler = async (first: Job): Promise<void> => {
      for (const job of first.getBatch()) {
        const error = await moved(job, job.token, worker, stage);
        if (error) job.setAsFailed(error);
      }
    };
    const batch = { size: 3 };
    const worker = stage.worker(handler as never, { ...RULES, batch, ...opts }) as unknown as Worker;
  },
  'taken by getNextJob'(stage, opts) {
    const worker = stage.worker(null, { ...RULES, ...opts }) as unknown as Worker;
    void work(worker, stage);
  },
};

const RULES: Partial<WorkerOptions> = { concurrency: 4, limiter: { max: 100_000, duration: 20 } };

/**
 * That jobs whose keys let three of each way start do so, and no more: also once those that wait have looked again. One of a group alone starts twice.
 * @param open opens a worker
 */
export async function expectStarts(queue: Queue, open: () => void): Promise<void> {
  const all = movedJobs((key) => [{ key, max: 3, duration: 3_600_000 }]);
  const limited = await queue.addBulk(all.filter(({ opts }) => opts.group?.id !== 's'));
  open();
  const starts = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const { id, name } of limited) counts[name] = (counts[name] ?? 0) + (await queue.getJob(id!))!.attemptsStarted;
    return counts;
  };
  const expected = Object.fromEntries(limited.map(({ name }) => [name, name === 'group' ? 2 : 3]));
  const resting = async (): Promise<boolean> =>
    Object.values(await queue.getJobCounts('waiting', 'prioritized', 'active', 'waiting-children')).every((n) => !n);
  await until('all keys to be used up', async () => (await resting()) && isDeepStrictEqual(await starts(), expected));
  for (const job of await queue.getDelayed()) await job.promote();
  await until('all to have looked again', resting);
  expect(await starts()).toEqual(expected);
  expect(await queue.getDelayedCount()).toBeGreaterThan(4);
}
