/** What a command of `npx chasquimq` is, and how it ends: 0 done, 1 failed, 2 not understood. */

/** Where text goes: a terminal, a pipe or a test. */
export interface Output {
  write(text: string): unknown;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** Where keys come from. */
export interface Input {
  readonly isTTY?: boolean | undefined;
  setRawMode?(raw: boolean): unknown;
  on(event: 'data', listener: (keys: Buffer | string) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  off(event: 'data', listener: (keys: Buffer | string) => void): unknown;
  off(event: 'end', listener: () => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

/** What a command has of its process. A command touches nothing else of it, so that tests can hand it another. */
export interface Io {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether people see stdout: lines may be drawn over, and colours help. */
  readonly isTTY: boolean;
  /** Aborted by SIGINT and SIGTERM, and when nobody reads stdout any more: a command then ends as soon as it can. */
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** One command. */
export interface Command {
  readonly name: string;
  /** One line, without a full stop, for the list of commands. */
  readonly summary: string;
  /** Usage, options and examples; ends with a newline. */
  readonly help: string;
  /**
   * @param args behind the command's name
   * @returns the exit code
   * @throws UsageError for what it does not understand, Failure for what went wrong
   */
  run(args: string[], io: Io): Promise<number>;
}

/** The command line says what nobody understands: its message is shown, and where to find help; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What was asked for could not be done: its message, one line for people, is shown; exit code 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}
