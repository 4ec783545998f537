import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connection, serverUrl } from './redis.js';

/** How long a program may take for anything it is waited for. */
const WAIT_MS = 60_000;

export interface ProgramOptions {
  /** Beside CONNECTION (JSON) and REDIS_URL, which every program gets. */
  env?: Record<string, string | number>;
  /** Options of Node itself. */
  nodeOptions?: string[];
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * A Node process of a test's own, in the folder of the package: a program may import `chasquimq` as its users do, and
 * gets the package as it was built. It tells its test how far it is by lines on stdout.
 */
export class Program {
  readonly lines: string[] = [];
  /** Resolves when the process is gone and its output was read. */
  readonly ended: Promise<Ending>;
  #errors = '';
  #ending: Ending | undefined;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #wakers = new Set<() => void>();

  private constructor(args: string[], { env = {}, nodeOptions = [] }: ProgramOptions) {
    const texts = Object.entries(env).map(([name, value]): [string, string] => [name, String(value)]);
    // Nothing of the test runner's own environment reaches the program.
    const { PATH, HOME, TMPDIR } = process.env;
    const whereQueuesAre = { CONNECTION: JSON.stringify(connection), REDIS_URL: serverUrl() };
    this.#process = spawn(process.execPath, [...nodeOptions, ...args], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      env: { PATH, HOME, TMPDIR, ...whereQueuesAre, ...Object.fromEntries(texts) },
    });
    createInterface(this.#process.stdout).on('line', (line) => {
      this.lines.push(line);
      this.#wake();
    });
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.ended = new Promise((resolve) => {
      this.#process.on('close', (code, signal) => {
        this.#ending = { code, signal };
        resolve(this.#ending);
        this.#wake();
      });
    });
  }

  /** Starts `__test__/life/programs/<file>`. */
  static start(file: string, options: ProgramOptions = {}): Program {
    return new Program([fileURLToPath(new URL(`../life/programs/${file}`, import.meta.url))], options);
  }

  /** Starts a program given by its text. It finds packages as a program in the package's folder does. */
  static startText(text: string, options: ProgramOptions & { kind?: 'module' | 'commonjs' } = {}): Program {
    return new Program([`--input-type=${options.kind ?? 'module'}`, '--eval', text], options);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** What it wrote to stderr so far. */
  get errors(): string {
    return this.#errors;
  }

  /** The rest of the `nth` line (1 = first) that begins with `word`, which may have been written already. */
  async said(word: string, nth = 1, timeoutMs = WAIT_MS): Promise<string> {
    const found = () => this.lines.filter((line) => line.split(' ', 1)[0] === word).at(nth - 1);
    await this.#when(`${word} no. ${nth}`, () => found() !== undefined, timeoutMs);
    return found()?.slice(word.length + 1) ?? '';
  }

  /** How the process ended by itself. One that has not ended after `timeoutMs` is killed and fails the test. */
  async end(timeoutMs = WAIT_MS): Promise<Ending> {
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), timeoutMs);
    const ending = await this.ended;
    clearTimeout(timer);
    if (ending.signal === 'SIGKILL') throw new Error(`did not end within ${timeoutMs} ms; ${this.#report()}`);
    return ending;
  }

  /** Writes a line to its stdin. */
  tell(line: string): void {
    this.#process.stdin.write(`${line}\n`);
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ending> {
    this.#process.kill(signal);
    return this.ended;
  }

  /** For `stage.keep`: nothing of the program outlives its test. */
  async close(): Promise<void> {
    await this.kill();
  }

  #wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }

  #report(): string {
    return `it said:\n${this.lines.join('\n') || '(nothing)'}\nand on stderr:\n${this.#errors || '(nothing)'}`;
  }

  async #when(what: string, condition: () => boolean, timeoutMs: number): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        act();
      };
      const wake = () => {
        if (condition()) settle(resolve);
        else if (this.#ending) {
          settle(() => reject(new Error(`the program ended before ${what}; ${this.#report()}`)));
        }
      };
      const timer = setTimeout(
        () => settle(() => reject(new Error(`waited ${timeoutMs} ms in vain for ${what}; ${this.#report()}`))),
        timeoutMs,
      );
      this.#wakers.add(wake);
      wake();
    });
  }
}
