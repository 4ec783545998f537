/** Gets the number of failed connection attempts; any answer but a number ends them. Named as in ioredis. */
export type RetryStrategy = (times: number) => unknown;

/** Milliseconds until the connection is asked for again, when no command keeps the engine trying. */
const ASK_AGAIN_MS = 1000;

// Taken at load, so that a user's fake timers do not hold up connections.
const { setTimeout } = globalThis;

/** Whether no waiting helps: the server is too old. */
function isUnfit(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ERR_SERVER_TOO_OLD';
}

/**
 * Whether a connection of the engine is usable. The engine connects, and connects again, on its own schedule; the
 * user's `retryStrategy`, if there is one, only says when to give up.
 */
export class Readiness {
  /** The connection is open, as far as is known. */
  isUp = false;
  /** The last that was heard of the connection is that it failed. */
  isDown = false;
  /** It was open at some time. */
  wasUp = false;
  /** The error with which `retryStrategy` gave up. */
  surrendered: Error | undefined = undefined;
  /** Resolves when the connection is open, or has failed, for the first time. */
  readonly news: Promise<void>;
  private tell = (): void => {};
  private failures = 0;
  private waiting: Promise<void> | undefined = undefined;
  private surrender: (error: Error) => void = () => {};
  private stopWaiting: () => void = () => {};
  private stopped = false;

  /**
   * @param ready resolves when the engine is connected; may reject after each failed try
   * @param onSurrender called once, when `retryStrategy` gives up
   */
  constructor(
    private readonly ready: () => Promise<void>,
    private readonly retryStrategy: RetryStrategy | undefined,
    private readonly onSurrender: (error: Error) => void = () => {},
  ) {
    this.news = new Promise((resolve) => (this.tell = resolve));
  }

  /** Resolves when the connection is open, or is being closed; rejects when `retryStrategy` has given up, or the server is
   * too old. */
  wait(): Promise<void> {
    if (this.surrendered) return Promise.reject(this.surrendered);
    if (this.stopped || this.isUp) return Promise.resolve();
    return (this.waiting ??= this.keepAsking().finally(() => (this.waiting = undefined)));
  }

  private async keepAsking(): Promise<void> {
    for (;;) {
      if (this.surrendered) throw this.surrendered;
      if (this.stopped) return;
      // one a round: it keeps what raced with it for as long as it is pending
      const end = new Promise<void>((resolve, reject) => ([this.stopWaiting, this.surrender] = [resolve, reject]));
      try {
        await Promise.race([this.ready(), end]);
        if (this.stopped) return;
        this.failures = 0;
        this.isUp = this.wasUp = true;
        this.isDown = false;
        this.tell();
        return;
      } catch (error) {
        if (this.surrendered || isUnfit(error)) throw error;
        if (this.stopped) return;
        await Promise.race([end, new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS).unref())]);
      }
    }
  }

  /** A try to connect has failed. */
  failed(error: Error): void {
    this.isUp = false;
    this.isDown = true;
    this.tell();
    if (!this.retryStrategy || this.surrendered) return;
    const reason = this.reasonToSurrender(this.retryStrategy, error);
    if (!reason) return;
    this.surrendered = reason;
    this.surrender(reason);
    this.onSurrender(reason);
  }

  private reasonToSurrender(retryStrategy: RetryStrategy, error: Error): Error | undefined {
    try {
      return typeof retryStrategy(++this.failures) === 'number' ? undefined : error;
    } catch (thrown) {
      return thrown instanceof Error ? thrown : new Error(String(thrown));
    }
  }

  /** It is not open any more, or still not: the engine connects again. */
  lost(): void {
    this.isUp = false;
    this.isDown = true;
    // whoever waits is told; here it only keeps `isUp` right
    if (!this.stopped && !this.waiting) this.wait().catch(() => {});
  }

  /** The connection is being closed: nobody waits for it any more. */
  stop(): void {
    this.isUp = false;
    this.stopped = true;
    this.stopWaiting();
  }
}
