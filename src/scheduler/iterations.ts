/** What workers do for job schedulers: who takes an iteration makes the one that follows it. */
import { COMMANDS } from '../connection/members.js';
import { iterationText } from './iteration-options.js';
import type { JobsOptions } from '../options/job.js';
import type { NativeFollowing } from '../native/types.js';
import type { AdvancedRepeatOptions } from '../options/queue.js';
import type { RepeatOptions } from '../options/repeat.js';
import { defaultRepeatStrategy, iterationOf, nextRun } from './next-run.js';
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
  readonly resolve: () => void;
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

  /** @returns by id, the iterations for which that failed, and why; empty as a rule */
  async follow(taken: readonly TakenIteration[]): Promise<ReadonlyMap<string, Error>> {
    const strategy = strategyOf(this.queue.opts);
    const failed = new Map<string, Error>();
    const followOne = async (iteration: TakenIteration): Promise<void> => {
      try {
        const following = await followingOf(iteration, strategy);
        if (following) await this.ask(following);
      } catch (error) {
        failed.set(iteration.id, asFailure(error));
      }
    };
    await Promise.all(taken.map(followOne));
    return failed;
  }

  private ask(following: NativeFollowing): Promise<void> {
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
        await this.queue[COMMANDS].native.nextIterations(followings, Date.now());
        for (const { resolve } of asked) resolve();
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

/** What follows an iteration; undefined when it was the last. */
export async function followingOf(
  { id, scheduler, name, opts }: TakenIteration,
  strategy: RepeatStrategy,
): Promise<NativeFollowing | undefined> {
  const { repeat = {} } = opts as { repeat?: RepeatOptions };
  const slot = slotOf(id);
  const next = await nextRun(strategy, repeat, slot, name);
  if (next === undefined) return undefined;
  return { scheduler, slot, next, opts: iterationText(opts, { ...repeat, count: iterationOf(repeat) }) };
}
