/** A job as plain data, and back. */
import type { JobJson } from '../types/job-json.js';
import type { MinimalJob } from '../types/minimal-job.js';
import { parseStored } from './stored-json.js';

/** The fields of a job that its plain forms know. */
export interface JobFields extends MinimalJob<unknown, unknown> {
  priority: number;
  attemptsStarted: number;
  stalledCounter: number;
  deferredFailure: string;
  deduplicationId?: string;
  processedBy?: string;
}

/** Fields that BullMQ's jobs have only once something has set them. */
const COME_LATER: ReadonlySet<string> = new Set([
  'deferredFailure',
  'failedReason',
  'finishedOn',
  'processedBy',
  'processedOn',
  'token',
]);

/** The job's own fields as real values, in BullMQ's order, without the queue. */
export function fieldsOf(job: JobFields): Record<string, unknown> {
  const { name, data, opts, id, progress, returnvalue, stacktrace, queueQualifiedName } = job;
  const fields: Record<string, unknown> = { name, data, opts, id, progress, returnvalue, stacktrace };
  for (const [key, value] of Object.entries(job)) {
    if (key !== 'queue' && !(value === undefined && COME_LATER.has(key))) fields[key] = value;
  }
  fields.queueQualifiedName = queueQualifiedName;
  return fields;
}

/** Source: BullMQ 6.7.0 `Job#asJSON`. */
export function toPlainJob(job: JobFields): JobJson {
  const json: Partial<Record<keyof JobJson, unknown>> = {
    id: job.id,
    name: job.name,
    data: JSON.stringify(job.data === undefined ? {} : job.data),
    opts: job.opts,
    parent: job.parent,
    parentKey: job.parentKey,
    progress: job.progress,
    attemptsMade: job.attemptsMade,
    attemptsStarted: job.attemptsStarted,
    stalledCounter: job.stalledCounter,
    finishedOn: job.finishedOn,
    processedOn: job.processedOn,
    timestamp: job.timestamp,
    failedReason: JSON.stringify(job.failedReason),
    stacktrace: JSON.stringify(job.stacktrace),
    deduplicationId: job.deduplicationId,
    repeatJobKey: job.repeatJobKey,
    returnvalue: JSON.stringify(job.returnvalue),
  };
  return Object.fromEntries(Object.entries(json).filter(([, value]) => value !== undefined)) as unknown as JobJson;
}

/** Gives a job the fields of its plain form that its constructor was not given. */
export function adoptPlainJob(job: JobFields, json: JobJson): void {
  job.progress = json.progress ?? 0;
  // what `asJSON()` leaves out is undefined, as in BullMQ
  job.delay = json.delay as number;
  job.priority = json.priority as number;
  job.timestamp = json.timestamp;
  job.attemptsStarted = json.attemptsStarted || 0;
  job.attemptsMade = json.attemptsMade || 0;
  job.stalledCounter = json.stalledCounter || 0;
  if (json.finishedOn) job.finishedOn = json.finishedOn;
  if (json.processedOn) job.processedOn = json.processedOn;
  if (json.failedReason) job.failedReason = json.failedReason;
  if (json.deferredFailure) job.deferredFailure = json.deferredFailure;
  if (json.processedBy) job.processedBy = json.processedBy;
  job.stacktrace = tracesFrom(json.stacktrace);
  if (typeof json.returnvalue === 'string') job.returnvalue = parseStored(json.returnvalue, undefined);
  // not those of its options, which stay when it is no child any more
  job.parentKey = json.parentKey || undefined;
  job.parent = json.parent || undefined;
  if (json.repeatJobKey) job.repeatJobKey = json.repeatJobKey;
  if (json.deduplicationId) job.deduplicationId = json.deduplicationId;
}

/** Stack traces from the text that is stored. */
export function tracesFrom(text: string | undefined): string[] {
  const traces = text ? parseStored<string[] | null>(text, null) : null;
  return Array.isArray(traces) ? traces : [];
}
