import v5, { Queue, Worker, type Job, type RepeatableJob } from 'chasquimq/v5';
import { Queue as PlainQueue } from 'chasquimq';

export const queue = new Queue<{ to: string }, number>('mail');
export const worker = new Worker<{ to: string }, number>('mail', async (job) => {
  job.discard();
  return job.data.to.length;
});
export const added: Promise<Job<{ to: string }, number>> = queue.add(
  'welcome',
  { to: 'ada' },
  { repeat: { every: 3 } },
);
export const repeats: Promise<RepeatableJob[]> = queue.getRepeatableJobs();
export const value: Promise<string | null> = queue.client.then((client) => client.get('key'));

export const same: typeof Queue = v5.Queue;
export const plain: PlainQueue<{ to: string }, number> = queue;

// @ts-expect-error -- the data of this queue is { to: string }
void queue.add('welcome', { to: 1 });
