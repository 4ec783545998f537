import { constants } from 'node:buffer';

/**
 * UTF-16 units of a piece at most, unless a single text has more. The addon reads a string that was put together only once V8
 * has copied it to one place; from 128 KiB on V8 asks the system for that place, and the faults of its pages cost more than the copying.
 */
const PIECE = 64 * 1024;

/** A text that grows, for the addon, in pieces that are cheap to read. */
export class LongText {
  private pieces: string[] | undefined;
  /** UTF-16 units of the pieces. */
  private ended = 0;
  private last = '';

  /** UTF-16 units of it. */
  get length(): number {
    return this.ended + this.last.length;
  }

  /** Appends texts, all or none. @throws RangeError where the whole is longer than a string may be */
  append(text: string, next = ''): void {
    const last = this.last + text + next;
    if (last.length <= PIECE) this.last = last;
    else this.appendLong(text, next);
  }

  private appendLong(text: string, next: string): void {
    const more = text.length + next.length;
    if (this.length + more > constants.MAX_STRING_LENGTH) throw new RangeError('Invalid string length');
    this.endPiece();
    this.last = text;
    if (more > PIECE) this.endPiece();
    this.last += next;
  }

  private endPiece(): void {
    if (this.last !== '') (this.pieces ??= []).push(this.last);
    this.ended += this.last.length;
    this.last = '';
  }

  /** What was appended, which is then forgotten. */
  take(): string | string[] {
    const { pieces, last } = this;
    this.pieces = undefined;
    this.last = '';
    this.ended = 0;
    if (!pieces) return last;
    if (last !== '') pieces.push(last);
    return pieces;
  }
}
