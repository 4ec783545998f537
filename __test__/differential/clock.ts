/** The clock of a program: runs as the real one does, and leaps when it is told to. */
const real = Date.now.bind(Date);

export class Clock {
  #ahead = 0;

  /** From now on it is `ms` later, or earlier. Timers go on as ever: a user who fakes the date alone has the same. */
  leap(ms: number): void {
    this.#ahead += ms;
    Date.now = () => real() + this.#ahead;
  }

  restore(): void {
    Date.now = real;
  }
}
