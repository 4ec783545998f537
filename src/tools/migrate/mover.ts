/**
 * Moves queues of BullMQ's, on the same server, into ours of the same names. The engine moves the jobs, a bounded number a step, each in one
 * step: who stops or is killed has moved some, and the next move goes on.
 */
import { COMMANDS } from '../../connection/members.js';
import { pairs } from '../../job/dependencies.js';
import type { NativeMoved, NativeSurvey } from '../../native/types.js';
import { PLACES, type Place } from './account.js';
import { MOST_ROUNDS, Move, type TargetQueue } from './move.js';

/** What BullMQ has of a queue. */
export type Survey = NativeSurvey;

/** The names of BullMQ's queues with the prefix of this one. */
export function namesThere({ [COMMANDS]: commands }: TargetQueue): Promise<string[]> {
  return commands.native.sourceNames();
}

export class Mover extends Move {
  /** What BullMQ has of each queue. */
  survey(): Promise<Survey[]> {
    return Promise.all(this.queues.map((_, i) => this.native(i).surveySource()));
  }

  /** Moves what there is, until a look at all of it moves no more. */
  async move(): Promise<void> {
    await this.takeSettings();
    for (let round = 0; round < MOST_ROUNDS && !this.isStopped; round++) {
      const before = this.moved;
      await this.moveOnce();
      // a parent may have come meanwhile for which children waited
      if (this.options.tries || this.moved === before || !this.hasChildrenLeft()) break;
    }
    if (!this.options.tries) await this.takeDeduplication();
  }

  /** Deduplication ids that are owned longer than their job was there. */
  private async takeDeduplication(): Promise<void> {
    for (const [i, account] of this.accounts.entries()) {
      let cursor: string | undefined = '0';
      do {
        cursor = (await this.native(i).adoptDedup(cursor)) ?? undefined;
      } while (cursor !== '0' && cursor !== undefined && !this.isStopped);
      account.mayScan = cursor !== undefined;
    }
  }

  /** New jobs of ours get numbers above all of BullMQ's before one is moved; a paused queue is paused before it has jobs. */
  private async takeSettings(): Promise<void> {
    if (this.options.tries) return;
    for (const [i, account] of this.accounts.entries()) {
      const { isFirst, settings } = await this.native(i).adoptQueue(this.options.gap ?? 0);
      if (isFirst) account.settings = pairs(settings, (text) => text);
    }
  }

  /** One look at each of BullMQ's lists and sets. */
  async moveOnce(): Promise<void> {
    for (const account of this.accounts) account.stays.clear();
    await this.moveParents();
    for (const place of PLACES.slice(1)) {
      for (const i of this.queues.keys()) await this.movePlace(i, place);
    }
    if (!this.options.tries) await this.settle();
  }

  /** Parents before their children, which may be parents themselves, in any of the queues. */
  private async moveParents(): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS && !this.isStopped; round++) {
      const before = this.moved;
      for (const account of this.accounts) account.stays.clear();
      for (const i of this.queues.keys()) await this.movePlace(i, 'waiting-children');
      if (this.options.tries || this.moved === before) return;
    }
  }

  private movePlace(i: number, place: Place): Promise<void> {
    const { tries = false, compares = false } = this.options;
    return this.moveAll(i, place, (skip) => {
      const take = (): Promise<NativeMoved> => this.native(i).adoptJobs(place, skip, this.sources, tries, Date.now());
      return compares ? this.comparers[i].toHere(place, skip, take) : take();
    });
  }

  /** Tells parents that were moved of children that BullMQ's workers ended. */
  async settle(): Promise<void> {
    for (const [i, account] of this.accounts.entries()) account.openChildren = await this.settleQueue(i);
  }

  private hasChildrenLeft(): boolean {
    return this.accounts.some(({ stays }) => stays.has('parent'));
  }
}
