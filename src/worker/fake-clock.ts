const SystemDate = Date;

/** Whether the program has put a clock of its own in the place of `Date`, as tests do. */
export function isFakeClock(): boolean {
  return globalThis.Date !== SystemDate;
}
