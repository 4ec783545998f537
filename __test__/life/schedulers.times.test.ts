// Checks when schedulers run next: our wrapper against cron-parser alone, and against what bullmq exports.
import { CronExpressionParser } from 'cron-parser';
import * as bullmq from 'bullmq';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { checkRepeat, defaultRepeatStrategy, getNextMillis, nextRun } from '../../src/scheduler/next-run.js';
import type { RepeatOptions } from '../../src/options/repeat.js';
import { Random } from '../support/random.js';

const SEED = 20310506;
const COMPARED = 10_000;
const COMPARED_WITH_BULLMQ = 1_000;
const FROM = Date.UTC(2019, 0, 1);
const SPAN_S = 15 * 366 * 86_400;

/** Zones with and without daylight saving, on both halves of the world, with odd offsets and odd changes. */
const ZONES = [
  ...[
    'UTC',
    'Europe/Paris',
    'Europe/London',
    'Europe/Moscow',
    'America/New_York',
    'America/Los_Angeles',
    'America/Lima',
  ],
  ...[
    'America/Sao_Paulo',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'Australia/Sydney',
    'Asia/Kolkata',
    'Asia/Kathmandu',
  ],
  ...['Asia/Tehran', 'Africa/Cairo', 'Africa/Casablanca', 'Pacific/Auckland', 'Pacific/Apia', 'Antarctica/Troll'],
];
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** One field of a pattern: a star, a value, a list, a range, a step, or a range with a step. */
function field(random: Random, low: number, high: number): string {
  const value = () => low + random.next(high - low + 1);
  const range = () => [value(), value()].sort((a, b) => a - b).join('-');
  switch (random.next(7)) {
    case 0:
    case 1:
      return '*';
    case 2:
      return String(value());
    case 3:
      return [value(), value(), value()].join(',');
    case 4:
      return range();
    case 5:
      return `*/${1 + random.next(high - low + 1)}`;
    default:
      return `${range()}/${1 + random.next(5)}`;
  }
}

function pattern(random: Random): string {
  const chosen = <T>(values: readonly T[]): T => values[random.next(values.length)];
  if (random.next(20) === 0)
    return chosen(['@hourly', '@daily', '@weekly', '@monthly', '@yearly', 'nonsense', '99 * * * *']);
  // dates that never come take the parser a while
  const day = random.next(12) === 0 ? 'L' : field(random, 1, random.next(50) === 0 ? 31 : 28);
  const month = random.next(6) === 0 ? chosen(MONTHS) : field(random, 1, 12);
  const weekdays = [chosen(DAYS), `${random.next(7)}#${1 + random.next(4)}`, `${random.next(7)}L`, field(random, 0, 7)];
  const weekday = random.next(4) === 0 ? chosen(weekdays) : '*';
  const fields = [field(random, 0, 59), field(random, 0, 23), day, month, weekday];
  return (random.next(2) ? [field(random, 0, 59), ...fields] : fields).join(' ');
}

function repeatOf(random: Random, millis: number): RepeatOptions {
  const some = <T>(odds: number, value: T): T | undefined => (random.next(odds) === 0 ? value : undefined);
  const near = millis + (random.next(400) - 200) * 86_400_000;
  const forms = [near, new Date(near), new Date(near).toISOString()];
  return {
    pattern: pattern(random),
    tz: some(2, ZONES[random.next(ZONES.length)]) ?? 'UTC',
    startDate: some(5, forms[random.next(3)]),
    endDate: some(8, forms[random.next(3)]),
  };
}

/** A time, or the message of the error. */
function outcome(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return (error as Error).message;
  }
}

/** What cron-parser says by itself. */
function expected(millis: number, repeat: RepeatOptions): number | undefined {
  const { startDate } = repeat;
  const currentDate = startDate && new Date(startDate).getTime() > millis ? new Date(startDate) : new Date(millis);
  const dates = CronExpressionParser.parse(repeat.pattern as string, { ...repeat, currentDate });
  return dates.hasNext() ? dates.next().getTime() : undefined;
}

describe('the next run', () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it(`of ${COMPARED} random patterns, zones and dates is cron-parser's`, () => {
    const random = new Random(SEED);
    let times = 0;
    for (let i = 0; i < COMPARED; i++) {
      const millis = FROM + random.next(SPAN_S) * 1000 + random.next(1000);
      const repeat = repeatOf(random, millis);
      const ours = outcome(() => defaultRepeatStrategy(millis, repeat));
      const theirs = outcome(() => expected(millis, repeat));
      expect(ours, `${i}: ${JSON.stringify({ millis, repeat })}`).toEqual(theirs);
      if (typeof ours === 'number') times++;
    }
    // most of them are good patterns
    expect(times).toBeGreaterThan(COMPARED / 2);
  });

  it(`of ${COMPARED_WITH_BULLMQ} of them is BullMQ's`, () => {
    const random = new Random(SEED + 1);
    for (let i = 0; i < COMPARED_WITH_BULLMQ; i++) {
      const millis = FROM + random.next(SPAN_S) * 1000 + random.next(1000);
      const repeat = repeatOf(random, millis);
      const say = `${i}: ${JSON.stringify({ millis, repeat })}`;
      const theirs = outcome(() => bullmq.getNextMillis(millis, repeat));
      expect(
        outcome(() => getNextMillis(millis, repeat)),
        say,
      ).toEqual(theirs);
      expect(
        outcome(() => defaultRepeatStrategy(millis, repeat)),
        say,
      ).toEqual(outcome(() => bullmq.defaultRepeatStrategy(millis, repeat)));
    }
  });

  it('of `every` is the next multiple', () => {
    const random = new Random(SEED + 2);
    for (let i = 0; i < 1_000; i++) {
      const [millis, repeat] = [random.next(2 ** 31), { every: 1 + random.next(100_000), immediately: i % 2 === 0 }];
      expect(getNextMillis(millis, repeat)).toBe(bullmq.getNextMillis(millis, repeat));
    }
    expect(getNextMillis(12_345, { every: 5_000 })).toBe(15_000);
    expect(getNextMillis(12_345, { every: 5_000, immediately: true })).toBe(10_000);
  });

  it('is now with `immediately`, when the pattern is one', () => {
    vi.useFakeTimers({ now: 1_234 });
    expect(getNextMillis(5, { pattern: '* * * * *', immediately: true })).toBe(1_234);
    expect(defaultRepeatStrategy(5, { pattern: '* * * * *', immediately: true })).toBe(1_234);
    expect(() => defaultRepeatStrategy(5, { pattern: 'x', immediately: true })).toThrow('Invalid characters');
  });

  it('is refused of both at once', () => {
    expect(() => getNextMillis(5, { pattern: '* * * * *', every: 5 })).toThrow('Both .pattern and .every options');
  });

  it('is not before now, nor before the run before', async () => {
    vi.spyOn(Date, 'now').mockImplementation(() => 1_000);
    const asked: number[] = [];
    const strategy = (millis: number) => {
      asked.push(millis);
      return 500.5;
    };
    expect(await nextRun(strategy, { pattern: 'p' }, 0, 'n')).toBe(1_000);
    expect(await nextRun(strategy, { pattern: 'p' }, 3_000, 'n')).toBe(3_000);
    expect(await nextRun(() => 4_000.5, { pattern: 'p' }, 3_000, 'n')).toBe(4_001);
    expect(asked).toEqual([1_000, 3_000]);
  });

  it('is none past the limit or the end, or when the strategy gives none', async () => {
    vi.spyOn(Date, 'now').mockImplementation(() => 1_000);
    const strategy = () => 2_000;
    expect(await nextRun(strategy, { pattern: 'p', limit: 2, count: 1 }, 0, 'n')).toBe(2_000);
    expect(await nextRun(strategy, { pattern: 'p', limit: 2, count: 2 }, 0, 'n')).toBeUndefined();
    expect(await nextRun(strategy, { pattern: 'p', endDate: 1_000 }, 0, 'n')).toBe(2_000);
    expect(await nextRun(strategy, { pattern: 'p', endDate: 999 }, 0, 'n')).toBeUndefined();
    for (const nothing of [undefined, 0, NaN, null as unknown as undefined]) {
      expect(await nextRun(() => nothing, { pattern: 'p' }, 0, 'n')).toBeUndefined();
    }
    expect(await nextRun(strategy, { every: 5 }, 0, 'n')).toBe(0);
  });

  it.each([
    [{ every: 1.5 }, 'every must be a whole number of milliseconds, at least 1'],
    [{ every: -5 }, 'every must be a whole number of milliseconds, at least 1'],
    [{ every: Infinity }, 'every must be a whole number of milliseconds, at least 1'],
    [{ every: 'x' as unknown as number }, 'every must be a whole number of milliseconds, at least 1'],
    [{ every: 5, offset: -1 }, 'offset must be a whole number of milliseconds, at least 0'],
    [{ every: 5, offset: 0.5 }, 'offset must be a whole number of milliseconds, at least 0'],
    [{ every: 5, startDate: 'soon' }, 'startDate must be a date'],
    [{ every: 5, endDate: 'late' }, 'endDate must be a date'],
  ])('of %j is refused', (repeat, message) => {
    expect(() => checkRepeat(repeat)).toThrow(new RangeError(message));
  });
});
