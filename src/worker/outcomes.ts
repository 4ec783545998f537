import { CHANGED_OPTS } from '../job/members.js';
import type { AttemptFailure } from '../job/attempt-policy.js';
import { LongText } from '../native/long-text.js';
import { doubled } from '../native/typed-array.js';
import type { Job } from '../job/job.js';
import type { NativeChanged, NativeOthers, NativeOutcome, NativeWorker } from '../native/types.js';

/** How a job that was run ended; its event comes when the engine has stored it. */
export const COMPLETED = 0;
export const FAILED = 1;

/** Numbers a failed attempt takes in `NativeOthers.layout`. */
const FAILED_STRIDE = 5;
/** Index of a text that is absent. */
const NO_TEXT = -1;

/**
 * Most characters of texts that travel in one call, unless a single outcome has more: 12 MB, as each takes three bytes at most.
 * The longest string of V8 has 2^29 characters, and what is sent is there several times: here, in the engine and in a socket.
 */
const MOST_CHARACTERS = 2 ** 22;

/**
 * Outcomes on their way to the engine, in one call: `NativeWorker.finish`. It also keeps, in the order in which they ended,
 * the jobs whose `completed` or `failed` event is due once the engine has stored them.
 */
export class Outcomes {
  /** Jobs that ran, and for each its handle, COMPLETED or FAILED, and the result or the error. */
  readonly jobs: Job[] = [];
  readonly handles: number[] = [];
  readonly kinds: number[] = [];
  readonly values: unknown[] = [];

  /** Qualified names of the queues in which parents of these jobs are; undefined when none has one. */
  parentQueues: Set<string> | undefined = undefined;

  private lastParentQueue: string | undefined = undefined;
  private completed = 0;
  private completedHandles = new Uint32Array(64);
  private lengths = new Int32Array(64);
  private readonly text = new LongText();
  private failures = 0;
  private failedLayout = new Float64Array(64 * FAILED_STRIDE);
  private failedTexts: string[] = [];
  /** Index of the texts used last: errors of one kind have equal ones, and the engine reads each only once. */
  private lastReason = NO_TEXT;
  private lastTrace = NO_TEXT;
  private others: NativeOutcome[] | undefined;
  private changed: NativeChanged[] | undefined;
  /** Characters of all texts. */
  private characters = 0;

  /** Number of outcomes, those that cause no event included. */
  get size(): number {
    return this.completed + this.failures + (this.others?.length ?? 0);
  }

  /** Whether an outcome with this many characters has to travel in another call. */
  isFullFor(characters: number): boolean {
    return this.characters > 0 && this.characters + characters > MOST_CHARACTERS;
  }

  /** The job completed, with the options it has now. `text` is the JSON of its result, undefined when it has none. */
  complete(job: Job, handle: number, value: unknown, text: string | undefined): void {
    const changedOpts = job[CHANGED_OPTS]; // first: it throws when the processor has put odd things in them
    const at = this.completed++;
    if (at === this.lengths.length) this.grow();
    this.completedHandles[at] = handle;
    if (text === undefined) this.lengths[at] = -1;
    else {
      this.lengths[at] = text.length;
      this.text.append(text);
      this.characters += text.length;
    }
    this.noteOptions(handle, changedOpts);
    this.note(job, handle, COMPLETED, value);
  }

  /** The attempt failed. */
  fail(job: Job, handle: number, error: unknown, failure: AttemptFailure): void {
    const { reason, stacktrace, unrecoverable, delay, changedOpts } = failure;
    const at = FAILED_STRIDE * this.failures++;
    if (at === this.failedLayout.length) this.failedLayout = doubled(this.failedLayout);
    const { failedLayout } = this;
    if (reason === undefined) this.lastReason = NO_TEXT;
    else if (this.failedTexts[this.lastReason] !== reason) this.lastReason = this.addText(reason);
    if (this.failedTexts[this.lastTrace] !== stacktrace) this.lastTrace = this.addText(stacktrace);
    failedLayout[at] = handle;
    failedLayout[at + 1] = this.lastReason;
    failedLayout[at + 2] = this.lastTrace;
    failedLayout[at + 3] = unrecoverable ? 1 : 0;
    failedLayout[at + 4] = delay ?? NaN;
    this.noteOptions(handle, changedOpts);
    this.note(job, handle, FAILED, error);
  }

  private addText(text: string): number {
    this.characters += text.length;
    return this.failedTexts.push(text) - 1;
  }

  /** Any other end, which emits no event. */
  add(outcome: NativeOutcome): void {
    (this.others ??= []).push(outcome);
  }

  send(native: Pick<NativeWorker, 'finish'>, flush: number, now: number): void {
    const { completed } = this;
    // Copies: the engine may still read them while the next outcomes are written.
    const handles = this.completedHandles.slice(0, completed);
    const lengths = this.lengths.slice(0, completed);
    native.finish(flush, now, handles, lengths, this.text.take(), this.takeOthers());
  }

  private takeOthers(): NativeOthers | undefined {
    const { failures, others, changed } = this;
    if (failures === 0 && !others && !changed) return undefined;
    const layout = this.failedLayout.slice(0, FAILED_STRIDE * failures);
    return { layout, texts: this.failedTexts, ...(others && { outcomes: others }), ...(changed && { changed }) };
  }

  clear(): void {
    this.jobs.length = 0;
    this.handles.length = 0;
    this.kinds.length = 0;
    this.values.length = 0;
    this.parentQueues = undefined;
    this.lastParentQueue = undefined;
    this.completed = 0;
    this.characters = 0;
    this.failures = 0;
    this.failedTexts = [];
    this.lastReason = NO_TEXT;
    this.lastTrace = NO_TEXT;
    this.others = undefined;
    this.changed = undefined;
  }

  private noteOptions(handle: number, changed: string | undefined): void {
    if (changed === undefined) return;
    this.characters += changed.length;
    (this.changed ??= []).push({ handle, opts: changed });
  }

  private noteParent(queue: string): void {
    this.lastParentQueue = queue;
    (this.parentQueues ??= new Set()).add(String(queue));
  }

  private note(job: Job, handle: number, kind: number, value: unknown): void {
    this.jobs.push(job);
    this.handles.push(handle);
    this.kinds.push(kind);
    this.values.push(value);
    // most have that of the one before
    const parentQueue = job.parent?.queueKey;
    if (parentQueue !== this.lastParentQueue && parentQueue !== undefined) this.noteParent(parentQueue);
  }

  private grow(): void {
    this.completedHandles = doubled(this.completedHandles);
    this.lengths = doubled(this.lengths);
  }
}
