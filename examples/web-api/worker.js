// Sends the mails. It runs in the API's process here; on its own it is `node worker.js`, as often as you like.
import { Worker } from 'bullmq';

export const connection = { url: process.env.REDIS_URL ?? 'redis://localhost:6379' };

/** Stands in for a call of your mail provider. */
async function send({ to }) {
  if (!to.includes('@')) throw new Error(`${to} is no address`);
  return `sent to ${to}`;
}

export const worker = new Worker('mails', (job) => send(job.data), { connection, concurrency: 50 });
worker.on('failed', (job, error) => console.error(`mail ${job?.id}: ${error.message}`));
worker.on('error', (error) => console.error(error.message));
