/**
 * Of the workers of a queue one gathers: it alone holds jobs that are too few for a batch. Two that held some each could wait for each other's for ever. The
 * server knows who it is, for a few seconds, and hears of it again while that goes on. Whoever finds that it is another one gives back what it has,
 * and takes nothing until that one is done.
 */

/** What stays too few for so long, in milliseconds, needs one who gathers: most batches are full by then. */
const PATIENCE_MS = 20;
/** The server takes it to gather for so long: one that is gone does not keep the others. */
const HOLD_MS = 5000;
/** How often it says so again, and hears of a queue that is paused. */
const RENEW_MS = 1000;
/** How often one that rests looks whether the other is done. */
const LOOK_MS = 500;

/** What the engine answers, unless it is a number of jobs (`NativeWorker.gather`). */
const BEHIND_ANOTHER = -1;
const PAUSED = -2;

// Taken at load, so that a user's fake timers do not hold up jobs.
const { setTimeout, clearTimeout } = globalThis;

/** Who holds the jobs, as seen from here. */
interface Holder {
  /** No more jobs than this can be active at once, however long it waits. */
  limit(jobs: number): void;
  /** It must not hold jobs that are too few. */
  giveBack(): void;
  /** It has begun to rest, or has ended that. */
  tellRoom(): void;
}

export class Gatherer {
  /** Whether it takes no jobs, as another one gathers. */
  rests = false;
  private gathers = false;
  /** Whether the server may take it to gather. */
  private isTold = false;
  private timer: NodeJS.Timeout | undefined = undefined;
  /** Counts what it does: an answer from before says nothing any more. */
  private turn = 0;
  /** Calls of the engine go one behind the other. */
  private asked: Promise<unknown> = Promise.resolve();
  private readonly lookMs: number;

  /**
   * @param ask as `NativeWorker.gather`; undefined where that fails: then the next call tells
   * @param timeout milliseconds for which a batch waits for jobs
   */
  constructor(
    private readonly holder: Holder,
    private readonly ask: (ms: number) => Promise<number | undefined>,
    timeout: number,
  ) {
    this.lookMs = Math.max(Math.min(LOOK_MS, timeout), 1);
  }

  /** There are jobs, and too few. */
  begin(): void {
    if (this.gathers) return;
    this.gathers = true;
    this.turn++;
    this.wait(PATIENCE_MS, () => this.claim());
  }

  /** There are none any more, or enough. */
  end(): void {
    if (!this.gathers) return;
    this.gathers = false;
    this.turn++;
    clearTimeout(this.timer);
    if (this.isTold) void this.call(0);
    this.isTold = false;
  }

  /** The worker takes nothing any more, for reasons of its own. */
  stop(): void {
    this.end();
    this.rest(false);
  }

  private wait(ms: number, then: () => Promise<void>): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void then(), ms);
  }

  private call(ms: number): Promise<number | undefined> {
    const answer = this.asked.then(() => this.ask(ms));
    this.asked = answer;
    return answer;
  }

  private async claim(): Promise<void> {
    const { turn } = this;
    this.isTold = true;
    const most = await this.call(HOLD_MS);
    if (turn !== this.turn) return;
    if (most === BEHIND_ANOTHER || most === PAUSED) {
      this.isTold = false;
      this.end();
      if (most === BEHIND_ANOTHER) this.rest(true);
      return this.holder.giveBack();
    }
    this.wait(RENEW_MS, () => this.claim());
    if (most) this.holder.limit(most);
  }

  private rest(rests: boolean): void {
    if (this.rests === rests) return;
    this.rests = rests;
    this.turn++;
    if (rests) this.wait(this.lookMs, () => this.look());
    else clearTimeout(this.timer);
    // before it gives jobs back, which are not for itself
    this.holder.tellRoom();
  }

  private async look(): Promise<void> {
    const { turn } = this;
    const most = await this.call(0);
    if (turn !== this.turn) return;
    if (most === BEHIND_ANOTHER) this.wait(this.lookMs, () => this.look());
    else this.rest(false);
  }
}
