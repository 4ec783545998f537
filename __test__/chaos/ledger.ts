/** Reads the ledgers that the processes of a run wrote. */
import { readFileSync } from 'node:fs';

/** One line: what happened to a job, or to a process, `by` the life of a member (`w1.0`). `at`: epoch ms. */
export interface Entry {
  readonly at: number;
  readonly event: string;
  readonly by: string;
  /** The words behind the event. */
  readonly words: readonly string[];
}

export function readLedger(path: string, by: string): Entry[] {
  const lines = textOf(path).split('\n');
  // what follows the last line's end was being written when the process was killed
  return lines.slice(0, -1).map((line) => {
    const [at, event = '', ...words] = line.split(' ');
    return { at: Number(at), event, by, words };
  });
}

/** A result without what fills it, if that is as it was (programs/handler.mjs): the mark of its run, and the key of its job. */
export function shortened(result: string): string {
  const [, mark = '', bytes = '', filling = '', key = ''] = /^(\S+) (\d+) (\S*) (\S+)$/.exec(result) ?? [];
  const size = Number(bytes);
  const isWhole = mark !== '' && filling === mark.repeat(Math.ceil(size / mark.length)).slice(0, size);
  return isWhole ? `${mark} ${key}` : `torn: ${result.slice(0, 100)} ... ${result.slice(-100)}`;
}

/** Jobs with ids of their own that were sent and of which the sender did not hear again, as a JSON array. */
export function untold(path: string): string {
  const jobs = new Map<string, string>();
  for (const { event, words } of readLedger(path, '')) {
    const [key = '', , , job = '-'] = words;
    if (event === 'sent' && job !== '-') jobs.set(key, words.slice(3).join(' '));
    else if (event === 'acked' || event === 'rejected') jobs.delete(key);
  }
  return `[${[...jobs.values()].join(',')}]`;
}

/** A process that was killed at once has no ledger. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
