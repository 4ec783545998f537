/** A child as its worker sees it: a process, or a thread, that runs the jobs it is given one at a time. */
import { fork, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { JobCancelledError } from '../errors/job-cancelled-error.js';
import { JobTimeoutError } from '../errors/job-timeout-error.js';
import type { Job } from '../job/job.js';
import type { JobQueue } from '../job/minimal-queue.js';
import type { SandboxedOptions } from '../options/worker.js';
import type { JobJsonSandbox } from '../types/job-json.js';
import { ASKED, TOLD, type SaidOfOne, type ToChild, type ToParent } from './messages.js';
import { fromPlainError, toPlainError, type PlainError } from './plain-error.js';
import { withExtension } from './processor-file.js';

/** Milliseconds a child is given to end its job when it is to leave. */
const GRACE_MS = 30_000;

/** What a processor may have done to its job. */
const CALLS: ReadonlySet<string> = new Set([...TOLD, ...ASKED]);

/** Node's exit codes. */
const EXIT_CODES: Record<number, string> = {
  1: 'Uncaught Fatal Exception',
  2: 'Unused',
  3: 'Internal JavaScript Parse Error',
  4: 'Internal JavaScript Evaluation Failure',
  5: 'Fatal Error',
  6: 'Non-function Internal Exception Handler',
  7: 'Internal Exception Handler Run-Time Failure',
  8: 'Unused',
  9: 'Invalid Argument',
  10: 'Internal JavaScript Run-Time Failure',
  12: 'Invalid Debug Argument',
  13: 'Unfinished Top-Level Await',
};

type Exit = [code: number | null, signal: string | null];
type Hearer = { message(message: ToParent): void; exit(...exit: Exit): void };

export class Child {
  childProcess: ChildProcess | undefined;
  worker: Thread | undefined;
  killed = false;
  /** The job that it is there for, or the first one of a batch. */
  job: Job | undefined;
  private exited: Exit | undefined;
  // a thread that has ended has none any more
  private threadNumber = 0;
  private readonly gone: Promise<void>;
  /** Who is told what the child says. */
  private hearer: Hearer | undefined;

  /** Starts a child; it is of use once `init` has resolved. */
  constructor(
    readonly processFile: string,
    private readonly opts: SandboxedOptions,
  ) {
    this.gone = new Promise((resolve) => {
      const onExit = (code: number | null, signal: string | null = null): void => {
        if (this.exited) return;
        this.exited = [code, signal];
        this.hearer?.exit(code, signal);
        resolve();
      };
      if (opts.useWorkerThreads) this.startThread(onExit);
      else this.startProcess(onExit);
    });
  }

  private startProcess(onExit: (...exit: Exit) => void): void {
    const { workerForkOptions } = this.opts;
    const child = fork(entryFile(), [], { execArgv: childArguments(), stdio: 'pipe', ...workerForkOptions });
    this.childProcess = child;
    child.stdout?.on('data', (chunk: Buffer) => process.stdout.write(chunk));
    child.stderr?.on('data', (chunk: Buffer) => process.stderr.write(chunk));
    child.on('message', (message: ToParent) => this.hear(message));
    // What it said last is still on its way.
    child.on('exit', (code, signal) => {
      if (child.connected) child.once('disconnect', () => onExit(code, signal));
      else onExit(code, signal);
    });
    child.on('error', () => child.pid === undefined && onExit(null, null)); // it could not be started
  }

  private startThread(onExit: (code: number) => void): void {
    const { workerThreadsOptions } = this.opts;
    const thread = new Thread(entryFile(), {
      execArgv: childArguments(),
      stdin: true,
      stdout: true,
      stderr: true,
      ...workerThreadsOptions,
    });
    this.worker = thread;
    this.threadNumber = thread.threadId;
    thread.stdout.on('data', (chunk: Buffer) => process.stdout.write(chunk));
    thread.stderr.on('data', (chunk: Buffer) => process.stderr.write(chunk));
    thread.on('message', (message: ToParent) => this.hear(message));
    thread.on('exit', onExit);
    thread.on('error', () => {}); // its exit is told
  }

  /** Number of the process, or of the thread. */
  get pid(): number {
    return this.childProcess?.pid ?? this.threadNumber;
  }

  get exitCode(): number | null | undefined {
    return this.exited?.[0];
  }

  get signalCode(): string | null | undefined {
    return this.exited?.[1];
  }

  hasProcessExited(): boolean {
    return this.exited !== undefined;
  }

  private hear(message: ToParent): void {
    // a processor may send what it likes
    if (message === null) return;
    // nobody gives it another job
    if ((message.cmd === 'failed' || message.cmd === 'broken') && message.leaves) this.killed = true;
    this.hearer?.message(message);
  }

  private send(message: ToChild): void {
    if (this.exited) return;
    if (this.worker) this.worker.postMessage(message);
    else if (this.childProcess?.connected) this.childProcess.send(message, () => {}); // an exit is told
  }

  /**
   * Loads the processor.
   * @throws (rejects) the error of the file, or Error `Error initializing child: ...` when the child is gone
   */
  init(): Promise<void> {
    return new Promise((resolve, reject) => {
      const failed = (...[code, signal]: Exit): void => {
        const text = EXIT_CODES[code !== null && code > 128 ? code - 128 : (code ?? -1)] ?? `Unknown exit code ${code}`;
        reject(new Error(`Error initializing child: ${text} and signal ${signal}`));
      };
      if (this.exited) return failed(...this.exited);
      this.hearer = {
        exit: failed,
        message: (message) => {
          if (message.cmd === 'ready') resolve();
          else if (message.cmd === 'broken') reject(fromPlainError(message.error));
        },
      };
      this.send({ cmd: 'init', file: importable(this.processFile) });
    });
  }

  /**
   * Runs a job, or the batch of which it is the first.
   * @throws (rejects) what the processor threw, what a call of it met, or Error `Unexpected exit code: ...`
   */
  run(job: Job, token?: string, signal?: AbortSignal): Promise<unknown> {
    const batch = job.getBatch();
    const stopCancelling = this.passOnCancelling(batch, signal);
    const done = new Promise<unknown>((resolve, reject) => {
      const exited = (...[code, by]: Exit): void => reject(new Error(`Unexpected exit code: ${code} signal: ${by}`));
      if (this.exited) return exited(...this.exited);
      // The calls of the processor, one after the other; its end, and what it asks, comes after them.
      let calls: Promise<unknown> = Promise.resolve();
      let hasEnded = false;
      this.hearer = {
        // a thread's last words and its exit may come in one tick
        exit: (...exit) => !hasEnded && exited(...exit),
        message: (message) => {
          hasEnded ||= message.cmd === 'completed' || message.cmd === 'failed';
          if (message.cmd === 'call' && message.question !== undefined) {
            void calls.catch(() => {}).then(() => this.answer(batch, message));
          }
          // that job's run is over: there is nothing left for its error to fail
          else if (message.cmd === 'call' && message.late) callOn(batch, message).catch(() => {});
          else if (message.cmd === 'call') calls = calls.then(() => callOn(batch, message));
          else if (hasEnded) {
            const { said = [] } = message as Extract<ToParent, { cmd: 'completed' | 'failed' }>;
            calls = calls.then(() => said.forEach((each) => sayOf(batch, each)));
            if (message.cmd === 'completed') calls.then(() => resolve(message.value), reject);
            else if (message.cmd === 'failed') calls.then(() => reject(fromPlainError(message.error)), reject);
          }
          calls.catch(() => {}); // told at the end
        },
      };
      const start = ({
        job,
        token,
      }: {
        job: Job;
        token: string | undefined;
      }): { job: JobJsonSandbox; token?: string } => ({
        job: job.asJSONSandbox(),
        ...(token !== undefined && { token }),
      });
      const behind = batch.slice(1).map((each) => start({ job: each, token: each.token }));
      this.send({ cmd: 'start', ...start({ job, token }), ...(job.signal && { behind }) });
    });
    return done.finally(stopCancelling);
  }

  /** Has the child hear what is cancelled: the call, and single jobs of a batch. Gives what ends that. */
  private passOnCancelling(batch: readonly Job[], signal: AbortSignal | undefined): () => void {
    const signals: [AbortSignal | undefined, number | undefined][] = [[signal, undefined]];
    for (const [of, job] of batch.entries()) signals.push([job.signal, of]);
    const ends = signals.map(([from, of]) => {
      const cancel = (): void => this.send({ cmd: 'cancel', ...reasonOf(from), ...(of !== undefined && { of }) });
      // else it was aborted while the child started, which hears of it behind its start
      if (from?.aborted) queueMicrotask(cancel);
      else from?.addEventListener('abort', cancel);
      return () => from?.removeEventListener('abort', cancel);
    });
    return () => ends.forEach((end) => end());
  }

  private async answer(batch: readonly Job[], call: Extract<ToParent, { cmd: 'call' }>): Promise<void> {
    const question = call.question as number;
    try {
      this.send({ cmd: 'answer', question, value: await callOn(batch, call) });
    } catch (error) {
      this.send({ cmd: 'answer', question, error: toPlainError(error) });
    }
  }

  /** Ends the child: after its job with SIGTERM, at once with SIGKILL. Resolves when it is gone. */
  async kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL', timeoutMs = GRACE_MS): Promise<void> {
    this.killed = true;
    if (this.exited) return;
    if (signal === 'SIGKILL') this.killAtOnce();
    // on Windows a signal ends a process at once, whatever it is
    else if (this.worker || process.platform === 'win32') this.send({ cmd: 'stop' });
    else this.childProcess?.kill(signal);
    const timer = setTimeout(() => this.killAtOnce(), timeoutMs);
    await this.gone;
    clearTimeout(timer);
  }

  private killAtOnce(): void {
    if (this.worker) void this.worker.terminate();
    else this.childProcess?.kill('SIGKILL');
  }
}

/**
 * Does what a processor asked of its job: the one it runs, or ran last, or one that has ended before.
 * @throws (rejects) Error for what is no call of theirs: a processor may send what it likes
 */
async function callOn(
  batch: readonly Job[],
  { method, args, of = 0, late }: Extract<ToParent, { cmd: 'call' }>,
): Promise<unknown> {
  if (!CALLS.has(method)) throw new Error(`A processor in a file has no call ${JSON.stringify(method)}`);
  const [running] = batch;
  const { queue } = running as unknown as { queue: JobQueue };
  const job = late ? (running.constructor as typeof Job).fromJSON(queue, late) : (batch[of] ?? running);
  return (job as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[method](...args);
}

/** Why a signal was aborted, as it travels. */
function reasonOf(signal: AbortSignal | undefined): { reason?: string; error?: PlainError } {
  const reason = signal?.reason as unknown;
  const isOurs = reason instanceof JobTimeoutError || reason instanceof JobCancelledError;
  return isOurs ? { error: toPlainError(reason) } : { reason: reason as string };
}

/** What a processor has said of one job of its batch. */
function sayOf(batch: readonly Job[], { of, result, error }: SaidOfOne): void {
  if (error) batch[of]?.setAsFailed(fromPlainError(error));
  else batch[of]?.setResult(result);
}

/** The processor's file as a child imports it. */
function importable(file: string): string {
  return file.startsWith('file:') ? file : pathToFileURL(withExtension(file)).href;
}

/**
 * What a child runs. In a clone it is that of the last build.
 * @throws Error within a bundle, which lacks the file, or has the program's own under that name
 */
export function entryFile(): string {
  const places = /\/sandbox\/child\.[jt]s$/.test(import.meta.url)
    ? ['./main.js', '../../dist/cjs/sandbox/main.js']
    : [];
  const file = places.map((place) => fileURLToPath(new URL(place, import.meta.url))).find(existsSync);
  if (file) return file;
  throw new Error(
    'Sandboxed processors need a file of this package, which is not in a bundle: leave the package out of it ' +
      '(esbuild: external, webpack: externals)',
  );
}

/** This process's own, but for the port of the inspector, which is taken. */
function childArguments(): string[] {
  return process.execArgv.map((argument) => argument.replace(/^(--inspect(?:-brk|-port)?)(?:=.*)?$/, '$1=0'));
}
