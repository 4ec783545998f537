import type { NativeWorker } from '../native/types.js';

/** How many words there are, and bits of an offset; as `Words` of the engine's `offers.rs` has them. */
const [WORD_BITS, OFFSET_BITS] = [9, 12];
const WORDS = 2 ** WORD_BITS;
const OFFSETS = 2 ** OFFSET_BITS - 1;
const TAGS = 0xff;

// Taken at load: fake timers of a user's stand still. Of all clocks this one goes on while a machine sleeps.
const clock = Date.now.bind(Date);

/**
 * Draws jobs that the engine has delivered, each right before it starts: until then the engine can take it back, whatever this thread does. What is
 * drawn of a batch stands in a word that both sides change by compare-and-swap.
 */
export class Drawing {
  private readonly words: Int32Array;
  private allowedAt = -1;

  constructor(private readonly native: Pick<NativeWorker, 'words' | 'mayStart'>) {
    this.words = native.words();
  }

  /** Whether jobs may start now: the lease lasts. A thread that has stood still finds out here. If not, the engine takes everything back. */
  mayStart(): boolean {
    const now = clock();
    // one look is good for this millisecond
    if (now === this.allowedAt) return true;
    if (!this.native.mayStart()) return false;
    this.allowedAt = now;
    return true;
  }

  /** Draws the next job of a batch. False: the engine has taken it back, and all behind it. */
  draw(offer: number): boolean {
    const { words } = this;
    const at = offer & (WORDS - 1);
    const tag = (offer >>> WORD_BITS) & TAGS;
    for (;;) {
      const word = Atomics.load(words, at);
      const [next, end] = [word & OFFSETS, (word >>> OFFSET_BITS) & OFFSETS];
      if (word >>> (2 * OFFSET_BITS) !== tag || next >= end) return false;
      if (Atomics.compareExchange(words, at, word, word + 1) === word) return true;
    }
  }
}
