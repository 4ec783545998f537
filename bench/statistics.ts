/** The value below which `fraction` of the sorted values lie, interpolated between neighbours. */
export function quantile(values: readonly number[], fraction: number): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(position)] ?? NaN;
  const above = sorted[Math.ceil(position)] ?? NaN;
  return below + (above - below) * (position - Math.floor(position));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
  /** First and third quartile. */
  readonly quartiles: readonly [number, number];
}

export function spread(values: readonly number[]): Spread {
  return {
    median: median(values),
    least: quantile(values, 0),
    most: quantile(values, 1),
    quartiles: [quantile(values, 0.25), quantile(values, 0.75)],
  };
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32), so that both sides of a pair draw the same ones. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
