/** The keys of what repeats: BullMQ 5 makes them of the job's name and when it runs, so that the same words find it again. */
import { createHash } from 'node:crypto';
import { toMillis } from '../scheduler/next-run.js';
import type { RepeatOptions } from './types.js';

/** The text that tells one from another: once the key itself. */
export function keyText(name: string, repeat: RepeatOptions): string {
  const { jobId, endDate, tz, pattern, every } = repeat;
  const times = pattern ? pattern : String(every);
  return [name, jobId || '', toMillis(endDate) ?? '', tz || '', times].join(':');
}

/** The key: the user's own, or a hash. */
export function keyOf(name: string, repeat: RepeatOptions, algorithm: string): string {
  return repeat.key ?? createHash(algorithm).update(keyText(name, repeat)).digest('hex');
}
