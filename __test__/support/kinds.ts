/** Jobs of each kind there is, for what concerns every kind. */
import type { Job, Queue } from 'bullmq';

/** One in a frame, one with an id of its own, one due later, one that fails at first ({@link failAtFirst}), one with a priority. */
export function addKinds(queue: Queue, round: number): Promise<Job>[] {
  return [
    queue.add('plain', round),
    queue.add('named', round, { jobId: `named-${round}` }),
    queue.add('later', round, { delay: 5 }),
    queue.add('flaky', round, { attempts: 2 }),
    queue.add('ranked', round, { priority: 2 }),
  ];
}

/** What runs them. */
export async function failAtFirst(job: Job): Promise<void> {
  if (job.name === 'flaky' && job.attemptsMade === 0) throw new Error('at first');
}
