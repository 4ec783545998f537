/** How a wanted difference from BullMQ touches whoever moves: not at all, where they should look, or where code breaks. */
export type Impact = 'none' | 'check' | 'breaking';

/** A wanted difference from BullMQ 6.7. `differences.ts` lists them; the documentation and `chasquimq doctor` are made from it. */
export interface Difference {
  /** Stable, in kebab-case: documentation and reports refer to it. */
  readonly id: string;
  /** What it is about, in a few words. */
  readonly title: string;
  /** What BullMQ does. */
  readonly bullmq: string;
  /** What ChasquiMQ does. */
  readonly chasquimq: string;
  readonly why: string;
  readonly impact: Impact;
  /** The file of the test that proves it, from the package's root. */
  readonly test: string;
  /**
   * What code that is touched by it looks like; `doctor` reports a difference with patterns only where one of them is found. Without
   * patterns it is one that no reader of code can see.
   */
  readonly detect?: readonly Detect[];
}

/**
 * A pattern in a code base. Exactly one of the three; comments and the insides of texts are no code and are not looked at.
 */
export type Detect =
  /** A method that is called: `close` finds `worker.close(` and `await this.queue.close (`. */
  | { readonly call: string }
  /**
   * An option that is given: `reconnectOnError` finds `{ reconnectOnError: ... }` and `{ reconnectOnError }`. With `to` only in what
   * this method is called with, at any depth.
   */
  | { readonly option: string; readonly to?: string }
  /** An event that is listened to: `locksRenewed` finds `.on('locksRenewed'`. */
  | { readonly event: string };

/** The differences of a topic. Unless one says otherwise, the test that proves it is in the file of the topic. */
export function differencesOf(
  topic: string,
  list: readonly (Omit<Difference, 'test'> & Partial<Pick<Difference, 'test'>>)[],
): readonly Difference[] {
  return list.map((each) => ({ test: `__test__/parity/differences.${topic}.test.ts`, ...each }));
}
