/** Draws on a terminal, over what was drawn before, and leaves it as it was. */
import type { Io, Output } from './command.js';

const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const CLEAR_LINE = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';

const QUIT = ['q', 'Q', '\x03', '\x04'];

export class Screen {
  readonly #out: Output;
  #isOpen = false;

  constructor(out: Output) {
    this.#out = out;
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#out.write(ENTER);
  }

  /** Shows these lines and nothing else. What does not fit is left out, and the last line says so. */
  draw(lines: readonly string[]): void {
    // a terminal that nobody told its size says 0
    this.#out.write(frame(lines, this.#out.columns || 80, this.#out.rows || 24));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#out.write(LEAVE);
  }
}

/** What makes a terminal of that size show these lines. */
export function frame(lines: readonly string[], columns: number, rows: number): string {
  const hidden = lines.length - rows;
  const fitting = hidden <= 0 ? lines : [...lines.slice(0, rows - 1), `... ${hidden + 1} lines more`];
  return HOME + fitting.map((line) => line.slice(0, columns) + CLEAR_LINE).join('\r\n') + CLEAR_BELOW;
}

/** Calls `quit` when a person types q or Ctrl-C; the answer gives the keyboard back. Without a keyboard nobody types. */
export function listenForQuit({ stdin }: Pick<Io, 'stdin'>, quit: () => void): () => void {
  if (!stdin.isTTY) return () => {};
  const hear = (keys: Buffer | string): void => {
    if (QUIT.some((key) => keys.toString().includes(key))) quit();
  };
  // without it Ctrl-C is a signal, and keys come with the next line
  stdin.setRawMode?.(true);
  stdin.on('data', hear);
  stdin.resume();
  return () => {
    stdin.off('data', hear);
    stdin.setRawMode?.(false);
    stdin.pause();
  };
}
