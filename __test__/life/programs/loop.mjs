// What a program knows of its own event loop, by a clock that all processes of a machine share.

/** Milliseconds. No jump of the system's clock moves it. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

const TICK_MS = 10;
/** A timer that comes so late was held up, by a handler that blocks the loop or by a machine that did not let it run. */
const LATE_MS = 10;

/** Calls `wasLate` with each span in which the event loop did not turn; `clock` gives its times. */
export function watchLoop(wasLate, clock = now) {
  let last = clock();
  setInterval(() => {
    const at = clock();
    if (at - last > TICK_MS + LATE_MS) wasLate(last, at);
    last = at;
  }, TICK_MS).unref();
}

/** Keeps the event loop until a condition holds, `mostMs` at most; whether it came to hold. Costs next to no CPU. */
export function block(mostMs, condition = () => false) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (const since = now(); now() - since < mostMs; Atomics.wait(cell, 0, 0, 2)) if (condition()) return true;
  return false;
}
