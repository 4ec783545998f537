/** What the handlers of a program do: the script of their job, one run after the other. */
import type { Job, Queue } from 'bullmq';
import type { Library } from '../support/libraries.js';
import { sleep } from '../support/waiting.js';
import { block } from '../life/programs/loop.mjs';
import type { Action, JobPlan } from './program.js';
import type { Book } from './runs.js';
import type { SignalBox } from './signals.js';
import { decode, messageOf, shown, thrown } from './values.js';

/** What a handler needs of the world around it. */
export interface Surroundings {
  readonly lib: Library;
  readonly queues: readonly Queue[];
  readonly signals: SignalBox;
  readonly scripts: Scripts;
  readonly book: Book;
  /** Each run begins in a millisecond of its own. */
  readonly spaced: boolean;
  /** Adds a job of that plan, whose script is known, and remembers it. */
  addJob(queue: number, plan: JobPlan, parent: Job): Promise<void>;
}

/** What the handler of a job does at each start. */
export type Script = readonly (readonly Action[])[];
/** By the name of the job. */
export type Scripts = Map<string, Script>;

export class Handlers {
  constructor(private readonly around: Surroundings) {}

  async handle(job: Job, token: string | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    const run = this.around.book.begin(job);
    if (this.around.spaced) await nextMillisecond();
    const note = (text: string) => run.note(text);
    try {
      return await this.#run(job, token, signal, this.around.scripts.get(job.name)?.[run.at] ?? [], note);
    } finally {
      run.end();
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
      case 'block':
        block(action.ms);
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

/** Adds a child at run time. */
export async function addChild(
  queue: Queue,
  { key, opts = {} }: JobPlan,
  { id = '', queueQualifiedName }: Job,
  data: object = { key },
): Promise<Job> {
  return await queue.add(key, data, { ...(decode(opts) as object), parent: { id, queue: queueQualifiedName } });
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
