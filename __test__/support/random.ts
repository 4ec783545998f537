/** Numbers that look random and are the same in every run: `next(n)` gives one of 0 .. n - 1. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  // mulberry32
  next(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  }
}
