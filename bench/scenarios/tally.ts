import type { JobLike } from '../adapters/library.js';

/** Which of a run's jobs it is, counted from 0. */
export type NumberOf = (job: JobLike) => number;

/**
 * In a new queue, ids of both libraries count from 1. To read one costs neither of them anything; data, which the handlers do not read, one of
 * them would decode for it.
 */
export const byId: NumberOf = ({ id }) => Number(id) - 1;

/** What `tinyPayload` was given: where ids are no numbers, or were given to others before. */
export const byData: NumberOf = ({ data }) => (data as { readonly i: number }).i;

/**
 * Marks jobs as they complete: each of `expected` has to, and once. `done` resolves in the turn in which the last of them is marked. A second mark, and one of a
 * job that is none of them, are faults; so all are marked when as many are as there are.
 */
export class Tally {
  readonly done: Promise<void>;
  private resolve: () => void = () => undefined;
  private readonly marks: Uint8Array;
  private marked = 0;

  /** @param fail is told of a fault, also of one after `done` */
  constructor(
    expected: number,
    private readonly fail: (error: Error) => void,
    private readonly numberOf: NumberOf = byId,
  ) {
    this.marks = new Uint8Array(expected);
    this.done = new Promise<void>((resolve) => {
      this.resolve = resolve;
    });
  }

  get count(): number {
    return this.marked;
  }

  readonly add = (job: JobLike): void => {
    const number = this.numberOf(job);
    if (this.marks[number] !== 0) return this.refuse(job, number);
    this.marks[number] = 1;
    this.marked += 1;
    if (this.marked === this.marks.length) this.resolve();
  };

  private refuse({ id }: JobLike, number: number): void {
    const why = this.marks[number] === undefined ? 'is none of this run' : 'came twice';
    this.fail(new Error(`the end of job ${id} (number ${number} of ${this.marks.length}) ${why}`));
  }
}
