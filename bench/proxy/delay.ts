/** Hands pieces on a set time after they came, in order. */

/** Timers of the event loop count in whole milliseconds. What is left of the time is spent awake: pieces that come meanwhile must not wait. */
const TIMER_GRAIN_MS = 2;

export class Delay {
  private readonly held: { readonly due: number; readonly chunk: Buffer }[] = [];
  private isWaiting = false;

  constructor(
    private readonly ms: number,
    private readonly hand: (chunk: Buffer) => void,
  ) {}

  push(chunk: Buffer): void {
    if (this.ms === 0) return this.hand(chunk);
    this.held.push({ due: performance.now() + this.ms, chunk });
    if (!this.isWaiting) this.wait();
  }

  private wait(): void {
    const [first] = this.held;
    this.isWaiting = first !== undefined;
    if (!first) return;
    const left = first.due - performance.now() - TIMER_GRAIN_MS;
    if (left > 0) setTimeout(() => this.release(), left);
    else setImmediate(() => this.release());
  }

  private release(): void {
    const now = performance.now();
    const waiting = this.held.findIndex(({ due }) => due > now);
    for (const { chunk } of this.held.splice(0, waiting < 0 ? this.held.length : waiting)) this.hand(chunk);
    this.wait();
  }
}
