import { join } from 'node:path';
import { Program } from '../support/program.js';
import type { Servers } from './servers.js';
import { Way } from './way.js';

export type Role = 'worker' | 'producer';

export interface Surroundings {
  readonly queueName: string;
  /** Where ledgers are. */
  readonly folder: string;
  readonly servers: Servers;
  /** Hears of a process that ended though nobody ended it. */
  readonly onDeath: (message: string) => void;
}

/** One worker or producer of a run: a process that is started again whenever it was killed, and its own way to the servers. */
export class Member {
  readonly role: Role;
  readonly name: string;
  readonly way: Way;
  /** Lives it had before this one. */
  life = -1;
  /** A fault has it: no other kills it meanwhile. */
  taken = false;
  readonly #around: Surroundings;
  readonly #env: Record<string, string | number>;
  #program!: Program;
  #ending = false;

  private constructor(role: Role, name: string, way: Way, around: Surroundings, env: Record<string, string | number>) {
    this.role = role;
    this.name = name;
    this.way = way;
    this.#around = around;
    this.#env = env;
  }

  static async start(
    role: Role,
    name: string,
    around: Surroundings,
    env: Record<string, string | number>,
  ): Promise<Member> {
    const member = new Member(role, name, await Way.to(around.servers.ports), around, env);
    await member.start();
    return member;
  }

  /** Of a worker. */
  get concurrency(): number {
    return Number(this.#env.CONCURRENCY);
  }

  /** Jobs that it may run at once. */
  get slots(): number {
    return this.concurrency * Number(this.#env.BATCH ?? 1);
  }

  /** Whether its handlers run on its own event loop. */
  get isPlain(): boolean {
    return this.#env.SANDBOX === undefined;
  }

  /** Name of the present life, with which its ledger and its jobs are signed. */
  get signature(): string {
    return `${this.name}.${this.life}`;
  }

  ledgerOf(life: number): string {
    return join(this.#around.folder, `${this.name}.${life}.ledger`);
  }

  /** Starts the next life; resolves when it is connected. */
  async start(env: Record<string, string | number> = {}): Promise<void> {
    this.life++;
    this.#ending = false;
    const { queueName, servers, onDeath } = this.#around;
    const program = Program.start(`../../chaos/programs/${this.role}.mjs`, {
      env: {
        CONNECTION: JSON.stringify(servers.connection(this.way)),
        QUEUE: queueName,
        NAME: this.signature,
        LEDGER: this.ledgerOf(this.life),
        ...this.#env,
        ...env,
      },
    });
    this.#program = program;
    void program.ended.then(({ code, signal }) => {
      if (!this.#ending) onDeath(`${this.name} ended by itself (${code ?? signal}): ${program.errors}`);
    });
    await program.said('ready', 1, 60_000);
  }

  tell(line: string): void {
    this.#program.tell(line);
  }

  /** Resolves when it has said `word` once more than `before` times. */
  async says(word: string, before: number, withinMs: number): Promise<void> {
    await this.#program.said(word, before + 1, withinMs);
  }

  /** Ids of the jobs that it says it runs, once for each of its runs. */
  async running(): Promise<string[]> {
    const nth = this.#program.lines.filter((line) => line.startsWith('running ')).length + 1;
    this.tell('running');
    return JSON.parse(await this.#program.said('running', nth)) as string[];
  }

  /** Times it has said `word`. */
  said(word: string): number {
    return this.#program.lines.filter((line) => line === word).length;
  }

  async kill(): Promise<void> {
    this.#ending = true;
    await this.#program.kill();
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.#program.pid, signal);
  }

  /** Asks it to end, and waits for that. */
  async end(word: 'close' | 'stop', withinMs: number): Promise<void> {
    this.#ending = true;
    this.tell(word);
    const { code } = await this.#program.end(withinMs);
    if (code !== 0) throw new Error(`${this.name} ended with ${code}: ${this.#program.errors}`);
  }

  /** Nothing of it stays. */
  async close(): Promise<void> {
    this.#ending = true;
    await this.#program.close();
    await this.way.close();
  }
}
