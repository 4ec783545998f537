/**
 * Workers in processes of their own (apart-process.ts). A process serves one program after the other: it takes longer to start than most programs last.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { sleep } from '../support/waiting.js';
import type { Script, Scripts } from './handler.js';
import { Line } from './line.js';
import type { WorkerPlan } from './program.js';

const PROCESS = fileURLToPath(new URL('./apart-process.ts', import.meta.url));
/** One that does not leave a program by then hangs. */
const LEAVE_MS = 12_000;

export interface Post {
  readonly plan: WorkerPlan;
  /** How many there are in the program. */
  readonly queues: number;
  readonly prefix: string;
  readonly scripts: Scripts;
}

/** What such a process is asked for. */
export interface Hands {
  start(post: Post): Promise<void>;
  /** Scripts of jobs that are to be added. */
  know(scripts: Scripts): void;
  pause(): Promise<unknown>;
  resume(): unknown;
  close(force: boolean): Promise<unknown>;
  cancel(id: string, reason?: string): boolean | undefined;
  /** Resolves when all that it has heard was told. */
  tellAll(): Promise<void>;
  /** Leaves the program; gives the number of handlers that still run. */
  leave(): Promise<number>;
}

/** What it tells, and asks, while it serves a program. Runs have numbers of the process; times are those of the clock that processes share. */
export interface Ear {
  began(run: number, name: string, text: string, from: number): void;
  noted(run: number, text: string): void;
  ended(run: number, to: number): void;
  /** An event of the worker, and the name of the job that it is about. */
  heard(text: string, name?: string): void;
  error(message: string): void;
  unhandled(text: string): void;
  /** Its event loop did not turn. */
  late(from: number, to: number): void;
  wait(signal: string): Promise<void>;
  give(signal: string): void;
  /** Resolves when all processes know the script of a job that its handler is about to add. */
  know(name: string, script: Script): Promise<void>;
  added(name: string, queue: number, id: string): void;
}

export class Pool {
  readonly #idle: Promise<Member>[] = [];

  constructor(private readonly library: string) {}

  /** Has so many ready soon. */
  prepare(count: number): void {
    while (this.#idle.length < count) {
      const starting = Member.start(this.library);
      // whoever takes it hears of it
      starting.catch(() => undefined);
      this.#idle.push(starting);
    }
  }

  async take(): Promise<Member> {
    for (let next = this.#idle.pop(); next; next = this.#idle.pop()) {
      const member = await next;
      if (member.isAlive) return member;
    }
    return await Member.start(this.library);
  }

  /** Takes one back whose program is over. */
  async release(member: Member): Promise<void> {
    const left = member.isAlive ? member.line.ask('leave').catch(() => Infinity) : Infinity;
    const running = await Promise.race([left, sleep(LEAVE_MS).then(() => Infinity)]); // whatever hangs is not waited for
    member.line.serve({});
    if (running > 0) await member.kill();
    else this.#idle.push(Promise.resolve(member));
  }
}

export class Member {
  readonly line: Line<Hands>;
  /** Resolves with how the process ended. */
  readonly ended: Promise<string>;
  #errors = '';
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.line = new Line(child);
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2_000);
    });
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.line.cut();
        resolve(`${code ?? signal} ${/^\w*Error: .*/m.exec(this.#errors)?.[0] ?? ''}`.trim());
      });
    });
  }

  static async start(library: string): Promise<Member> {
    const child = fork(PROCESS, [library], {
      execArgv: ['--import', 'tsx'],
      // arguments that are undefined stay so
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    const member = new Member(child);
    const ready = new Promise<void>((resolve) => member.line.serve({ ready: resolve }));
    const died = member.ended.then((how) => Promise.reject(new Error(`a worker's process does not start: ${how}`)));
    await Promise.race([ready, died]);
    return member;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
