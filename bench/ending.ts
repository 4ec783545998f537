/** How a program of the bench ends: what it says, and with which exit code. */

/** Something that whoever started the program has to mend: it is told in one line, and the exit code is 2. */
export class UsageError extends Error {}

/** Stopped by a signal. */
export class Interrupted extends Error {}

/** How long an interrupted program may take to clean up. */
const CLEANING_LIMIT_MS = 5_000;

/** Rejects when the program is asked to stop. Who asks twice is not kept waiting. */
export function interruption(): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    const stop = (signal: NodeJS.Signals) => {
      reject(new Interrupted(`stopped by ${signal}`));
      for (const again of ['SIGINT', 'SIGTERM'] as const) process.once(again, () => process.exit(130));
      setTimeout(() => process.exit(130), CLEANING_LIMIT_MS).unref();
    };
    process.once('SIGINT', stop).once('SIGTERM', stop);
  });
  interrupted.catch(() => undefined); // it may come when nothing runs that could be interrupted
  return interrupted;
}

/**
 * Runs a program and exits with the code it gives. It exits by force, because a side that failed may have left connections or threads that keep
 * the process alive.
 */
export function runProgram(main: (argv: readonly string[]) => Promise<number>): void {
  // tsx turns source maps on, which makes every stack trace cost several times what it costs a user's compiled program; a
  // scenario whose handlers throw would measure little else.
  process.setSourceMapsEnabled(false);
  main(process.argv.slice(2)).then(
    (code) => process.exit(code),
    (error: unknown) => {
      const expected = error instanceof UsageError || error instanceof Interrupted;
      console.error(expected ? error.message : error);
      process.exit(error instanceof UsageError ? 2 : error instanceof Interrupted ? 130 : 1);
    },
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
