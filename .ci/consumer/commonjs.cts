import chasquimq = require('chasquimq');

export const queue = new chasquimq.Queue<{ to: string }, number>('mail');
export const worker = new chasquimq.Worker<{ to: string }, number>('mail', async (job) => job.data.to.length);
export const added: Promise<chasquimq.Job<{ to: string }, number>> = queue.add('welcome', { to: 'ada' });

export function use(given: chasquimq.Queue<{ to: string }, number>): void {
  void given.add('welcome', { to: 'grace' });
}

// @ts-expect-error -- the data of this queue is { to: string }
void queue.add('welcome', { to: 1 });
