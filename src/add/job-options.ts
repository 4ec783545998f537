/**
 * The name and options of a job on their way to the engine: normalised, checked against BullMQ's rules, written as text.
 */
import { Backoffs } from '../options/backoffs.js';
import { checkExpiry, expiryFromStored } from '../options/expiry.js';
import { checkJobGroup } from '../options/group.js';
import type { DeduplicationOptions, JobsOptions, ParentOptions } from '../options/job.js';
import { checkKeyLimits } from '../options/key-limits.js';
import { PRIORITY_LIMIT } from '../options/priority.js';
import { checkJobTimeout } from '../options/time-limits.js';

/** Option text of a job without options. */
export const NO_OPTIONS = '{}';

/** The options of a job that is given none: one object for all, which is known at once. */
export const NOTHING: JobsOptions = Object.freeze({});

/** Of these, a job takes at most one; the order is that of BullMQ's error text. */
const FAILURE_OPTIONS = [
  'removeDependencyOnFailure',
  'failParentOnFailure',
  'continueParentOnFailure',
  'ignoreDependencyOnFailure',
] as const;

/** Short names under which BullMQ stores some options, understood when options are read back. */
const LONG_NAMES: Record<string, keyof JobsOptions> = {
  de: 'deduplication',
  fpof: 'failParentOnFailure',
  cpof: 'continueParentOnFailure',
  idof: 'ignoreDependencyOnFailure',
  rdof: 'removeDependencyOnFailure',
  kl: 'keepLogs',
};

/**
 * The name of a job, as a text.
 * @throws TypeError for what is neither a text nor a number
 */
export function checkName<N extends string>(name: N): N {
  if (typeof name === 'string') return name;
  if (typeof name === 'number') return String(name) as N;
  throw new TypeError('Job name must be a string');
}

/** A job's `opts`: what was given, `attempts` (0 unless given) and `backoff` as an object. Always a fresh object. */
export function normaliseOptions(opts: JobsOptions | null | undefined): JobsOptions {
  const normalised: JobsOptions = { attempts: 0, ...opts };
  normalised.backoff = Backoffs.normalize(normalised.backoff);
  return normalised;
}

/** A copy of options, or of what they hold: what is changed in it is changed nowhere else. A Date, say, stays the one that was given. */
export function copyOptions<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOptions) as T;
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const copy = { ...value };
  for (const key in copy) copy[key] = copyOptions(copy[key]);
  return copy;
}

/** Options that may be added: normalised (and shared between jobs, so not to be changed), and as text. */
export interface CheckedOptions {
  readonly opts: JobsOptions;
  readonly text: string;
}

const CHECKED_NOTHING: CheckedOptions = { opts: normaliseOptions(undefined), text: NO_OPTIONS };

/** Enough for the priorities, say, of a program's jobs; options that are never seen again must not fill the memory. */
const MOST_KNOWN = 64;

/** Checks the options of jobs to be added. Programs add many jobs with equal options: those are checked once. */
export class OptionsChecker {
  private readonly known = new Map<string, CheckedOptions>();

  /**
   * @param data the JSON text of the job's data
   * @param parent of a job of a flow, which its options do not name
   * @throws Error with BullMQ's text for the first of its rules that fails, in its order; then RangeError for a number
   * that is not finite
   */
  check(name: string, data: string, given: JobsOptions, parent = given.parent): CheckedOptions {
    if (given === NOTHING) return CHECKED_NOTHING;
    if (isDelayAlone(given)) return delayAlone(given.delay);
    const key = keyOf(given);
    const known = key === undefined ? undefined : this.known.get(key);
    if (known && !(parent && known.opts.deduplication)) {
      checkSize(name, data, known.opts);
      return known;
    }
    const opts = normaliseOptions(given);
    checkSize(name, data, opts);
    checkOptions(opts, parent);
    const checked = { opts, text: optionsText(opts) };
    if (key !== undefined) {
      if (this.known.size === MOST_KNOWN) this.known.clear();
      // what the caller holds may change later; where there is no such thing, a copy is time lost for jobs with ids of their own
      const holds = Object.values(opts).some((value) => typeof value === 'object');
      this.known.set(key, holds ? { opts: copyOptions(opts), text: checked.text } : checked);
    }
    return checked;
  }
}

/** Whether a job is told nothing but its delay, which is often different for each job. */
function isDelayAlone(given: JobsOptions): given is { delay: number } {
  for (const key in given) if (key !== 'delay') return false;
  return Number.isSafeInteger(given.delay) && (given.delay as number) > 0;
}

function delayAlone(delay: number): CheckedOptions {
  return { opts: { attempts: 0, delay, backoff: undefined }, text: `{"delay":${delay}}` };
}

/** A text by which equal options are told; undefined where JSON does not tell all (`undefined`, NaN, a function, a Date and the like). */
function keyOf(given: JobsOptions): string | undefined {
  for (const key in given) if (!isToldByJson(given[key as keyof JobsOptions])) return undefined;
  const text = JSON.stringify(given);
  return text.includes('null') ? undefined : text;
}

function isToldByJson(value: unknown): boolean {
  if (typeof value === 'object') return value === null || !('toJSON' in value);
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol';
}

/** The first of BullMQ's rules, and the only one that looks at the data. */
function checkSize(name: string, data: string, { sizeLimit }: JobsOptions): void {
  if (sizeLimit && Buffer.byteLength(data) > sizeLimit) {
    throw new Error(`The size of job ${name} exceeds the limit ${sizeLimit} bytes`);
  }
}

function checkOptions(opts: JobsOptions, parent: ParentOptions | undefined): void {
  const failureOptions = FAILURE_OPTIONS.filter((key) => opts[key]);
  if (failureOptions.length > 1) {
    throw new Error(`The following options cannot be used together: ${failureOptions.join(', ')}`);
  }
  if (opts.jobId === null) throw new TypeError('jobId must be a string');
  if (opts.jobId) checkJobId(opts.jobId);
  if (opts.priority) checkPriority(opts.priority);
  checkJobGroup(opts);
  checkJobTimeout(opts);
  checkExpiry(opts);
  checkKeyLimits(opts);
  if (opts.deduplication) {
    if (!opts.deduplication.id) throw new Error('Deduplication id must be provided');
    if (parent) throw new Error('Deduplication and parent options cannot be used together');
    checkDeduplication(opts.deduplication);
  }
  refuseDebounce(opts);
  const { backoff } = opts;
  if (typeof backoff === 'object' && backoff.jitter && (backoff.jitter < 0 || backoff.jitter > 1)) {
    throw new Error('Jitter should be between 0 and 1');
  }
  checkNumbers(opts as Record<string, unknown>);
}

export function refuseDebounce(opts: JobsOptions): void {
  if (!Object.hasOwn(opts, 'debounce')) return;
  throw new Error('Debounce option has been removed. Use deduplication option instead');
}

/** As in BullMQ negative priorities pass: they come before the others. */
export function checkPriority(priority: number): void {
  if (Math.trunc(priority) !== priority) throw new Error('Priority should not be float');
  if (priority > PRIORITY_LIMIT || priority === -Infinity)
    throw new Error(`Priority should be between 0 and ${PRIORITY_LIMIT}`);
}

/** Ids that look like generated ones, or like keys, are refused; ids of three parts are those of job schedulers. */
function checkJobId(jobId: string): void {
  if (`${parseInt(jobId, 10)}` === jobId) throw new Error('Custom Id cannot be integers');
  if (jobId.includes(':') && jobId.split(':').length !== 3) throw new Error('Custom Id cannot contain :');
}

/** BullMQ leaves these to its scripts, which fail on them. */
function checkDeduplication({ id, ttl, until, keepLastIfActive }: DeduplicationOptions): void {
  if (typeof id !== 'string' && typeof id !== 'number') throw new TypeError('Deduplication id must be a string');
  if (ttl !== undefined && ttl !== null && !Number.isInteger(ttl)) {
    throw new RangeError('The job option deduplication.ttl must be a whole number of milliseconds');
  }
  if (until === undefined || until === null) return;
  if (until !== 'started') throw new RangeError("The job option deduplication.until must be 'started'");
  if (keepLastIfActive) {
    throw new Error('The job options deduplication.until and deduplication.keepLastIfActive cannot be used together');
  }
}

/** Options that are a number, or a text that is one. */
const NUMBERS = new Set(['timestamp', 'delay', 'attempts']);

/** What `condition && 5000` gives where the condition does not hold. */
function isLeftOpen(value: unknown): boolean {
  return value === false;
}

/** NaN and infinities have no JSON form: they would silently become `null`, that is, the default. So would a Date. */
export function checkNumbers(options: Record<string, unknown>, path = ''): void {
  for (const key in options) {
    const value = options[key];
    if (path === '' && NUMBERS.has(key) && value !== undefined && value !== null && !isLeftOpen(value)) {
      const isNumber = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '');
      if (!isNumber || !Number.isFinite(Number(value))) {
        throw new RangeError(`The job option ${key} must be a finite number`);
      }
    }
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new RangeError(`The job option ${path}${key} must be a finite number`);
    }
    if (path === '' && typeof value === 'object' && value !== null) {
      checkNumbers(value as Record<string, unknown>, `${key}.`);
    }
  }
}

/** Text of normalised options for the engine. Defaults are left out, so that most jobs share one text. */
export function optionsText(opts: JobsOptions): string {
  // Undefined rather than deleted: both keep a key out of the text, and a deleted one makes the object slow.
  const stored: JobsOptions = { ...opts, attempts: opts.attempts || undefined, jobId: opts.jobId || undefined };
  // Who the parent is stands beside the options: it may change, and children of many parents share one text.
  stored.parent = undefined;
  // BullMQ takes numbers written as strings; the engine takes numbers.
  for (const key of ['delay', 'timestamp', 'attempts'] as const) {
    if (typeof stored[key] === 'string') stored[key] = Number(stored[key]);
    else if (isLeftOpen(stored[key])) stored[key] = undefined;
  }
  if (stored.expireAfter) stored.expireAfter = Number(stored.expireAfter);
  return textWithoutNulls(stored);
}

/** The JSON text of options. As in BullMQ, null is nothing, however deep. */
export function textWithoutNulls(options: object): string {
  const text = JSON.stringify(options);
  return text.includes('null') ? JSON.stringify(options, (_, value: unknown) => value ?? undefined) : text;
}

/** Options read back from text, BullMQ's short names included; `names` has others in their place. */
export function optionsFromText(
  text: string | undefined,
  names: Readonly<Record<string, string>> = LONG_NAMES,
): JobsOptions {
  const raw = JSON.parse(text || NO_OPTIONS) as Record<string, unknown>;
  const opts: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (Object.hasOwn(names, key)) opts[names[key]] = value;
    else if (key === '__proto__')
      Object.defineProperty(opts, key, { value, writable: true, enumerable: true, configurable: true });
    else if (key === 'tm') opts.telemetry = { ...(opts.telemetry as object), metadata: value };
    else if (key === 'omc') opts.telemetry = { ...(opts.telemetry as object), omitContext: value };
    else opts[key] = key === 'expireAfter' ? expiryFromStored(value) : value;
  }
  return opts;
}
