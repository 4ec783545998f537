import type { Io } from './command.js';
import { count, rate } from './text.js';

const BETWEEN_MS = 200;

/** One line on a terminal that says how far a command is, drawn over and over; elsewhere nothing. */
export class Progress {
  private readonly began = performance.now();
  private shownAt = -BETWEEN_MS;
  private width = 0;

  /** @param done what becomes of jobs: they are moved */
  constructor(
    private readonly io: Io,
    private readonly done = 'moved',
  ) {}

  /** Seconds since the beginning. */
  get seconds(): number {
    return (performance.now() - this.began) / 1_000;
  }

  show(jobs: number): void {
    const now = performance.now();
    if (!this.io.isTTY || now - this.shownAt < BETWEEN_MS) return;
    this.shownAt = now;
    const line = `${count(jobs)} jobs ${this.done}, ${rate(jobs / Math.max(this.seconds, 0.001))} a second`;
    this.io.stderr.write(`\r${line.padEnd(this.width)}`);
    this.width = line.length;
  }

  /** Takes the line away. */
  end(): void {
    if (this.width > 0) this.io.stderr.write(`\r${' '.repeat(this.width)}\r`);
    this.width = 0;
  }
}
