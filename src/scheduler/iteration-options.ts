/** The options of a job scheduler's jobs. */
import { checkNumbers, checkPriority, normaliseOptions, optionsText, refuseDebounce } from '../add/job-options.js';
import { NotSupportedError } from '../errors/not-supported-error.js';
import { checkExpiry } from '../options/expiry.js';
import { checkJobGroup } from '../options/group.js';
import type { JobsOptions } from '../options/job.js';
import { checkKeyLimits } from '../options/key-limits.js';
import type { RepeatOptions } from '../options/repeat.js';
import { checkJobTimeout } from '../options/time-limits.js';
import { toMillis } from './next-run.js';

/** A template's options as text for the engine, which adds what depends on the time of an iteration. */
export function iterationText(template: JobsOptions, repeat: RepeatOptions): string {
  const { immediately: _, ...kept } = repeat;
  return optionsText({
    ...normaliseOptions(template),
    delay: undefined,
    timestamp: undefined,
    jobId: undefined,
    prevMillis: undefined,
    repeatJobKey: undefined,
    repeat: {
      ...kept,
      offset: (repeat.every && repeat.offset) || undefined,
      startDate: toMillis(repeat.startDate),
      endDate: toMillis(repeat.endDate),
    },
  } as JobsOptions);
}

/** @throws as `OptionsChecker.check`, for the options of a job scheduler's jobs */
export function checkTemplate(opts: JobsOptions): void {
  refuseDebounce(opts);
  if (opts.priority) checkPriority(opts.priority);
  checkJobGroup(opts);
  checkJobTimeout(opts);
  checkExpiry(opts);
  checkKeyLimits(opts);
  if (typeof opts.expireAfter === 'object') {
    throw new NotSupportedError('a Date as the option "expireAfter" of a job scheduler\'s template');
  }
  if (opts.group?.maxSize !== undefined) {
    throw new NotSupportedError('the option "group.maxSize" of a job scheduler\'s template');
  }
  checkNumbers(opts as Record<string, unknown>);
  if (opts.parent) throw new NotSupportedError('the option "parent" of a job scheduler\'s template');
}
