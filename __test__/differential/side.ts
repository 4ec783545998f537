/** One of the two libraries, in a process of its own that is started again when it dies. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Observation, Program } from './program.js';

const PROCESS = fileURLToPath(new URL('./program-process.ts', import.meta.url));
/** A program that says nothing for that long has blocked its process. */
const ANSWER_MS = 120_000;
const LIBRARIES = { bullmq: 'bullmq', chasquimq: 'chasquimq' } as const;
export type SideName = keyof typeof LIBRARIES;

export class Side {
  #child: Promise<ChildProcess> | undefined;
  #errors = '';

  constructor(readonly name: SideName) {}

  /** @throws if the harness itself fails */
  async run(program: Program): Promise<Observation> {
    this.#child ??= this.#start();
    const child = await this.#child;
    const prefix = `d${randomUUID().slice(0, 8)}`;
    const answer = await this.#ask(child, { program, prefix });
    if ('failure' in answer) {
      await this.close();
      throw new Error(`${this.name}: ${answer.failure}`);
    }
    const { observation } = answer;
    // what hangs or escaped must not reach the next program
    const fresh =
      observation.died ??
      (observation.unhandled.length > 0 || observation.workers.some(({ closed }) => /^(hangs|died)/.test(closed)));
    if (fresh) await this.close();
    return observation;
  }

  async close(): Promise<void> {
    const child = await this.#child?.catch(() => undefined);
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  #start(): Promise<ChildProcess> {
    this.#errors = '';
    const child = fork(PROCESS, [LIBRARIES[this.name]], {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2_000);
    });
    return new Promise((resolve, reject) => {
      child.once('message', () => resolve(child));
      child.once('exit', (code) => reject(new Error(`${this.name} does not start (${code}): ${this.#errors}`)));
    });
  }

  #ask(child: ChildProcess, task: object): Promise<{ observation: Observation } | { failure: string }> {
    return new Promise((resolve) => {
      const died = (why: string) => {
        this.#child = undefined;
        finish({ observation: { died: why, jobs: {}, queues: [], steps: {}, workers: [], unhandled: [] } });
      };
      const onExit = (code: number | null, signal: string | null) =>
        died(`${code ?? signal}: ${/^\w*Error: .*/m.exec(this.#errors)?.[0] ?? ''}`);
      const timer = setTimeout(() => {
        child.off('exit', onExit);
        child.kill('SIGKILL');
        died('no answer');
      }, ANSWER_MS);
      const onMessage = (answer: unknown) => finish(answer as { observation: Observation });
      const finish = (answer: { observation: Observation } | { failure: string }) => {
        clearTimeout(timer);
        child.off('exit', onExit);
        child.off('message', onMessage);
        resolve(answer);
      };
      child.once('message', onMessage);
      child.once('exit', onExit);
      child.send(task, (error) => {
        if (error) died(error.message);
      });
    });
  }
}

/** Both, asked at the same time. */
export class Pair {
  readonly bullmq = new Side('bullmq');
  readonly chasquimq = new Side('chasquimq');

  async run(program: Program): Promise<{ bullmq: Observation; chasquimq: Observation }> {
    const [bullmq, chasquimq] = await Promise.all([this.bullmq.run(program), this.chasquimq.run(program)]);
    return { bullmq, chasquimq };
  }

  async close(): Promise<void> {
    await Promise.all([this.bullmq.close(), this.chasquimq.close()]);
  }
}
