/** Hands pieces on a set time after they came, in order. */

/** Timers of the event loop count in whole milliseconds; what is left of the time is slept. */
const TIMER_GRAIN_MS = 2;

const bell = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps with a precision of microseconds, and keeps the event loop from everything else meanwhile. */
function sleepFor(ms: number): void {
  if (ms > 0) Atomics.wait(bell, 0, 0, ms);
}

export class Delay {
  private readonly held: { readonly due: number; readonly chunk: Buffer }[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly ms: number,
    private readonly hand: (chunk: Buffer) => void,
  ) {}

  push(chunk: Buffer): void {
    if (this.ms === 0) return this.hand(chunk);
    this.held.push({ due: performance.now() + this.ms, chunk });
    if (!this.timer) this.rest();
  }

  private rest(): void {
    const [first] = this.held;
    if (!first) return;
    const left = first.due - performance.now() - TIMER_GRAIN_MS;
    this.timer = setTimeout(() => this.release(), Math.max(left, 0));
    if (left <= 0) {
      clearTimeout(this.timer);
      setImmediate(() => this.release());
    }
  }

  private release(): void {
    for (let first = this.held[0]; first; first = this.held[0]) {
      const left = first.due - performance.now();
      if (left > TIMER_GRAIN_MS) break;
      sleepFor(left);
      this.hand(first.chunk);
      this.held.shift();
    }
    this.timer = undefined;
    this.rest();
  }
}
