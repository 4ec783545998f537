/** What the handlers of a program do: the script of their job, one run after the other. */
import type { Job, Queue } from 'bullmq';
import type { Library } from '../support/libraries.js';
import { sleep } from '../support/waiting.js';
import type { Action, JobPlan } from './program.js';
import { decode, messageOf, shown, thrown } from './values.js';

/** Signals that handlers wait for, each given once and for good. */
export class Signals {
  readonly #given = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Handlers that wait now, but for those that are forgotten. */
  held = 0;
  #all = false;

  give(name: string): void {
    this.#given.add(name);
    for (const wake of this.#waiting.get(name) ?? []) wake();
    this.#waiting.delete(name);
  }

  /** Of a program that is over nobody waits any more. */
  giveAll(): void {
    this.#all = true;
    for (const name of [...this.#waiting.keys()]) this.give(name);
  }

  waitingFor(name: string): number {
    return this.#waiting.get(name)?.length ?? 0;
  }

  /** The server knows nothing any more of the jobs whose handlers wait. */
  forgetHeld(): void {
    this.held = 0;
  }

  async wait(name: string): Promise<void> {
    if (this.#all || this.#given.has(name)) return;
    this.held++;
    await new Promise<void>((resolve) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
    });
    this.held = Math.max(0, this.held - 1);
  }
}

/** What a handler needs of the world around it. */
export interface Surroundings {
  readonly lib: Library;
  readonly queues: readonly Queue[];
  readonly signals: Signals;
  readonly scripts: Map<string, readonly (readonly Action[])[]>;
  /** Each run begins in a millisecond of its own. */
  readonly apart: boolean;
  /** Adds a job of that plan, and remembers it. */
  addJob(queue: number, plan: JobPlan, parent: Job): Promise<void>;
  touch(): void;
}

/** Runs of each job, as texts. */
export type Runs = Map<string, string[]>;

/** How many handlers run. */
export class Handlers {
  running = 0;
  readonly runs: Runs = new Map();
  readonly order: string[] = [];
  constructor(private readonly around: Surroundings) {}

  async handle(job: Job, token: string | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    const name = job.name;
    const runs = this.runs.get(name) ?? [];
    this.runs.set(name, runs);
    const at = runs.push(`made ${job.attemptsMade} started ${job.attemptsStarted} stalled ${job.stalledCounter}`) - 1;
    this.order.push(name);
    this.running++;
    this.around.touch();
    if (this.around.apart) await nextMillisecond();
    const note = (text: string) => {
      runs[at] += `; ${text}`;
    };
    try {
      return await this.#run(job, token, signal, this.around.scripts.get(name)?.[at] ?? [], note);
    } finally {
      this.running--;
      this.around.touch();
    }
  }

  async #run(
    job: Job,
    token: string | undefined,
    signal: AbortSignal | undefined,
    script: readonly Action[],
    note: (text: string) => void,
  ): Promise<unknown> {
    for (const action of script) {
      if (action.do === 'return') return decode(action.value);
      if (action.do === 'throw')
        throw thrown(action.what, action.text ?? action.what, this.around.lib.UnrecoverableError);
      try {
        await this.#act(job, token, signal, action, note);
      } catch (error) {
        if (error instanceof Move) throw error.toThrow;
        note(`${labelOf(action)} rejects ${messageOf(error)}`);
        throw error;
      }
    }
    return `done ${job.name}`;
  }

  async #act(
    job: Job,
    token: string | undefined,
    signal: AbortSignal | undefined,
    action: Action,
    note: (text: string) => void,
  ): Promise<void> {
    const { lib, queues, signals } = this.around;
    switch (action.do) {
      case 'wait':
        await sleep(action.ms); // what the handler's work takes
        return;
      case 'hold':
        await signals.wait(action.signal);
        return;
      case 'signal':
        signals.give(action.signal);
        return;
      case 'untilCancelled':
        await this.#untilCancelled(signal, note);
        return;
      case 'moveToWait':
        await job.moveToWait(token);
        throw new Move(new lib.WaitingError());
      case 'moveToDelayed':
        await job.moveToDelayed(Date.now() + (decode(action.ms) as number), token);
        throw new Move(new lib.DelayedError());
      case 'waitForChildren':
        await this.#waitForChildren(job, token, action, note);
        return;
      case 'rateLimit':
        await queues.find(({ name }) => name === job.queueName)?.rateLimit(action.ms);
        throw new Move(new lib.RateLimitError());
      case 'setOpts':
        if (action.what === 'freeze') Object.freeze(job);
        else if (action.what === 'freezeOpts') Object.freeze(job.opts);
        else job.opts = null as unknown as Job['opts'];
        return;
      case 'setOpt':
        Object.assign(job.opts, { [action.name]: decode(action.value) });
        return;
      case 'call': {
        const called = call(job, action.method, action.args.map(decode), token);
        // what it comes to is seen by the job, not by who has gone on
        if (action.unawaited) return void called.catch(() => undefined);
        note(`${action.method} ${shown(withoutNumbers(await called))}`);
        return;
      }
      default:
        throw new Error(`a handler cannot ${action.do}`);
    }
  }

  async #untilCancelled(signal: AbortSignal | undefined, note: (text: string) => void): Promise<void> {
    const { signals } = this.around;
    const aborted = new Promise<string>((resolve) => {
      const tell = () => resolve(`cancelled ${shown(signal?.reason)}`);
      if (signal?.aborted) tell();
      signal?.addEventListener('abort', tell);
    });
    note(await Promise.race([aborted, signals.wait('cancelled').then(() => 'never cancelled')]));
  }

  async #waitForChildren(
    job: Job,
    token: string | undefined,
    action: Extract<Action, { do: 'waitForChildren' }>,
    note: (text: string) => void,
  ): Promise<void> {
    const { lib, scripts, signals } = this.around;
    const signal = `moved ${job.name} ${job.attemptsStarted}`;
    try {
      for (const plan of action.jobs) {
        // another one in each run: a name has one script
        const key = `${job.name}/${plan.key}.${job.attemptsStarted}`;
        const [first = [], ...others] = plan.script ?? [];
        scripts.set(key, [[{ do: 'hold', signal }, ...first], ...others]);
        await this.around.addJob(action.queue, { ...plan, key }, job);
      }
      const moved = await job.moveToWaitingChildren(token ?? '');
      note(`waits for children ${moved}`);
      if (moved) throw new Move(new lib.WaitingChildrenError());
    } finally {
      signals.give(signal);
    }
  }
}

async function nextMillisecond(): Promise<void> {
  const now = Date.now();
  while (Date.now() <= now) await sleep(1);
}

/** Ends a run: what a handler throws once it has moved its job. */
class Move extends Error {
  constructor(readonly toThrow: Error) {
    super('moved');
  }
}

const labelOf = (action: Action): string => (action.do === 'call' ? action.method : action.do);

type Method = (...args: unknown[]) => Promise<unknown>;

/** Values by child: which number a child has depends on which handler was the first to add one. */
function withoutNumbers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const children = Object.entries(value).map(([key, of]) => [key.replace(/:\d+$/, ':<id>'), of]);
  return children.sort((one, other) => (String(one) < String(other) ? -1 : 1));
}

/** Calls a method of the job; `$token` among the arguments is its token. */
export async function call(job: Job, method: string, args: readonly unknown[], token = ''): Promise<unknown> {
  const given = args.map((arg) => (arg === '$token' ? token : arg));
  return await (job as unknown as Record<string, Method>)[method](...given);
}
