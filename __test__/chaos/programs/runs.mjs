// One run of a job's handler, noted from its start to its end.
import { randomBytes } from 'node:crypto';
import { handle } from './handler.mjs';
import { note } from './ledger.mjs';

/** `queue`: to which it adds children; `limit`: stops every worker for so many ms. */
export async function runNoted(job, token, { queue, limit }) {
  const { key = job.id, byStarts } = job.data;
  // a job may run twice with one number when a master takes the first run along
  const mark = `${job.attemptsStarted}.${randomBytes(4).toString('hex')}`;
  note('started', `${key} ${job.id} ${job.attemptsMade} ${byStarts ? '-' : (job.data.step ?? 0)} ${mark}`);
  try {
    const result = await handle(job, token, { job, key, mark, queue, limit });
    note('ended', `${key} ${mark} returned`);
    return result;
  } catch (error) {
    note('ended', `${key} ${mark} threw ${error?.name}`);
    throw error;
  }
}
