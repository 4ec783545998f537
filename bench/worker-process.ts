/** The bench's end of a worker that is a process of its own (`scenarios/worker-process.mjs`). */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ConnectionSettings } from './server.js';

const PROGRAM = fileURLToPath(new URL('scenarios/worker-process.mjs', import.meta.url));

export interface WorkerProcessSettings {
  /** Of its library. */
  readonly address: string;
  readonly queueName: string;
  readonly connection: ConnectionSettings;
  readonly prefix?: string;
  readonly concurrency: number;
  /** Each completed job is told of. */
  readonly tells?: boolean;
  /** Jobs say what their handlers do ({@link Task}), and when each started stands in the account. Without it no handler reads its job's data. */
  readonly obeys?: boolean;
}

/** What the handler of a job does, in milliseconds. */
export interface Task {
  /** The job's number, by which its start is told. */
  readonly i: number;
  /** It keeps its event loop from all else for so long, */
  readonly blocks?: number;
  /** and then awaits a timer. */
  readonly waits?: number;
}

/** What it has done so far. */
export interface Account {
  /** Jobs whose handlers ran. */
  readonly ran: number;
  /** Of their ids. */
  readonly sum: number;
  readonly cpuMicros: number;
  /** When the handlers of those that obey started, since the last account. */
  readonly starts: readonly Start[];
}

export interface Start {
  /** The number of the job. */
  readonly i: number;
  /** Milliseconds as {@link clockOfMachine} has them. */
  readonly at: number;
}

interface Message {
  readonly ready?: true;
  readonly fault?: string;
  readonly account?: Account;
  readonly completedAt?: number;
}

export class WorkerProcess {
  readonly ready: Promise<void>;
  /** Is told when a job was completed, in milliseconds as {@link clockOfMachine} has them. */
  onCompleted: (at: number) => void = () => undefined;
  private readonly child: ChildProcess;
  private becomeReady: () => void = () => undefined;
  private answer: (account: Account) => void = () => undefined;

  constructor(
    settings: WorkerProcessSettings,
    private readonly fail: (cause: unknown) => void,
  ) {
    this.ready = new Promise<void>((resolve) => {
      this.becomeReady = resolve;
    });
    this.child = fork(PROGRAM, [JSON.stringify(settings)], { execArgv: [] });
    this.child.on('message', (message) => this.hear(message as Message));
    this.child.on('exit', () => fail('a worker process has ended'));
  }

  run(): void {
    this.child.send('run');
  }

  account(): Promise<Account> {
    return new Promise((resolve) => {
      this.answer = resolve;
      this.child.send('account');
    });
  }

  kill(): void {
    this.child.removeAllListeners().kill('SIGKILL');
  }

  private hear({ ready, fault, account, completedAt }: Message): void {
    if (completedAt !== undefined) this.onCompleted(completedAt);
    else if (account) this.answer(account);
    else if (ready) this.becomeReady();
    else this.fail(`a worker process: ${fault}`);
  }
}

/** Throws unless the jobs with the ids from 1 to `jobs` ran in these processes, each once: as many, and the sum of their ids. */
export async function expectRan(workers: readonly WorkerProcess[], jobs: number): Promise<void> {
  const accounts = await Promise.all(workers.map((worker) => worker.account()));
  const total = (of: (account: Account) => number) => accounts.reduce((sum, account) => sum + of(account), 0);
  const [ran, sum] = [total((account) => account.ran), total((account) => account.sum)];
  if (ran !== jobs || sum !== (jobs * (jobs + 1)) / 2) {
    throw new Error(`${ran} handlers ran for ${jobs} jobs, and the sum of their ids is ${sum}`);
  }
}

/** Milliseconds on a clock that the processes of a machine share. */
export function clockOfMachine(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
