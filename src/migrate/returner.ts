/** Moves queues back to BullMQ: what `Mover` does, the other way round. Children go before their parents. */
import { COMMANDS } from '../connection/members.js';
import type { NativeMoved } from '../native/types.js';
import { QueueAccount } from './account.js';
import { Comparer } from './comparer.js';
import type { MoveOptions, TargetQueue } from './mover.js';

const STATES = ['waiting', 'prioritized', 'delayed', 'failed', 'completed', 'waiting-children'] as const;

/** Numbers that stay free for jobs that our producers still add: BullMQ would take a new job for the one of ours that has its number. */
const DEFAULT_GAP = 1_000_000;

/** Rounds in which parents of parents follow their children; each moves one generation at least. */
const MOST_ROUNDS = 100;

export class Returner {
  readonly accounts: readonly QueueAccount[];
  private readonly sources: string[];
  private readonly comparers: readonly Comparer[];

  constructor(
    private readonly queues: readonly TargetQueue[],
    private readonly options: Omit<MoveOptions, 'tries'> = {},
  ) {
    this.accounts = queues.map(({ name }) => new QueueAccount(name));
    this.sources = queues.map(({ qualifiedName }) => `${qualifiedName}:`);
    this.comparers = queues.map(({ [COMMANDS]: commands }, i) => new Comparer(commands.native, this.account(i)));
  }

  get moved(): number {
    return this.accounts.reduce((sum, { total }) => sum + total, 0);
  }

  private get isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  /** Moves what there is, until a look at all of it moves no more. */
  async move(): Promise<void> {
    for (const [i, { [COMMANDS]: commands }] of this.queues.entries()) {
      const { settings } = await commands.native.returnQueue(this.options.gap ?? DEFAULT_GAP);
      const taken = this.account(i);
      for (let at = 0; at < settings.length; at += 2) taken.settings[settings[at]] = settings[at + 1];
    }
    for (let round = 0; round < MOST_ROUNDS && !this.isStopped; round++) {
      const before = this.moved;
      await this.moveOnce();
      if (this.moved === before) return;
    }
  }

  private async moveOnce(): Promise<void> {
    for (const account of this.accounts) account.stays.clear();
    for (const { [COMMANDS]: commands } of this.queues) await this.settle(commands.native);
    for (const state of STATES) {
      for (const i of this.queues.keys()) await this.moveState(i, state);
    }
  }

  /** Parents hear of children of theirs that BullMQ's workers ended, before they go where those are. */
  private async settle(native: TargetQueue[typeof COMMANDS]['native']): Promise<void> {
    let cursor = '0';
    do {
      ({ cursor } = await native.settleAdopted(cursor, this.sources, Date.now()));
    } while (cursor !== '0' && !this.isStopped);
  }

  private async moveState(i: number, state: string): Promise<void> {
    const account = this.account(i);
    const { native } = this.queues[i][COMMANDS];
    for (let skip = 0; !this.isStopped;) {
      const give = (): Promise<NativeMoved> => native.returnJobs(state, skip, this.sources, Date.now());
      const step = await (this.options.compares === true ? this.comparers[i].toThere(state, skip, give) : give());
      if (step.looked === 0) return;
      account.note(state, step.moved, step.schedulers);
      account.noteStays(step.stays);
      skip += step.kept;
      this.options.onStep?.();
    }
  }

  private account(i: number): QueueAccount {
    return this.accounts[i];
  }
}
