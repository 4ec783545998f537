import type { JobJson } from '../types/job-json.js';
import type { JobFields } from './plain-job.js';

/** The stored texts of a job. */
interface StoredTexts {
  readonly data: unknown;
  readonly returnvalue: unknown;
  readonly stacktrace: unknown;
}

/** A job as it is stored, with every key of BullMQ's in its order. */
export function storedJob(job: JobFields, texts: StoredTexts): JobJson {
  const json: Record<keyof JobJson, unknown> = {
    id: job.id,
    name: job.name,
    data: texts.data || '{}',
    opts: job.opts,
    progress: job.progress,
    delay: job.delay,
    priority: job.priority,
    timestamp: job.timestamp,
    attemptsStarted: job.attemptsStarted,
    attemptsMade: job.attemptsMade,
    stalledCounter: job.stalledCounter,
    finishedOn: job.finishedOn,
    processedOn: job.processedOn,
    repeatJobKey: job.repeatJobKey,
    debounceId: job.deduplicationId,
    deduplicationId: job.deduplicationId,
    failedReason: job.failedReason,
    deferredFailure: job.deferredFailure,
    stacktrace: texts.stacktrace,
    returnvalue: texts.returnvalue,
    parentKey: job.parentKey,
    parent: job.parent,
    processedBy: job.processedBy,
  };
  // what a job does not have stands as undefined, also where the type, BullMQ's, promises a text
  return json as unknown as JobJson;
}
