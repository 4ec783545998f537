// What a compiler without `--module preserve` reads for a bundler: imports alone.
import chasquimq, { Queue, Worker, type Job } from 'chasquimq';

export const queue = new Queue<{ to: string }, number>('mail');
export const worker = new Worker<{ to: string }, number>('mail', async (job) => job.data.to.length);
export const added: Promise<Job<{ to: string }, number>> = queue.add('welcome', { to: 'ada' }, { attempts: 3 });
export const same: typeof Queue = chasquimq.Queue;

// @ts-expect-error -- the data of this queue is { to: string }
void queue.add('welcome', { to: 1 });
