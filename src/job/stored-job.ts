import type { Job } from './job.js';
import type { NativeJob } from '../native/types.js';
import type { JobJson } from '../types/job-json.js';

/**
 * A job as `getDependencies` shows it, with every key of BullMQ's in its order. `data`, `returnvalue` and `stacktrace` are
 * the texts that are stored, and `failedReason`, unlike that of `asJSON()`, the reason itself. BullMQ leaves `id` undefined.
 */
export function storedJob({ opts, progress, parent }: Job, found: NativeJob): JobJson {
  const { extra } = found;
  const { deduplicationId } = extra;
  const json: Record<keyof JobJson, unknown> = {
    id: found.id,
    name: found.name,
    data: found.data || '{}',
    opts,
    progress,
    delay: extra.delay ?? 0,
    priority: extra.priority ?? 0,
    timestamp: found.timestamp,
    attemptsStarted: extra.attemptsStarted ?? 0,
    attemptsMade: extra.attemptsMade ?? 0,
    stalledCounter: extra.stalledCounter ?? 0,
    finishedOn: extra.finishedOn,
    processedOn: found.processedOn,
    repeatJobKey: extra.repeatJobKey,
    debounceId: deduplicationId,
    deduplicationId,
    failedReason: extra.failedReason,
    deferredFailure: extra.deferredFailure,
    stacktrace: extra.stacktrace,
    returnvalue: extra.returnvalue,
    parentKey: extra.parentKey,
    parent,
    processedBy: extra.processedBy,
  };
  // what a job does not have stands as undefined, also where the type, BullMQ's, promises a text
  return json as unknown as JobJson;
}
