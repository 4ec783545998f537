/** Moves queues back to BullMQ: what `Mover` does, the other way round. Children go before their parents. */
import { pairs } from '../../job/dependencies.js';
import type { NativeMoved } from '../../native/types.js';
import { MOST_ROUNDS, Move } from './move.js';

const STATES = ['waiting', 'prioritized', 'delayed', 'failed', 'completed', 'waiting-children'] as const;

/** Numbers that stay free for jobs that our producers still add: BullMQ would take a new job for the one of ours that has its number. */
const DEFAULT_GAP = 1_000_000;

export class Returner extends Move {
  /** Moves what there is, until a look at all of it moves no more. */
  async move(): Promise<void> {
    for (const [i, account] of this.accounts.entries()) {
      const { settings } = await this.native(i).returnQueue(this.options.gap ?? DEFAULT_GAP);
      account.settings = pairs(settings, (text) => text);
    }
    for (let round = 0; round < MOST_ROUNDS && !this.isStopped; round++) {
      const before = this.moved;
      await this.moveOnce();
      if (this.moved === before) return;
    }
  }

  private async moveOnce(): Promise<void> {
    for (const account of this.accounts) account.stays.clear();
    // parents hear of children of theirs that BullMQ's workers ended, before they go where those are
    for (const i of this.queues.keys()) await this.settleQueue(i);
    for (const state of STATES) {
      for (const i of this.queues.keys()) await this.moveState(i, state);
    }
  }

  private moveState(i: number, state: string): Promise<void> {
    return this.moveAll(i, state, (skip) => {
      const give = (): Promise<NativeMoved> => this.native(i).returnJobs(state, skip, this.sources, Date.now());
      return this.options.compares === true ? this.comparers[i].toThere(state, skip, give) : give();
    });
  }
}
