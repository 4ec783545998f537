/** The workers of one program: beside what carries it out, or each in a process of its own. */
import type { Worker } from 'bullmq';
import type { Span } from '../support/idleness.js';
import type { Library } from '../support/libraries.js';
import { sharedClock } from '../support/shared-clock.js';
import { sleep } from '../support/waiting.js';
import type { Ear, Member, Pool } from './apart.js';
import type { Handlers, Script, Scripts } from './handler.js';
import { watchWorker } from './observe.js';
import type { Observer } from './observe.js';
import { openWorker } from './open-worker.js';
import type { Base } from './open-worker.js';
import type { Program, SeenWorker, WorkerPlan } from './program.js';
import type { Runs } from './runs.js';
import type { Signals } from './signals.js';
import { messageOf, shown } from './values.js';

const CLOSE_MS = 12_000;

/** What they need of the world around them. */
export interface Surroundings {
  readonly program: Program;
  readonly lib: Library;
  readonly base: Base;
  readonly pool: Pool;
  readonly handlers: Handlers;
  readonly scripts: Scripts;
  readonly signals: Signals;
  readonly runs: Runs;
  readonly observer: Observer;
  readonly unhandled: string[];
  /** An error's text, without what differs from run to run. */
  normalError(message: string): string;
  /** A handler has added a job. */
  remember(name: string, queue: number, id: string): void;
}

/** What steps do to a worker, wherever it is. */
interface Hold {
  pause(): Promise<unknown>;
  resume(): unknown;
  close(force: boolean): Promise<unknown>;
  cancel(id: string, reason?: string): unknown;
}

/** What is known of a process with a worker. */
export interface Life {
  readonly name: string;
  readonly plan: WorkerPlan;
  /** When it took jobs. */
  readonly alive: Span;
  /** When its event loop did not turn. */
  readonly late: readonly Span[];
}

interface Running extends Life {
  hold?: Hold;
  /** If it is not apart. */
  worker?: Worker;
  member?: Member;
  paused: boolean;
  readonly errors: string[];
  closed: string;
  readonly alive: { from: number; to: number };
  readonly late: Span[];
}

export class Workers {
  readonly #all: Running[];

  constructor(private readonly around: Surroundings) {
    this.#all = around.program.workers.map((plan, i) => ({
      ...{ plan, name: `w${i}`, paused: false, errors: [], closed: 'never started', late: [] },
      alive: { from: Infinity, to: Infinity },
    }));
    around.pool.prepare(around.program.workers.filter(({ kind }) => kind === 'apart').length);
  }

  async start(index: number): Promise<void> {
    const running = this.#all[index];
    if (!running || running.hold) return;
    running.closed = 'not yet';
    await (running.plan.kind === 'apart' ? this.#startApart(running) : this.#startHere(running));
    running.alive.from = sharedClock();
  }

  async #startHere(running: Running): Promise<void> {
    const { lib, handlers, base, observer } = this.around;
    const worker = openWorker(lib, running.plan, handlers, base);
    running.worker = worker;
    running.hold = {
      pause: () => worker.pause(true),
      resume: () => worker.resume(),
      close: (force) => worker.close(force),
      cancel: (id, reason) => worker.cancelJob(id, reason),
    };
    worker.on('error', (error) => void running.errors.push(this.around.normalError(messageOf(error))));
    watchWorker(worker, (text, name) => observer.hearWorker(text, name));
    await worker.waitUntilReady();
  }

  async #startApart(running: Running): Promise<void> {
    const { program, base, pool, scripts } = this.around;
    const member = await pool.take();
    const { line } = member;
    running.member = member;
    running.hold = {
      pause: () => line.ask('pause'),
      resume: () => line.ask('resume'),
      close: (force) => line.ask('close', force),
      cancel: (id, reason) => line.ask('cancel', id, reason),
    };
    const { ear, leave } = this.#earFor(running);
    line.serve(ear);
    void member.ended.then((how) => {
      leave();
      if (running.closed === 'not yet') running.closed = `died: ${how}`;
    });
    await line.ask('start', { plan: running.plan, queues: program.queues, prefix: base.prefix, scripts });
  }

  /** What a process tells; `leave` ends what it cannot end any more. */
  #earFor({ name: process, errors, late }: Running): { ear: Ear; leave(): void } {
    const { runs, signals, observer, unhandled, normalError, remember } = this.around;
    const open = new Map<number, ReturnType<Runs['write']>>();
    const ear: Ear = {
      began: (run, name, text, from) => void open.set(run, runs.write(name, text, process, from)),
      noted: (run, text) => open.get(run)?.note(text),
      ended: (run, to) => open.get(run)?.end(to),
      heard: (text, name) => observer.hearWorker(text, name),
      error: (message) => void errors.push(normalError(message)),
      unhandled: (text) => void unhandled.push(text),
      late: (from, to) => void late.push({ from, to }),
      wait: (signal) => signals.wait(signal, process),
      give: (signal) => signals.give(signal),
      know: (name, script) => this.know(new Map([[name, script]])),
      added: remember,
    };
    const leave = () => {
      for (const run of open.values()) run.end();
      signals.forget(process);
    };
    return { ear, leave };
  }

  /** Scripts of jobs that are to be added: resolves when all processes know them. */
  async know(scripts: ReadonlyMap<string, Script>): Promise<void> {
    for (const [name, script] of scripts) this.around.scripts.set(name, script);
    const known: Scripts = new Map(scripts);
    await Promise.all(this.#members.map(({ line }) => line.ask('know', known).catch(() => undefined)));
  }

  async stop(index: number, force = false): Promise<string> {
    // what its handlers run nobody has any more
    if (force) this.around.signals.forgetHeld();
    return await this.#close(this.#all[index], force);
  }

  async kill(index: number): Promise<string> {
    const running = this.#all[index];
    if (!running?.member) return 'not apart';
    running.closed = 'killed';
    running.alive.to = sharedClock();
    await running.member.kill();
    return 'killed';
  }

  async pause(index: number): Promise<string> {
    this.#all[index].paused = true;
    return shown(await this.#all[index].hold?.pause());
  }

  async resume(index: number): Promise<string> {
    this.#all[index].paused = false;
    return shown(await this.#all[index].hold?.resume());
  }

  async cancel(queue: number, id: string, reason?: string): Promise<string> {
    for (const { plan, hold } of this.#all)
      if (plan.queue === queue && (await hold?.cancel(id, reason))) return shown(true);
    return shown(false);
  }

  /** The one that takes jobs by hand. */
  manual(index: number): Worker | undefined {
    return this.#all[index]?.worker;
  }

  /** Whether one with a processor takes jobs of this queue. */
  takesFrom(queue: number): boolean {
    return this.#all.some(
      ({ plan, paused, closed }) => plan.queue === queue && plan.kind !== 'manual' && !paused && closed === 'not yet',
    );
  }

  /** All that processes have to tell of what is over was told. */
  async tellAll(): Promise<void> {
    await Promise.all(this.#members.map(({ line }) => line.ask('tellAll').catch(() => undefined)));
  }

  /** Closes those that were not closed by a step. */
  async seen(): Promise<SeenWorker[]> {
    const workers: SeenWorker[] = [];
    for (const running of this.#all) {
      if (running.hold && running.closed === 'not yet') await this.#close(running, false);
      workers.push({ errors: [...running.errors].sort(), closed: running.closed });
    }
    return workers;
  }

  /** The processes are free for another program. */
  async leave(): Promise<void> {
    await Promise.all(this.#all.flatMap(({ member }) => (member ? [this.around.pool.release(member)] : [])));
  }

  get #members(): Member[] {
    return this.#all.flatMap(({ member }) => (member?.isAlive ? [member] : []));
  }

  /** Of those that are apart: what watch.ts looks at. */
  get lives(): readonly Life[] {
    return this.#all.filter(({ member }) => member);
  }

  async #close(running: Running | undefined, force: boolean): Promise<string> {
    if (!running?.hold) return 'not running';
    running.alive.to = Math.min(running.alive.to, sharedClock());
    const closing = running.hold.close(force).then(
      () => 'closed',
      (error: unknown) => `rejects ${messageOf(error)}`,
    );
    // a close that hangs has no other sign
    const closed = await Promise.race([closing, sleep(CLOSE_MS).then(() => 'hangs')]);
    if (!/^(died|killed)/.test(running.closed)) running.closed = closed;
    return running.closed;
  }
}
