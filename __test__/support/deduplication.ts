import type { DeduplicationOptions, JobsOptions } from 'bullmq';
import type { EventLog } from './waiting.js';

/** Options of a job that is deduplicated by this id. */
export function by(id: string, deduplication: Partial<DeduplicationOptions> = {}, opts: JobsOptions = {}): JobsOptions {
  return { ...opts, deduplication: { id, ...deduplication } };
}

/** The `deduplicated` events so far, each as its three ids. */
export function deduplications(log: EventLog): string[][] {
  const events =
    log.all<[{ jobId: string; deduplicationId: string; deduplicatedJobId: string }, string]>('deduplicated');
  return events.map(([{ jobId, deduplicationId, deduplicatedJobId }]) => [jobId, deduplicationId, deduplicatedJobId]);
}

/** Names of the events so far, each with its job. */
export function story(log: EventLog): string[] {
  return log.entries.map(({ event, args }) => `${event} ${(args[0] as { jobId?: string }).jobId ?? ''}`.trim());
}
