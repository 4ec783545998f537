import type { NativeWorker } from '../native/types.js';

/** How many words there are, and bits of an offset; as the engine's `offers/words.rs` has them. */
const [WORD_BITS, OFFSET_BITS] = [9, 12];
const WORDS = 2 ** WORD_BITS;
const OFFSETS = 2 ** OFFSET_BITS - 1;
const TAGS = 0xff;

/**
 * Draws jobs that the engine has delivered, each right before it starts: until then the engine can take it back, whatever this thread does. What is
 * drawn of a batch stands in a word that both sides change by compare-and-swap.
 *
 * This path is hot: a job in a row of short ones takes little longer than all that is done here.
 */
export class Drawing {
  private readonly words: Int32Array;
  private allowedAt = -1;
  /** Of the offer that was drawn from last: its word, and what that has in its upper bits. */
  private offer = -1;
  private at = 0;
  private tag = 0;

  constructor(private readonly native: Pick<NativeWorker, 'words' | 'mayStart'>) {
    this.words = native.words();
  }

  /**
   * Whether jobs may start now: the lease lasts. A thread that has stood still finds out here. If not, the engine takes everything back.
   * @param now ms of a clock that goes on meanwhile
   */
  mayStart(now: number): boolean {
    // one look is good for this millisecond
    return now === this.allowedAt || this.look(now);
  }

  private look(now: number): boolean {
    if (!this.native.mayStart()) return false;
    this.allowedAt = now;
    return true;
  }

  /** Draws the next job of a batch. False: the engine has taken it back, and all behind it. */
  draw(offer: number): boolean {
    if (offer !== this.offer) this.turnTo(offer);
    const { words, at } = this;
    for (;;) {
      // one that is out of date is not swapped
      const word = words[at];
      if (word >>> (2 * OFFSET_BITS) !== this.tag || (word & OFFSETS) >= ((word >>> OFFSET_BITS) & OFFSETS))
        return false;
      if (Atomics.compareExchange(words, at, word, word + 1) === word) return true;
    }
  }

  private turnTo(offer: number): void {
    this.offer = offer;
    this.at = offer & (WORDS - 1);
    this.tag = (offer >>> WORD_BITS) & TAGS;
  }
}
