/** The bench's end of a process with many queues and workers (`scenarios/crowd-process.mjs`). */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ConnectionSettings } from './server.js';

const PROGRAM = fileURLToPath(new URL('scenarios/crowd-process.mjs', import.meta.url));

export interface CrowdSettings {
  /** Of the library. */
  readonly address: string;
  readonly connection: ConnectionSettings;
  /** Of the queues. */
  readonly names: readonly string[];
  /** All of them get one client of ioredis. */
  readonly shared: boolean;
}

/** What the process holds now. */
export interface Holding {
  /** Of memory that is resident. */
  readonly megabytes: number;
  /** Spent so far. */
  readonly cpuMicros: number;
}

interface Message {
  readonly ready?: true;
  readonly fault?: string;
  readonly account?: Holding;
}

export class Crowd {
  /** When all workers run. */
  readonly ready: Promise<void>;
  private readonly child: ChildProcess;
  private becomeReady: () => void = () => undefined;
  private answer: (account: Holding) => void = () => undefined;

  constructor(
    settings: CrowdSettings,
    private readonly fail: (cause: unknown) => void,
  ) {
    this.ready = new Promise<void>((resolve) => {
      this.becomeReady = resolve;
    });
    this.child = fork(PROGRAM, [JSON.stringify(settings)], { execArgv: ['--expose-gc'] });
    this.child.on('message', (message) => this.hear(message as Message));
    this.child.on('exit', () => fail('the process with many queues has ended'));
  }

  /** After a collection of garbage, or as it is. */
  account(how: 'collect' | 'as it is' = 'as it is'): Promise<Holding> {
    return new Promise((resolve) => {
      this.answer = resolve;
      this.child.send(how);
    });
  }

  /** When it has ended, for its connections to be gone. */
  async kill(): Promise<void> {
    const gone = new Promise((resolve) => this.child.removeAllListeners().once('exit', resolve));
    if (this.child.kill('SIGKILL')) await gone;
  }

  private hear({ ready, fault, account }: Message): void {
    if (account) this.answer(account);
    else if (ready) this.becomeReady();
    else this.fail(`the process with many queues: ${fault}`);
  }
}
