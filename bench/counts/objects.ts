/**
 * How many JavaScript objects live for a job: while the caller holds it, while its handler runs, and when nobody holds it any more.
 * Objects, arrays, functions and promises count; texts and numbers do not.
 */
import { queryObjects } from 'node:v8';
import type { Job } from '../../src/index.js';
import type { Ground } from './ground.js';

const JOBS = 1_000;

export interface KeptObjects {
  readonly name: string;
  readonly about: string;
  /** Prepares, and returns what makes the objects live, and what then lets go of them. */
  prepare(ground: Ground): Promise<{ hold(): Promise<unknown>; release(): Promise<void> }>;
}

const entries = () => Array.from({ length: JOBS }, (_, i) => ({ name: 'job', data: { i } }));

const held: KeptObjects = {
  name: 'objects-held',
  about: 'jobs that addBulk returned, held by the caller',
  async prepare(ground) {
    const queue = await ground.openQueue();
    let jobs: Job[] = [];
    return {
      hold: async () => (jobs = await queue.addBulk(entries())),
      release: async () => void (jobs.length = 0),
    };
  },
};

const running: KeptObjects = {
  name: 'objects-running',
  about: 'jobs whose handlers run, and which the worker holds',
  async prepare(ground) {
    const queue = await ground.openQueue();
    let gates: (() => void)[] = [];
    let allRun: () => void = () => undefined;
    const processor = () =>
      new Promise<void>((resolve) => {
        if (gates.push(resolve) === JOBS) allRun();
      });
    await ground.startWorker({ processor, concurrency: JOBS });
    return {
      async hold() {
        const full = new Promise<void>((resolve) => {
          allRun = resolve;
        });
        await queue.addBulk(entries());
        await full;
      },
      async release() {
        const completed = ground.ended('completed', JOBS);
        for (const open of gates) open();
        gates = [];
        await completed;
        await ground.settled();
      },
    };
  },
};

export const keptObjects: readonly KeptObjects[] = [held, running];

const alive = () => queryObjects(Object, { format: 'count' });

/** Objects a job, in tenths: `kept` while it is held, `left` when it is not. */
export async function countObjects(ground: Ground, { prepare }: KeptObjects): Promise<Record<string, number>> {
  const { hold, release } = await prepare(ground);
  await hold();
  await release();
  const before = alive();
  await hold();
  const kept = alive();
  await release();
  const left = alive();
  return { 'objects kept': perJob(kept - before), 'objects left': perJob(left - before) };
}

const perJob = (objects: number) => Math.round((objects / JOBS) * 10) / 10;
