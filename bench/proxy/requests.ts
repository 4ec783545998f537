/** Reads what clients send, as far as counting needs it: where a command ends, and what it is called. */

const LINE_FEED = 10;
const LENGTH_OF_LINE_END = 2;

/** Commands of one connection, as they pass by in pieces of any size. */
export class RequestReader {
  /** Bytes of the value under way that are still to come, its line end included. */
  private toSkip = 0;
  /** Values of the command under way that have not ended. */
  private valuesLeft = 0;
  private isName = false;
  private name = '';
  private line = '';

  /** @param onCommand is told the name of each command, in capitals, when its last byte has passed */
  constructor(private readonly onCommand: (name: string) => void) {}

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.toSkip > 0 ? this.pass(chunk, at) : this.readLine(chunk, at);
  }

  /** Passes over a value; that of a command's name is kept. */
  private pass(chunk: Buffer, at: number): number {
    const end = Math.min(at + this.toSkip, chunk.length);
    if (this.isName) this.name += chunk.toString('latin1', at, end);
    this.toSkip -= end - at;
    if (this.toSkip > 0) return end;
    this.isName = false;
    this.valuesLeft -= 1;
    if (this.valuesLeft === 0) this.onCommand(this.name.trim().toUpperCase());
    return end;
  }

  /** `*3` begins a command of three values, `$5` a value of five bytes. */
  private readLine(chunk: Buffer, at: number): number {
    const feed = chunk.indexOf(LINE_FEED, at);
    const end = feed < 0 ? chunk.length : feed + 1;
    this.line += chunk.toString('latin1', at, end);
    if (feed < 0) return end;
    const line = this.line.trim();
    this.line = '';
    if (line.startsWith('*')) {
      this.valuesLeft = Number(line.slice(1));
      this.name = '';
    } else if (line.startsWith('$')) {
      this.isName = this.name === '';
      this.toSkip = Number(line.slice(1)) + LENGTH_OF_LINE_END;
    } else if (line !== '') {
      throw new Error(`no command of RESP begins with ${line.slice(0, 40)}`);
    }
    return end;
  }
}
