/** What workers do for job schedulers: who takes an iteration makes the one that follows it. */
import { COMMANDS } from '../connection/members.js';
import { iterationText } from './iteration-options.js';
import type { JobsOptions } from '../options/job.js';
import type { NativeFollowing, NativeSchedulerRules } from '../native/types.js';
import type { AdvancedRepeatOptions } from '../options/queue.js';
import type { RepeatOptions } from '../options/repeat.js';
import { defaultRepeatStrategy, iterationOf, runBehind } from './next-run.js';
import type { JobQueue } from '../job/minimal-queue.js';
import type { RepeatStrategy } from '../types/repeat-strategy.js';

// Taken at load, so that a user's fake timers do not hold up jobs.
const nextTick = process.nextTick.bind(process);

/** An iteration that a worker has taken. */
export interface TakenIteration {
  readonly id: string;
  /** Id of its scheduler. */
  readonly scheduler: string;
  readonly name: string;
  readonly opts: JobsOptions;
  /** Token of who holds it; without one it is followed, and not judged. */
  readonly token?: string;
}

/** The strategy a queue or worker was given, or cron. */
export function strategyOf(opts: object | undefined): RepeatStrategy {
  const { settings } = (opts ?? {}) as { settings?: AdvancedRepeatOptions };
  return settings?.repeatStrategy ?? defaultRepeatStrategy;
}

/** Time for which an iteration was made, epoch milliseconds: it ends its id. */
export function slotOf(id: string): number {
  return Number(id.slice(id.lastIndexOf(':') + 1));
}

/** Something that follows an iteration, on its way to the engine. */
interface Asked {
  readonly following: NativeFollowing;
  readonly resolve: (mayRun: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes what follows the iterations that one worker takes; each is followed once, whoever asks and how often. What is
 * asked for while a call is unanswered goes with the next one.
 */
export class Follower {
  private asked: Asked[] = [];
  private isSending = false;

  constructor(private readonly queue: JobQueue) {}

  /**
   * @returns by id, the iterations that must not run: those for which that failed, and why; null for those that have left the worker, as the
   * scheduler's rules say. Empty as a rule
   */
  async follow(taken: readonly TakenIteration[]): Promise<ReadonlyMap<string, Error | null>> {
    const strategy = strategyOf(this.queue.opts);
    const refused = new Map<string, Error | null>();
    const followOne = async (iteration: TakenIteration): Promise<void> => {
      try {
        const following = await followingOf(iteration, strategy);
        if (following && !(await this.ask(following))) refused.set(iteration.id, null);
      } catch (error) {
        refused.set(iteration.id, asFailure(error));
      }
    };
    await Promise.all(taken.map(followOne));
    return refused;
  }

  private ask(following: NativeFollowing): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.asked.push({ following, resolve, reject });
      if (this.isSending) return;
      this.isSending = true;
      nextTick(() => void this.send());
    });
  }

  private async send(): Promise<void> {
    while (this.asked.length > 0) {
      const { asked } = this;
      this.asked = [];
      const followings = asked.map(({ following }) => following);
      try {
        const slots = await this.queue[COMMANDS].native.nextIterations(followings, Date.now());
        asked.forEach(({ resolve }, i) => resolve(slots[i] >= 0));
      } catch (error) {
        for (const { reject } of asked) reject(error);
      }
    }
    this.isSending = false;
  }
}

function asFailure(cause: unknown): Error {
  const { message } = Object(cause) as Partial<Error>;
  return new Error(`Failed to add repeatable job for next iteration: ${message ?? String(cause)}`, { cause });
}

/** What follows an iteration; undefined when it was the last, and nobody asks whether it is to run. */
export async function followingOf(
  { id, scheduler, name, opts, token }: TakenIteration,
  strategy: RepeatStrategy,
): Promise<NativeFollowing | undefined> {
  const { repeat = {} } = opts as { repeat?: RepeatOptions };
  const slot = slotOf(id);
  const { next, first, missed } = await runBehind(strategy, repeat, slot, name);
  const rules = rulesOf(repeat, missed, token);
  if (next === undefined && !rules) return undefined;
  const text = iterationText(opts, { ...repeat, count: iterationOf(repeat) });
  return {
    id,
    scheduler,
    slot,
    opts: text,
    ...(next !== undefined && { next }),
    ...(first !== undefined && { first }),
    ...(rules && { rules }),
  };
}

/** A scheduler's rules as the engine takes them; undefined for one that has none, as most. */
function rulesOf(
  { overlap = 'allow', catchUp, jitter = 0 }: RepeatOptions,
  missed: boolean,
  token: string | undefined,
): NativeSchedulerRules | undefined {
  if (overlap === 'allow' && !catchUp && !jitter) return undefined;
  if (token === undefined) return { missed: false, jitter, token: '' };
  return { overlap, ...(catchUp && { catchUp }), missed, jitter, token };
}
