/** What moving queues here and moving them back have in common. */
import { COMMANDS } from '../../connection/members.js';
import type { NativeMoved, NativeQueue } from '../../native/types.js';
import { QueueAccount } from './account.js';
import { Comparer } from './comparer.js';

/** Our queue of the name, open. */
export interface TargetQueue {
  readonly name: string;
  readonly qualifiedName: string;
  readonly [COMMANDS]: { readonly native: NativeQueue };
}

export interface MoveOptions {
  /** Moves nothing, and tells what would be moved. */
  readonly tries?: boolean;
  /** Reads each job before it moves and after, and compares all that is known of it. */
  readonly compares?: boolean;
  /** Numbers that stay free for jobs that the producers of the side that is left still add. */
  readonly gap?: number;
  /** Stops the move between two steps. */
  readonly signal?: AbortSignal;
  /** Told after each step. */
  readonly onStep?: () => void;
}

/** Rounds in which parents of parents follow each other; each moves one generation at least. */
export const MOST_ROUNDS = 100;

export class Move {
  readonly accounts: readonly QueueAccount[];
  /** What BullMQ's keys of each queue start with. */
  protected readonly sources: string[];
  protected readonly comparers: readonly Comparer[];

  constructor(
    protected readonly queues: readonly TargetQueue[],
    protected readonly options: MoveOptions = {},
  ) {
    this.accounts = queues.map(({ name }) => new QueueAccount(name));
    this.sources = queues.map(({ qualifiedName }) => `${qualifiedName}:`);
    this.comparers = queues.map((_, i) => new Comparer(this.native(i), this.accounts[i]));
  }

  get moved(): number {
    return this.accounts.reduce((sum, { total }) => sum + total, 0);
  }

  protected get isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  protected native(i: number): NativeQueue {
    return this.queues[i][COMMANDS].native;
  }

  /** Takes steps until there are no more jobs in a place. `step` passes over so many that stay. */
  protected async moveAll(i: number, place: string, step: (skip: number) => Promise<NativeMoved>): Promise<void> {
    const account = this.accounts[i];
    for (let skip = 0; !this.isStopped;) {
      const { looked, moved, schedulers, stays, kept } = await step(skip);
      if (looked === 0) return;
      account.note(place, moved, schedulers);
      account.noteStays(stays);
      skip += this.options.tries ? looked : kept;
      this.options.onStep?.();
    }
  }

  /** Tells parents that were moved of children that BullMQ's workers ended. Gives the number of those that have not. */
  protected async settleQueue(i: number): Promise<number> {
    let [cursor, open] = ['0', 0];
    do {
      const step = await this.native(i).settleAdopted(cursor, this.sources, Date.now());
      [cursor, open] = [step.cursor, open + step.open];
    } while (cursor !== '0' && !this.isStopped);
    return open;
  }
}
