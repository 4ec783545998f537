import type { RepeatOptions } from '../options/repeat.js';

/** Computes the next run (epoch ms) of a job scheduler with a custom pattern; undefined ends it. */
export type RepeatStrategy = (
  millis: number,
  opts: RepeatOptions,
  name?: string,
) => number | undefined | Promise<number | undefined>;
