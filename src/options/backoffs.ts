import type { BackoffOptions } from './job.js';
import type { BackoffStrategy } from '../types/backoff-strategy.js';
import type { MinimalJob } from '../types/minimal-job.js';

/** Longest delay, in milliseconds, and latest time: what JavaScript and Lua count without a gap. The engine has the same. */
export const LONGEST_DELAY_MS = Number.MAX_SAFE_INTEGER;

/** Strategies by name; each takes the job's base delay (ms) and jitter. */
export interface BuiltInStrategies {
  /** The strategy of that name. */
  [index: string]: (delay: number, jitter?: number) => BackoffStrategy;
}

/**
 * How long a failed job waits for its next try.
 * The engine computes the built-in strategies itself; this class serves custom strategies and callers of BullMQ's API.
 * Source: BullMQ 6.7.0 `Backoffs`.
 */
export class Backoffs {
  /** `fixed` and `exponential`. */
  static builtinStrategies: BuiltInStrategies = {
    fixed:
      (delay, jitter = 0) =>
      () =>
        withJitter(delay, jitter),
    exponential:
      (delay, jitter = 0) =>
      (attemptsMade) =>
        withJitter(Math.round(2 ** (attemptsMade - 1) * delay), jitter),
  };

  /** A number is a fixed delay in milliseconds. Anything else that is not empty is left as it is. */
  static normalize(backoff: number | BackoffOptions | null | undefined): BackoffOptions | undefined {
    if (typeof backoff === 'number' && Number.isFinite(backoff)) return { type: 'fixed', delay: backoff };
    return backoff ? (backoff as BackoffOptions) : undefined;
  }

  /**
   * Milliseconds until the next try; undefined without `backoff`. Built-in names win over the custom strategy.
   * @param attemptsMade counts the failure at hand: 1 after the first
   * @throws Error `Unknown backoff strategy <type>...` when there is no strategy for the type
   */
  static calculate(
    backoff: BackoffOptions | undefined,
    attemptsMade: number,
    err: Error,
    job: MinimalJob,
    customStrategy?: BackoffStrategy,
  ): Promise<number> | number | undefined {
    if (!backoff) return undefined;
    const builtIn = Object.hasOwn(Backoffs.builtinStrategies, backoff.type)
      ? Backoffs.builtinStrategies[backoff.type]
      : undefined;
    const strategy = builtIn ? builtIn(backoff.delay as number, backoff.jitter) : customStrategy;
    if (!strategy) {
      throw new Error(
        `Unknown backoff strategy ${backoff.type}.\n      If a custom backoff strategy is used, specify it when the queue is created.`,
      );
    }
    return strategy(attemptsMade, backoff.type, err, job);
  }
}

/** The strategies as the engine has them, whatever users put in their place. */
const ENGINE_STRATEGIES = { ...Backoffs.builtinStrategies };

/** Whether the engine computes the delay by itself. It takes numbers; what else JavaScript calculates with is left to it. */
export function isEngineBackoff({ type, delay = 0, jitter = 0 }: BackoffOptions): boolean {
  if (!Object.hasOwn(ENGINE_STRATEGIES, type) || typeof delay !== 'number' || typeof jitter !== 'number') return false;
  return Backoffs.builtinStrategies[type] === ENGINE_STRATEGIES[type];
}

/** Draws evenly from the last `jitter` share of `delay`. */
function withJitter(delay: number, jitter: number): number {
  return jitter > 0 ? Math.floor(Math.random() * delay * jitter + delay * (1 - jitter)) : delay;
}
