/** What workers do for job schedulers: who takes an iteration makes the one that follows it. */
import { iterationText } from './job-options.js';
import type { JobsOptions } from './options/job.js';
import type { NativeFollowing } from './native.js';
import type { AdvancedRepeatOptions, RepeatOptions } from './options/repeat.js';
import { defaultRepeatStrategy, iterationOf, nextRun } from './repeat.js';
import type { MinimalQueue } from './types/minimal-queue.js';
import type { RepeatStrategy } from './types/repeat-strategy.js';

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

/**
 * Makes what follows iterations that were taken, all in one call; each is followed once, whoever asks and how often.
 * @returns by id, the iterations for which that failed, and why; empty as a rule
 */
export async function followIterations(
  queue: MinimalQueue,
  taken: readonly TakenIteration[],
): Promise<ReadonlyMap<string, Error>> {
  const strategy = strategyOf(queue.opts);
  const failed = new Map<string, Error>();
  const fail = (id: string, cause: unknown): void => {
    const { message } = Object(cause) as Partial<Error>;
    failed.set(
      id,
      new Error(`Failed to add repeatable job for next iteration: ${message ?? String(cause)}`, { cause }),
    );
  };
  const followings: NativeFollowing[] = [];
  const asked: string[] = [];
  await Promise.all(
    taken.map(async (iteration) => {
      try {
        const following = await followingOf(iteration, strategy);
        if (!following) return;
        followings.push(following);
        asked.push(iteration.id);
      } catch (error) {
        fail(iteration.id, error);
      }
    }),
  );
  if (followings.length === 0) return failed;
  try {
    await queue.commands.native.nextIterations(followings, Date.now());
  } catch (error) {
    for (const id of asked) fail(id, error);
  }
  return failed;
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
