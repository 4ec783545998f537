/** Flows of one parent and its children, and the end of those. */
import type { FlowJob, Job, JobsOptions } from 'bullmq';
import type { Stage } from './stage.js';
import { EventLog } from './waiting.js';

/**
 * A parent in the queue of `part`, whose children wait in the stage's own queue: for each its options, under the name that is also
 * its id.
 */
export function familyOf(
  stage: Stage,
  kids: Record<string, JobsOptions>,
  opts: JobsOptions = {},
  part = 'top',
): FlowJob {
  return {
    name: 'parent',
    queueName: stage.name(part),
    opts,
    children: Object.entries(kids).map(([name, own]) => ({
      name,
      queueName: stage.name(),
      opts: { jobId: name, ...own },
    })),
  };
}

/** root - mid - leaf, all in the stage's own queue, each with its name as id; `mid` with options of its own. */
export function towerOf(stage: Stage, mid: JobsOptions = {}): FlowJob {
  const queueName = stage.name();
  return {
    name: 'root',
    queueName,
    opts: { jobId: 'root' },
    children: [
      {
        name: 'mid',
        queueName,
        opts: { jobId: 'mid', ...mid },
        children: [{ name: 'leaf', queueName, opts: { jobId: 'leaf' } }],
      },
    ],
  };
}

/** Ends `count` jobs that wait in the queue of the children: those that are called `bad...` fail, the others give their name. */
export async function endChildren(
  stage: Stage,
  count: number,
  give: (job: Job) => unknown = ({ name }) => name,
  fails: (job: Job) => boolean = ({ name }) => name.startsWith('bad'),
): Promise<void> {
  const worker = stage.worker(async (job) => {
    if (fails(job)) throw new Error('bad');
    return give(job);
  });
  const log = new EventLog(worker, ['completed', 'failed']);
  await log.when('all to end', () => log.entries.length === count);
  await worker.close();
}
