// Works in a process of its own: requests and jobs do not wait for each other, and each is scaled and deployed alone.
import { Worker } from 'chasquimq';
import { connection } from './lib/queue.js';

/** Stands in for the work on a report. */
async function write(job) {
  await job.updateProgress(50);
  return `report-${job.data.month}.pdf`;
}

const worker = new Worker('reports', write, { connection, concurrency: 5 });
worker.on('failed', (job, error) => console.error(`report ${job?.id}: ${error.message}`));
worker.on('error', (error) => console.error(error.message));

process.on('SIGTERM', () => worker.close());
// Ctrl-C reaches every process of the terminal; the server tells this one when it is time
process.on('SIGINT', () => {});
