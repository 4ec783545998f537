import type { Job } from './job.js';
import type { NativeOutcome, NativeWorker } from './native.js';

/** How a job that was run ended; what became of it is told when the engine has stored it. */
export const COMPLETED = 0;
export const FAILED = 1;

/**
 * Outcomes on their way to the engine, in one call: `NativeWorker.finish`. Beside what the engine is told it keeps, in
 * the order in which they ended, the jobs whose `completed` or `failed` event is due once that is stored.
 */
export class Outcomes {
  /** Jobs that ran, and for each its handle, COMPLETED or FAILED, and the result or the error. */
  readonly jobs: Job[] = [];
  readonly handles: number[] = [];
  readonly kinds: number[] = [];
  readonly values: unknown[] = [];

  private completed = 0;
  private completedHandles = new Uint32Array(64);
  private lengths = new Int32Array(64);
  private text = '';
  private others: NativeOutcome[] = [];

  /** Number of outcomes, those that cause no event included. */
  get size(): number {
    return this.completed + this.others.length;
  }

  /** The job completed. `text` is the JSON of its result, undefined when it has none. */
  complete(job: Job, handle: number, value: unknown, text: string | undefined): void {
    const at = this.completed++;
    if (at === this.lengths.length) this.grow();
    this.completedHandles[at] = handle;
    if (text === undefined) this.lengths[at] = -1;
    else {
      this.lengths[at] = text.length;
      this.text += text;
    }
    this.note(job, handle, COMPLETED, value);
  }

  /** The try failed. */
  fail(job: Job, error: unknown, outcome: NativeOutcome): void {
    this.others.push(outcome);
    this.note(job, outcome.handle, FAILED, error);
  }

  /** Any other end, of which no event tells. */
  add(outcome: NativeOutcome): void {
    this.others.push(outcome);
  }

  send(native: Pick<NativeWorker, 'finish'>, flush: number, now: number): void {
    const { completed } = this;
    // Copies: the engine may still read them while the next outcomes are written.
    const handles = this.completedHandles.slice(0, completed);
    native.finish(flush, now, handles, this.lengths.slice(0, completed), this.text, this.others);
  }

  clear(): void {
    this.jobs.length = 0;
    this.handles.length = 0;
    this.kinds.length = 0;
    this.values.length = 0;
    this.completed = 0;
    this.text = '';
    this.others = [];
  }

  private note(job: Job, handle: number, kind: number, value: unknown): void {
    this.jobs.push(job);
    this.handles.push(handle);
    this.kinds.push(kind);
    this.values.push(value);
  }

  private grow(): void {
    const handles = new Uint32Array(this.lengths.length * 2);
    handles.set(this.completedHandles);
    this.completedHandles = handles;
    const lengths = new Int32Array(handles.length);
    lengths.set(this.lengths);
    this.lengths = lengths;
  }
}
