/** The types of loop.mjs, for tests that use it. */
export function now(): number;
export function watchLoop(wasLate: (from: number, to: number) => void, clock?: () => number): void;
export function block(mostMs: number, condition?: () => boolean): boolean;
