// The operations of the bench of depths: each is done to a job that is there, in each round to others.
import { describe, expect, it } from 'vitest';
import { operations } from '../../bench/depth/operations.js';
import type { Side } from '../../bench/depth/operations.js';

const clock = { start: () => undefined, stop: () => undefined };
const operation = (name: string) => operations.find((one) => one.name === name)!;

/** A queue of a thousand jobs, of which one can be removed once. */
function sideOf(ids: Set<string>) {
  const asked: string[] = [];
  const queue = {
    getJob: async (id: string) => (asked.push(id), ids.has(id) ? {} : undefined),
    remove: async (id: string) => (asked.push(id), ids.delete(id) ? 1 : 0),
  };
  const side = { library: { name: 'a library' }, queue, ids: { first: 1, last: 1_000 } } as unknown as Side;
  return { side, asked };
}

const thousand = () => new Set(Array.from({ length: 1_000 }, (_, i) => String(i + 1)));

describe.each(['getJob', 'remove'])('%s', (name) => {
  it('is of other jobs in each round', async () => {
    const { side, asked } = sideOf(thousand());
    for (const round of [0, 1, 2]) expect(await operation(name).run(side, { round, times: 10 }, clock)).toBe(10);
    expect(new Set(asked).size).toBe(30);
  });

  it('fails where the job is not there', async () => {
    const { side, asked } = sideOf(new Set());
    await expect(operation(name).run(side, { round: 0, times: 10 }, clock)).rejects.toThrow(
      'a library: job 500 was to be there',
    );
    expect(asked).toEqual(['500']);
  });
});
