/** Milliseconds of the clock that all processes of a machine share. No jump of the system's clock moves it. */
export const sharedClock = (): number => Number(process.hrtime.bigint()) / 1e6;
