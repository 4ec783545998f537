// Taken at load, so that a user's fake timers do not hold up a close.
const { setTimeout, clearTimeout } = globalThis;
const clock = performance.now.bind(performance);

/** The longest time of a timer, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

/** Until when a close waits. It may come to be sooner, never later. */
export class Deadline {
  /** Resolves once it has come. */
  readonly over: Promise<void>;
  isOver = false;
  private at = Infinity;
  private timer: NodeJS.Timeout | undefined = undefined;
  private end = (): void => {};

  constructor() {
    this.over = new Promise((resolve) => {
      this.end = () => {
        this.isOver = true;
        resolve();
      };
    });
  }

  /** It comes in so many milliseconds at the latest. */
  within(ms: number): void {
    const at = clock() + ms;
    if (at >= this.at) return;
    this.at = at;
    clearTimeout(this.timer);
    this.timer = setTimeout(this.end, Math.min(ms, LONGEST_MS));
  }

  /** It does not come any more. */
  stop(): void {
    this.at = -Infinity;
    clearTimeout(this.timer);
  }
}
