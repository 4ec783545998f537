// The ledger of one process: LEDGER names a file to which each event is appended as a line, `<epoch ms> <event> ...`.
// The write is synchronous, so what is in the ledger outlives the process, however it ends.
import { openSync, readFileSync, writeSync } from 'node:fs';

// The program's own clock may be made to jump.
export const { now } = Date;
const file = openSync(process.env.LEDGER, 'a');

/** Writes lines of one event: `sent <key> <kind>`, `acked <key> <id>` and so on; `account.ts` has them all. */
export function note(event, ...rows) {
  const at = now();
  writeSync(file, rows.map((row) => `${at} ${event} ${row}\n`).join(''));
}

/** Ids of the jobs whose runs have started, and not ended, by this ledger: those in processes of their own, too. */
export function runningBy() {
  const ids = new Map();
  for (const line of readFileSync(process.env.LEDGER, 'utf8').split('\n')) {
    const [, event, , second, , , mark] = line.split(' ');
    if (event === 'started') ids.set(mark, second);
    else if (event === 'ended') ids.delete(second);
  }
  return [...ids.values()];
}

/** The message of an error, on one line. */
export function messageOf(error) {
  return String(error?.message ?? error).replaceAll('\n', ' ');
}
