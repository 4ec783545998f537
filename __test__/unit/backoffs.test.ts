// Pins the arithmetic of backoff.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Backoffs } from '../../src/options/backoffs.js';
import type { BackoffOptions } from '../../src/options/job.js';
import type { MinimalJob } from '../../src/types/minimal-job.js';

const job = { id: '1' } as MinimalJob;
const error = new Error('boom');
const delays = (backoff: BackoffOptions, tries = 3) =>
  Array.from({ length: tries }, (_, i) => Backoffs.calculate(backoff, i + 1, error, job));

afterEach(() => vi.restoreAllMocks());

describe('Backoffs.normalize', () => {
  it.each([
    [5, { type: 'fixed', delay: 5 }],
    [0, { type: 'fixed', delay: 0 }],
    [NaN, undefined],
    [undefined, undefined],
    [null, undefined],
    [{ type: 'mine' }, { type: 'mine' }],
  ])('makes of %j an object', (given, expected) => {
    expect(Backoffs.normalize(given)).toEqual(expected);
  });
});

describe('Backoffs.calculate', () => {
  it('waits equally long with fixed', () => expect(delays({ type: 'fixed', delay: 100 })).toEqual([100, 100, 100]));

  it('doubles with exponential', () => expect(delays({ type: 'exponential', delay: 100 })).toEqual([100, 200, 400]));

  it('takes the random share from the top', () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    expect(delays({ type: 'fixed', delay: 100, jitter: 0.25 }, 1)).toEqual([75]);
    random.mockReturnValue(0.999);
    expect(delays({ type: 'exponential', delay: 100, jitter: 0.5 }, 2)).toEqual([99, 199]);
  });

  it('is undefined without a backoff', () => expect(Backoffs.calculate(undefined, 1, error, job)).toBeUndefined());

  it('asks the custom strategy for any other type, and tells it all', () => {
    const strategy = vi.fn(() => 7);
    expect(Backoffs.calculate({ type: 'mine', delay: 1 }, 2, error, job, strategy)).toBe(7);
    expect(strategy).toHaveBeenCalledWith(2, 'mine', error, job);
  });

  it('prefers the built-in strategies to a custom one', () => {
    expect(Backoffs.calculate({ type: 'fixed', delay: 3 }, 1, error, job, () => 7)).toBe(3);
  });

  it.each(['mine', 'constructor', undefined])('throws for type %s without a strategy', (type) => {
    expect(() => Backoffs.calculate({ type } as BackoffOptions, 1, error, job)).toThrow(
      `Unknown backoff strategy ${type}.\n      If a custom backoff strategy is used, specify it when the queue is created.`,
    );
  });
});
