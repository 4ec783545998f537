// How many jobs a run has: enough for its clock, and no more than the server is to hold.
import { expect, it } from 'vitest';
import { calibrate, enlarge } from '../../bench/calibrate.js';

const period = { quick: false, seconds: 1 };
const size = { kind: 'calibrated', step: 1, firstProbe: 16 } as const;

it('has a clock that was too short run for longer', () => {
  expect(enlarge(size, period, 100, { jobs: 100, seconds: 0.5, values: {} })).toBe(200);
  expect(enlarge(size, period, 100, { jobs: 100, seconds: 0.7, values: {} })).toBe(100);
});

it('keeps to the most jobs of a size', async () => {
  const runs: number[] = [];
  const probe = async (jobs: number) => {
    runs.push(jobs);
    return { jobs, seconds: jobs / 1_000, values: {} };
  };
  expect(await calibrate({ ...size, most: 244 }, period, probe)).toBe(244);
  expect(Math.max(...runs)).toBe(244);
  expect(await calibrate(size, period, probe)).toBe(1_000);
});
