import chasquimq, { Queue, QueueEvents, Worker, type Job } from 'chasquimq';
import commonJs = require('./commonjs.cjs');

export const queue = new Queue<{ to: string }, number>('mail');
export const worker = new Worker<{ to: string }, number>('mail', async (job) => job.data.to.length);
export const events = new QueueEvents('mail');
export const added: Promise<Job<{ to: string }, number>> = queue.add('welcome', { to: 'ada' }, { attempts: 3 });

// the default export is the module: its classes are those that have names
export const same: typeof Queue = chasquimq.Queue;
export const another: chasquimq.Queue<{ to: string }, number> = queue;

// one library, however it was loaded
export const loaded: Queue<{ to: string }, number> = commonJs.queue;
export const jobs: Promise<Job<{ to: string }, number>>[] = [added, commonJs.added];
commonJs.use(queue);

// @ts-expect-error -- the data of this queue is { to: string }
void queue.add('welcome', { to: 1 });
