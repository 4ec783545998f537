import type { Job } from './job.js';
import type { NativeJob } from '../native/types.js';
import type { JobJson } from '../types/job-json.js';

/**
 * A job as `getDependencies` shows it, with every key of BullMQ's in its order. `data`, `returnvalue` and `stacktrace` are
 * the texts that are stored, and `failedReason`, unlike that of `asJSON()`, the reason itself. BullMQ leaves `id` undefined.
 */
export function storedJob({ opts, progress, parent }: Job, found: NativeJob): JobJson {
  const { deduplicationId } = found;
  const json: Record<keyof JobJson, unknown> = {
    id: found.id,
    name: found.name,
    data: found.data || '{}',
    opts,
    progress,
    delay: found.delay ?? 0,
    priority: found.priority ?? 0,
    timestamp: found.timestamp,
    attemptsStarted: found.attemptsStarted ?? 0,
    attemptsMade: found.attemptsMade ?? 0,
    stalledCounter: found.stalledCounter ?? 0,
    finishedOn: found.finishedOn,
    processedOn: found.processedOn,
    repeatJobKey: found.repeatJobKey,
    debounceId: deduplicationId,
    deduplicationId,
    failedReason: found.failedReason,
    deferredFailure: found.deferredFailure,
    stacktrace: found.stacktrace,
    returnvalue: found.returnvalue,
    parentKey: found.parentKey,
    parent,
    processedBy: found.processedBy,
  };
  // what a job does not have stands as undefined, also where the type, BullMQ's, promises a text
  return json as unknown as JobJson;
}
