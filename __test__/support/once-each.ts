import type { Queue } from 'bullmq';
import { expect } from 'vitest';

/** Expects that so many jobs completed, that nothing is left of others, and that each ran once. runs: by data, how often it ran. */
export async function expectOnceEach(queue: Queue, runs: ReadonlyMap<unknown, number>, jobs: number): Promise<void> {
  await expectAllCompleted(queue, jobs);
  expect([...runs.values()]).toEqual(Array.from({ length: jobs }, () => 1));
}

/** The same, however often they ran. */
export async function expectAllCompleted(queue: Queue, jobs: number): Promise<void> {
  expect(await queue.getJobCounts('completed', 'active', 'waiting', 'failed')).toEqual({
    completed: jobs,
    active: 0,
    waiting: 0,
    failed: 0,
  });
}
