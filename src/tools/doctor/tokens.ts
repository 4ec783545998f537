/**
 * Takes JavaScript and TypeScript apart into words, texts and signs, each with its line. It is no parser: it knows no grammar and no
 * types, and reads JSX as if it were expressions. What it gets right is what doctor needs: comments and the insides of texts are no
 * code, expressions inside template texts are, and a slash after a value divides.
 */

export interface Token {
  readonly kind: 'word' | 'text' | 'sign' | 'other';
  /** The word, the sign, or what a text says. */
  readonly text: string;
  /** From 1. */
  readonly line: number;
}

const SPACE = /\s+/y;
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y;
const WORD = /[#@]?[\p{L}_$][\p{L}\p{N}_$]*/uy;
const NUMBER = /(?:0[xobXOB])?\d[\w.]*/y;
const TEXT = /'(?:\\[\s\S]|[^'\\\n])*'?|"(?:\\[\s\S]|[^"\\\n])*"?/y;
const REGEX = /\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;
const SIGN = /=>|\?\.|\.\.\.|[\s\S]/y;

/** Words after which a slash begins a regular expression. */
const BEFORE_REGEX = new Set(
  'return typeof case in of delete void throw new else do await yield instanceof'.split(' '),
);

/** The tokens of a file. */
export function tokensOf(source: string): Token[] {
  const scanner = new Scanner(source);
  scanner.code(false);
  return scanner.tokens;
}

class Scanner {
  readonly tokens: Token[] = [];
  #at = 0;
  #line = 1;
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  /** Reads code to its end: of the file, or of the expression in a template text. */
  code(isInTemplate: boolean): void {
    for (let depth = 0; this.#at < this.#source.length;) {
      if (this.#skipped(SPACE) || this.#skipped(COMMENT)) continue;
      const letter = this.#source[this.#at];
      if (letter === '`') {
        this.#template();
        continue;
      }
      if (isInTemplate && letter === '}' && depth === 0) return;
      if (letter === '{') depth++;
      if (letter === '}') depth--;
      this.#next();
    }
  }

  #next(): void {
    const taken =
      this.#take(WORD, 'word') ||
      this.#take(NUMBER, 'other') ||
      this.#takeText() ||
      (this.#mayBeRegex() && this.#take(REGEX, 'other')) ||
      this.#take(SIGN, 'sign');
    if (!taken) this.#at++;
  }

  #take(pattern: RegExp, kind: Token['kind']): boolean {
    const text = this.#match(pattern);
    if (text === undefined) return false;
    this.#push(kind, text);
    return true;
  }

  #takeText(): boolean {
    const text = this.#match(TEXT);
    if (text === undefined) return false;
    this.#push('text', text, text.slice(1, text.length > 1 && text.endsWith(text[0] ?? '') ? -1 : undefined));
    return true;
  }

  /** A template text without expressions is a text; of another the expressions are code, and the whole stands behind them. */
  #template(): void {
    const [from, line] = [this.#at, this.#line];
    let isPlain = true;
    this.#at++;
    while (this.#at < this.#source.length && this.#source[this.#at] !== '`') {
      if (this.#source[this.#at] === '\\') this.#pass(2);
      else if (this.#source.startsWith('${', this.#at)) {
        isPlain = false;
        this.#at += 2;
        this.code(true);
        this.#pass(1);
      } else this.#pass(1);
    }
    this.#at++;
    const text = this.#source.slice(from + 1, this.#at - 1);
    this.tokens.push({ kind: isPlain ? 'text' : 'other', text, line });
  }

  /** Goes on by some letters and counts lines. */
  #pass(letters: number): void {
    for (const letter of this.#source.slice(this.#at, this.#at + letters)) if (letter === '\n') this.#line++;
    this.#at += letters;
  }

  #skipped(pattern: RegExp): boolean {
    const text = this.#match(pattern);
    if (text === undefined) return false;
    this.#pass(text.length);
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source)?.[0];
  }

  #push(kind: Token['kind'], source: string, text = source): void {
    this.tokens.push({ kind, text, line: this.#line });
    this.#pass(source.length);
  }

  #mayBeRegex(): boolean {
    const last = this.tokens.at(-1);
    if (!last || last.kind === 'text' || last.kind === 'other') return !last;
    return last.kind === 'word' ? BEFORE_REGEX.has(last.text) : ![')', ']', '}'].includes(last.text);
  }
}
