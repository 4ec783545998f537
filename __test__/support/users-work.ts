/** What handlers of users do, by the number of a job: they take time, throw oddly, move their own job, and return 100 KB. */
import type { Job } from 'bullmq';
import { chasquimq } from './chasquimq.js';
import type { Random } from './random.js';
import { sleep } from './waiting.js';

const MOST_MS = 20;
const KINDS = [
  { runs: 1, result: 'r'.repeat(100 * 1024) },
  { runs: 2, result: 'tried again' },
  { runs: 2, result: 'moved' },
  { runs: 1, result: 'late' },
];

/** How often the job of this number runs, if it has two attempts, and what it returns in the end. */
export function workOf(number: number): { readonly runs: number; readonly result: string } {
  const { runs, result } = KINDS[number % KINDS.length];
  return { runs, result: `${number} ${result}` };
}

/** Does it. `nth`: which run of the job this is, from 1 on. */
export async function doWork(
  job: Job,
  token: string | undefined,
  { number, nth, random }: { readonly number: number; readonly nth: number; readonly random: Random },
): Promise<string> {
  const { runs, result } = workOf(number);
  await sleep(random.next(MOST_MS));
  if (nth >= runs) return result;
  // an error without a stack
  if (result.endsWith('tried again')) throw Object.assign(new Error('odd'), { stack: undefined });
  await job.moveToDelayed(Date.now() + random.next(MOST_MS), token);
  throw new chasquimq.DelayedError();
}
