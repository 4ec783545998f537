/**
 * What this machine takes at the moment: when this process or a server was late, and the pace of known work. What waited then says nothing of
 * anybody but the machine.
 */
import type { Redis } from 'ioredis';
import type { Span } from './idleness.js';
import { doKnownWork } from './pace.js';
import { sleep } from './waiting.js';

const TICK_MS = 10;
/** An answer, or a timer, that comes so much later than it should. */
const LATE_MS = 10;
const PACE_EVERY_MS = 100;

export class Lateness {
  /** In which this process, or one of the servers, did not answer. */
  readonly late: Span[] = [];
  readonly #paces: number[] = [];
  readonly #clock: () => number;
  readonly #timers: NodeJS.Timeout[];
  #asking: Promise<unknown>;
  #isOver = false;

  /** Begins to watch; `clock`: the one of the records that are held against it. */
  constructor(servers: readonly Redis[], clock: () => number) {
    this.#clock = clock;
    let last = clock();
    const tick = () => {
      const [from, to] = [last, (last = clock())];
      if (to - from > TICK_MS + LATE_MS) this.late.push({ from, to });
    };
    const measure = () => this.#paces.push(doKnownWork(1));
    measure();
    this.#timers = [setInterval(tick, TICK_MS), setInterval(measure, PACE_EVERY_MS)];
    this.#asking = Promise.all(servers.map((server) => this.#ask(server)));
  }

  /** Milliseconds that known work takes, half of the times: 1 on a machine of 2025 that does nothing else. */
  get pace(): number {
    return this.#paces.sort((one, other) => one - other)[this.#paces.length >> 1] ?? 1;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#asking;
  }

  async #ask(server: Redis): Promise<void> {
    while (!this.#isOver) {
      const from = this.#clock();
      await server.ping().catch(() => undefined);
      const to = this.#clock();
      if (to - from > LATE_MS) this.late.push({ from, to });
      // servers are asked at their own pace
      await sleep(TICK_MS);
    }
  }
}
