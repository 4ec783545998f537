// Exactly once: the bench marks each job of a run, and a run in which one is marked twice, or one of another run is, fails.
import { describe, expect, it } from 'vitest';
import type { JobLike } from '../../bench/adapters/library.js';
import { byData, Tally } from '../../bench/scenarios/tally.js';

const job = (id: string, data: unknown = {}) => ({ id, name: 'job', data }) as JobLike;

function tallied(ids: readonly string[], expected: number) {
  const faults: string[] = [];
  const tally = new Tally(expected, ({ message }) => faults.push(message));
  for (const id of ids) tally.add(job(id));
  return { tally, faults };
}

describe('a tally', () => {
  it('is done when each job has come once', async () => {
    const { tally, faults } = tallied(['2', '3', '1'], 3);
    await tally.done;
    expect([tally.count, faults]).toEqual([3, []]);
  });

  it.each([
    ['a job that comes twice', ['1', '1'], 'job 1 (number 0 of 3) came twice'],
    ['a job that comes again when all have come', ['1', '2', '3', '2'], 'job 2 (number 1 of 3) came twice'],
    ['a job of another run', ['1', '4'], 'job 4 (number 3 of 3) is none of this run'],
    ['a job without a number', ['1', 'x'], 'job x (number NaN of 3) is none of this run'],
  ])('refuses %s', (_, ids, fault) => {
    expect(tallied(ids, 3).faults).toEqual([`the end of ${fault}`]);
  });

  it('is not done by a job that comes twice in the place of one that is missing', async () => {
    const { tally } = tallied(['1', '2', '2'], 3);
    expect(await Promise.race([tally.done.then(() => 'done'), Promise.resolve('not done')])).toBe('not done');
    expect(tally.count).toBe(2);
  });

  it('knows jobs by their data where their ids are no numbers', async () => {
    const faults: string[] = [];
    const tally = new Tally(2, ({ message }) => faults.push(message), byData);
    for (const i of [1, 0, 1]) tally.add(job('a-b', { i }));
    await tally.done;
    expect(faults).toEqual([expect.stringContaining('came twice')]);
  });
});
