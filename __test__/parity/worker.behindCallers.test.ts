import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { FlowProducer, Job, Queue, Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';

/** How often: what comes first by chance is not to pass by chance. */
const TIMES = 20;
const FAR = 1_000_000;

interface Round {
  queue: Queue;
  flows: FlowProducer;
  job: Job;
}

interface Case {
  name: string;
  /** What there is before. */
  prepare?(round: Pick<Round, 'queue'>): Promise<Job>;
  /** The call that lets a job start. */
  act(round: Round): Promise<unknown>;
}

const delayed = ({ queue }: Pick<Round, 'queue'>): Promise<Job> => queue.add('delayed', {}, { delay: FAR });

const CASES: Case[] = [
  { name: 'add', act: ({ queue }) => queue.add('plain', {}) },
  { name: 'add with an id', act: ({ queue }) => queue.add('plain', {}, { jobId: `own-${Math.random()}` }) },
  { name: 'add with a priority', act: ({ queue }) => queue.add('plain', {}, { priority: 3 }) },
  { name: 'addBulk', act: ({ queue }) => queue.addBulk([{ name: 'plain', data: {} }]) },
  { name: 'a flow', act: ({ queue, flows }) => flows.add({ name: 'plain', queueName: queue.name }) },
  { name: 'flows', act: ({ queue, flows }) => flows.addBulk([{ name: 'plain', queueName: queue.name }]) },
  { name: 'promote', prepare: delayed, act: ({ job }) => job.promote() },
  { name: 'promoteJobs', prepare: delayed, act: ({ queue }) => queue.promoteJobs() },
  { name: 'changeDelay', prepare: delayed, act: ({ job }) => job.changeDelay(0) },
  {
    name: 'resume',
    prepare: async ({ queue }) => {
      await queue.pause();
      return queue.add('plain', {});
    },
    act: ({ queue }) => queue.resume(),
  },
];

/** Whether a handler began, or an event came, before the call had its answer; a few times. */
async function tooEarly(round: Omit<Round, 'job'>, worker: Worker, begun: Set<unknown>, { prepare, act }: Case) {
  const early: string[] = [];
  for (let time = 0; time < TIMES; time++) {
    const ended = Promise.all([once(worker, 'completed'), once(worker, 'drained')]);
    let isAnswered = false;
    const note = (event: string) => () => void (isAnswered || early.push(event));
    const [onActive, onCompleted] = [note('active'), note('completed')];
    const job = (await prepare?.(round)) as Job;
    begun.clear();
    worker.on('active', onActive).on('completed', onCompleted);
    await act({ ...round, job });
    isAnswered = true;
    if (begun.size > 0) early.push('handler');
    await ended;
    worker.off('active', onActive).off('completed', onCompleted);
    // a worker that is just asking is given the job as soon as it is there, by BullMQ as well: it sleeps after some exchanges
    for (let exchange = 0; exchange < 5; exchange++) await round.queue.count();
  }
  return early;
}

describe.each(libraries)('$name: a worker and callers of one process', ({ lib }) => {
  const stage = useStage(lib);

  it.each(CASES)('a job starts when the caller of $name has gone on', async (which) => {
    const begun = new Set<unknown>();
    const round = { queue: stage.queue(), flows: stage.flowProducer() };
    const worker = stage.worker((job) => Promise.resolve(begun.add(job.id).size));
    await worker.waitUntilReady();
    await round.queue.waitUntilReady();

    expect(await tooEarly(round, worker, begun, which)).toEqual([]);
  });

  it('who awaits add may listen for the events of its job only then', async () => {
    const queue = stage.queue();
    const worker = stage.worker(() => Promise.resolve('done'));
    const results: unknown[] = [];

    for (let time = 0; time < 100; time++) {
      const job = await queue.add('plain', {});
      const [ended, result] = (await once(worker, 'completed')) as [Job, unknown];
      results.push([ended.id === job.id, result]);
    }

    expect(results).toEqual(Array.from({ length: 100 }, () => [true, 'done']));
  });

  it('handlers and listeners see the stores of whoever made the worker run', async () => {
    const stores = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const queue = stage.queue();
    const worker = stage.worker(() => Promise.resolve(seen.push(stores.getStore())), { autorun: false });
    worker.on('active', () => seen.push(stores.getStore()));
    worker.on('completed', () => seen.push(stores.getStore()));
    stores.run('run', () => void worker.run());

    for (let time = 0; time < 3; time++) {
      const ended = once(worker, 'completed');
      await stores.run('add', () => queue.add('plain', {}));
      await ended;
    }

    expect(seen).toEqual(Array.from({ length: 9 }, () => 'run'));
  });
});
