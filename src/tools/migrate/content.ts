/** What is known of a job, whichever of the two libraries has it, in one form. */
import { isDeepStrictEqual } from 'node:util';
import type { NativeJob, NativeSourceJob } from '../../native/types.js';

/** A job's fields by name. JSON is read where two texts may say the same. */
export interface Content {
  readonly name: string;
  readonly data: string;
  readonly opts: unknown;
  readonly timestamp: number;
  readonly delay: number;
  readonly priority: number;
  readonly progress: string;
  readonly attemptsMade: number;
  readonly attemptsStarted: number;
  readonly stalledCounter: number;
  readonly returnvalue: string;
  readonly failedReason: string | undefined;
  readonly stacktrace: string;
  readonly processedOn: number;
  readonly finishedOn: number;
  readonly processedBy: string | undefined;
  readonly deferredFailure: string | undefined;
  readonly deduplicationId: string | undefined;
  readonly repeatJobKey: string | undefined;
  readonly parent: unknown;
  readonly logs: readonly string[];
}

/** What stays as it is while a job runs. */
const LASTING: readonly (keyof Content)[] = ['name', 'opts', 'timestamp', 'deduplicationId', 'repeatJobKey', 'parent'];

/** A job as BullMQ stores it. */
export function contentOfTheirs({ fields, logs }: NativeSourceJob): Content {
  const found = new Map<string, string>();
  for (let i = 0; i < fields.length; i += 2) found.set(fields[i], fields[i + 1]);
  const of = (field: string): string | undefined => found.get(field) || undefined;
  const number = (field: string): number => Number(found.get(field) ?? 0);
  return {
    name: found.get('name') ?? '',
    data: of('data') ?? '{}',
    opts: read(of('opts')),
    timestamp: number('timestamp'),
    delay: number('delay'),
    priority: number('priority'),
    progress: of('progress') ?? '0',
    attemptsMade: number(found.has('atm') ? 'atm' : 'attemptsMade'),
    attemptsStarted: number('ats'),
    stalledCounter: number('stc'),
    returnvalue: of('returnvalue') ?? 'null',
    failedReason: of('failedReason'),
    stacktrace: of('stacktrace') ?? '[]',
    processedOn: number('processedOn'),
    finishedOn: number('finishedOn'),
    processedBy: of('pb'),
    deferredFailure: of('defa'),
    deduplicationId: of('deid'),
    repeatJobKey: of('rjk'),
    parent: parentOf(of('parent')),
    logs,
  };
}

/** A job of ours. */
export function contentOfOurs(job: NativeJob, logs: readonly string[]): Content {
  const { extra } = job;
  return {
    name: job.name,
    data: job.data || '{}',
    opts: read(job.opts),
    timestamp: job.timestamp,
    delay: extra.delay ?? 0,
    priority: extra.priority ?? 0,
    progress: extra.progress ?? '0',
    attemptsMade: extra.attemptsMade ?? 0,
    attemptsStarted: extra.attemptsStarted ?? 0,
    stalledCounter: extra.stalledCounter ?? 0,
    returnvalue: extra.returnvalue ?? 'null',
    failedReason: extra.failedReason || undefined,
    stacktrace: extra.stacktrace || '[]',
    processedOn: job.processedOn ?? 0,
    finishedOn: extra.finishedOn ?? 0,
    processedBy: extra.processedBy || undefined,
    deferredFailure: extra.deferredFailure || undefined,
    deduplicationId: extra.deduplicationId || undefined,
    repeatJobKey: extra.repeatJobKey || undefined,
    parent: parentOf(extra.parent),
    logs,
  };
}

/** Whether a worker had the job between the two looks at it. */
export function hasGoneOn(before: Content, after: Content): boolean {
  return after.attemptsStarted !== before.attemptsStarted || after.processedOn !== before.processedOn;
}

/**
 * The names of the fields in which they differ.
 * @param isInPlace false: it has left the place in which it was, and with it the delay
 */
export function differences(before: Content, after: Content, isInPlace: boolean): string[] {
  const all = (Object.keys(before) as (keyof Content)[]).filter((name) => isInPlace || name !== 'delay');
  const compared = hasGoneOn(before, after) ? LASTING : all;
  return compared.filter((name) => !isDeepStrictEqual(before[name], after[name]));
}

function read(text: string | undefined): unknown {
  if (text === undefined || text === '') return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** A parent's place, and what its child's failure means to it; older versions stored more. */
function parentOf(text: string | undefined): unknown {
  if (!text) return undefined;
  const parent = read(text) as Record<string, unknown>;
  const { id, queueKey, fpof = false, cpof = false, idof = false, rdof = false } = parent;
  return { id: String(id), queueKey, fpof, cpof, idof, rdof };
}
