/** When a job scheduler runs next. Cron is `cron-parser`'s, as in BullMQ: the same patterns, time zones and errors. */
import { inspect } from 'node:util';
import { CronExpressionParser } from 'cron-parser';
import type { RepeatOptions } from '../options/repeat.js';
import type { RepeatStrategy } from '../types/repeat-strategy.js';

/**
 * The first time after `millis` that the cron `pattern` names, not before `startDate`; now with `immediately`.
 * @param millis epoch milliseconds
 * @returns epoch milliseconds; undefined when there is none, because of `endDate` for instance
 * @throws Error of `cron-parser` for a pattern, a time zone or a date it does not understand
 * Source: BullMQ 6.7.0 `defaultRepeatStrategy`.
 */
export const defaultRepeatStrategy = (millis: number, opts: RepeatOptions, _name?: string): number | undefined => {
  const after = Math.max(millis, toMillis(opts.startDate) || 0);
  const cron = CronExpressionParser.parse(opts.pattern ?? '', { ...opts, currentDate: new Date(after) });
  // the clock that BullMQ reads here, where somebody fakes one of the two
  if (opts.immediately) return new Date().getTime();
  try {
    return cron.next().getTime();
  } catch {
    return undefined; // it has run for the last time
  }
};

/**
 * The first time after `millis`: a multiple of `every`, or what the cron `pattern` says. With `immediately`: the last
 * multiple, or now.
 * @throws Error when both are given, or as {@link defaultRepeatStrategy}
 * Source: BullMQ 6.7.0 `getNextMillis`.
 */
export const getNextMillis = (millis: number, opts: RepeatOptions): number | undefined => {
  const { every, pattern, immediately } = opts;
  if (pattern && every) throw new Error(BOTH_GIVEN);
  if (!every) return defaultRepeatStrategy(millis, opts);
  const last = Math.floor(millis / every) * every;
  return immediately ? last : last + every;
};

const BOTH_GIVEN = 'Both .pattern and .every options are defined for this repeatable job';

/** @throws Error with BullMQ's text for options it refuses, RangeError for numbers that say no time */
export function checkRepeat(repeat: RepeatOptions): void {
  const { every, pattern, immediately, startDate } = repeat;
  if (pattern && every) throw new Error(BOTH_GIVEN);
  if (!pattern && !every) {
    throw new Error('Either .pattern or .every options must be defined for this repeatable job');
  }
  if (immediately && startDate) {
    throw new Error('Both .immediately and .startDate options are defined for this repeatable job');
  }
  if (immediately && every) {
    console.warn(
      "Using option immediately with every does not affect the job's schedule. Job will run immediately anyway.",
    );
  }
  if (every && !(Number.isSafeInteger(every) && every > 0)) {
    throw new RangeError('every must be a whole number of milliseconds, at least 1');
  }
  if (repeat.limit !== undefined && repeat.limit !== null && !Number.isFinite(repeat.limit)) {
    throw new RangeError('limit must be a number of jobs');
  }
  if (every && Number.isNaN(toMillis(startDate) ?? 0)) throw new RangeError('startDate must be a date');
  if (Number.isNaN(toMillis(repeat.endDate) ?? 0)) throw new RangeError('endDate must be a date');
  checkRules(repeat);
  if (repeat.offset && !(every && repeat.offset >= 0 && Number.isSafeInteger(repeat.offset))) {
    if (every) throw new RangeError('offset must be a whole number of milliseconds, at least 0');
  }
}

const OVERLAPS = ['allow', 'skip', 'queue'];
const CATCH_UPS = ['none', 'latest', 'all'];

/** @throws TypeError or RangeError for what `overlap`, `catchUp` and `jitter` cannot be */
function checkRules({ every, overlap, catchUp, jitter }: RepeatOptions): void {
  checkWord('overlap', overlap, OVERLAPS);
  checkWord('catchUp', catchUp, CATCH_UPS);
  if (jitter === undefined) return;
  if (!(Number.isSafeInteger(jitter) && jitter >= 0)) {
    throw new RangeError('jitter must be a whole number of milliseconds, at least 0');
  }
  if (every && jitter >= every) throw new RangeError('jitter must be less than every');
}

function checkWord(option: string, value: unknown, words: string[]): void {
  if (value === undefined || words.includes(value as string)) return;
  throw new TypeError(`${option} must be one of '${words.join("', '")}', not ${inspect(value)}`);
}

/** @throws Error with BullMQ's text for a date that is over */
export function checkEndDate(endDate: RepeatOptions['endDate']): void {
  if (endDate && new Date(endDate).getTime() < Date.now()) {
    throw new Error('End date must be greater than current timestamp');
  }
}

/** The options, with numbers where they have texts of numbers, as those of an environment are. */
export function withNumbers<T extends Pick<RepeatOptions, (typeof NUMBERS)[number]>>(repeat: T): T {
  const texts = NUMBERS.filter((option) => typeof repeat[option] === 'string');
  return texts.length === 0
    ? repeat
    : { ...repeat, ...Object.fromEntries(texts.map((option) => [option, asNumber(repeat[option])])) };
}

const NUMBERS = ['every', 'offset', 'limit', 'jitter'] as const;

function asNumber(value: unknown): unknown {
  return typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value)) ? Number(value) : value;
}

/** Epoch milliseconds of a date as users write it. */
export function toMillis(date: Date | string | number | undefined): number | undefined {
  return date ? new Date(date).getTime() : undefined;
}

/**
 * When the iteration runs that follows those `repeat.count` tells.
 * @param prevMillis time for which the one before was made, epoch milliseconds; 0 when there is none
 * @returns epoch milliseconds; 0 when the engine knows, which is so with `every`; undefined when there is none
 */
export async function nextRun(
  strategy: RepeatStrategy,
  repeat: RepeatOptions,
  prevMillis: number,
  name: string,
): Promise<number | undefined> {
  const now = Date.now();
  if (repeat.limit !== undefined && iterationOf(repeat) > repeat.limit) return undefined;
  if (repeat.endDate && now > (toMillis(repeat.endDate) as number)) return undefined;
  if (!repeat.pattern) return 0;
  return firstAfter(strategy, repeat, Math.max(now, prevMillis), name);
}

/** The first time of a pattern after `from`, which is not before it; undefined when there is none. */
export async function firstAfter(
  strategy: RepeatStrategy,
  repeat: RepeatOptions,
  from: number,
  name: string,
): Promise<number | undefined> {
  const told: unknown = await strategy(from, repeat, name);
  const next = Math.ceil(Number(told ?? 0));
  if (Number.isNaN(next) && typeof told !== 'number') {
    throw new TypeError('repeatStrategy must give a time in epoch milliseconds, or undefined');
  }
  return next ? Math.max(next, from) : undefined;
}

/** Times of a pattern are not closer than this. */
const SHORTEST_MS = 1000;

/** Clocks of one deployment are not further apart than this. */
const CLOCKS_MS = 5000;

/** What follows an iteration that was taken. */
export interface NextRun {
  /** As {@link nextRun}. */
  readonly next: number | undefined;
  /** The time right behind the one that was taken, where `next` passes it over by a few seconds: whether it is past is a matter of clocks. */
  readonly first?: number;
  /** The one that was taken is not to run: it was missed. */
  readonly missed: boolean;
}

/**
 * When the iteration runs that follows the one of this slot, by `catchUp` and `jitter`. What was missed of `every` the engine knows.
 * @throws as the strategy
 */
export async function runBehind(
  strategy: RepeatStrategy,
  repeat: RepeatOptions,
  slot: number,
  name: string,
): Promise<NextRun> {
  const { catchUp, jitter = 0, pattern, every = 0, limit, endDate } = repeat;
  const isOver = (ms: number): boolean => endDate !== undefined && ms > (toMillis(endDate) ?? Infinity);
  if (limit !== undefined && iterationOf(repeat) > limit) return { next: undefined, missed: false };
  if (!pattern && catchUp === 'all') return { next: isOver(slot + every) ? undefined : 0, missed: false };
  if (!pattern) return { next: await nextRun(strategy, repeat, slot, name), missed: false };
  const now = Date.now();
  if (!catchUp && !jitter && now - slot < SHORTEST_MS) {
    return { next: await nextRun(strategy, repeat, slot, name), missed: false };
  }
  const after = async (ms: number): Promise<number | undefined> => {
    const next = await firstAfter(strategy, repeat, ms, name);
    return next === undefined || isOver(next) ? undefined : next;
  };
  const following = await after(slot);
  // nothing, or a strategy that goes by the clock alone
  if (following === undefined || following <= slot)
    return { next: await nextRun(strategy, repeat, slot, name), missed: false };
  if (following + jitter >= now || catchUp === 'all') return { next: following, missed: false };
  const next =
    catchUp === 'latest' ? await latestUntil(now, following, after) : await nextRun(strategy, repeat, slot, name);
  const first = following + jitter >= now - CLOCKS_MS ? { first: following } : undefined;
  return { next, missed: catchUp !== undefined, ...first };
}

/** The latest time until `end`, by halves; `known` is one of them. */
async function latestUntil(
  end: number,
  known: number,
  after: (ms: number) => Promise<number | undefined>,
): Promise<number> {
  let latest = known;
  for (let high = end; high - latest > 1;) {
    const middle = Math.floor((latest + high) / 2);
    const next = await after(middle);
    if (next !== undefined && next <= end) latest = next;
    else high = middle;
  }
  return latest;
}

/** Number of the iteration that follows those `repeat.count` tells: 1 is the first. */
export function iterationOf(repeat: RepeatOptions): number {
  return (repeat.count || 0) + 1;
}
