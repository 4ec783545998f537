import { Queue, QueueEvents, Worker, type Job } from 'chasquimq';

export const queue = new Queue<{ to: string }, number>('mail');
export const worker = new Worker<{ to: string }, number>('mail', async (job) => job.data.to.length);
export const events = new QueueEvents('mail');
export const added: Promise<Job<{ to: string }, number>> = queue.add('welcome', { to: 'ada' }, { attempts: 3 });

// @ts-expect-error -- the data of this queue is { to: string }
void queue.add('welcome', { to: 1 });
