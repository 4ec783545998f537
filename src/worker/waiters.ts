/** Promises of those who wait until something is so; asked anew at each `wake`. */
export class Waiters {
  private readonly waiting: { until: () => boolean; resolve: () => void }[] = [];
  private stopped = false;

  until(until: () => boolean): Promise<void> {
    if (this.stopped || until()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ until, resolve }));
  }

  wake(): void {
    for (let i = this.waiting.length; i-- > 0;) {
      const { until, resolve } = this.waiting[i];
      if (!this.stopped && !until()) continue;
      this.waiting.splice(i, 1);
      resolve();
    }
  }

  /** Lets all go, and nobody waits any more. */
  stop(): void {
    this.stopped = true;
    this.wake();
  }
}
