/** What a test of a wanted difference expects, once for each library. */
import { isDeepStrictEqual } from 'node:util';

export interface Sides<T> {
  readonly bullmq: T;
  readonly chasquimq: T;
}

/** Gives what the named library is expected to do. Where both were to do the same there is no difference, and the test fails. */
export function sideOf(name: string): <T>(sides: Sides<T>) => T {
  return (sides) => {
    if (isDeepStrictEqual(sides.bullmq, sides.chasquimq)) throw new Error('both sides are expected to be the same');
    return name === 'bullmq' ? sides.bullmq : sides.chasquimq;
  };
}

/** What a call throws, or undefined. */
export function thrown(call: () => unknown): Error | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}
