/* eslint-disable max-lines -- a job's life in a worker, from its delivery to its events, is told in one place */
/**
 * Runs the jobs a worker has fetched, up to `concurrency` at a time. The outcomes go to the engine by the `OutcomeSender`.
 *
 * A job runs in a slot. A slot whose job has ended takes the next fetched job at once; when there is none, the answer to the
 * outcomes brings the next ones, so `completed` of a job is emitted before `active` of the one that follows it on the
 * slot.
 *
 * A fetched job is the engine's until it is drawn, right before it starts, so that an event loop that stands still keeps none from other workers.
 *
 * This path is hot: per job it creates the Job, its text slices and the promise of its handler, nothing else.
 */
import { RECORD_COMPLETION, RECORD_FAILURE, RECORD_RESULT } from '../job/members.js';
import { callersGone } from '../add/calls-under-way.js';
import { Drawing } from './drawing.js';
import { FetchedBatch, type Fetched } from './fetched-batch.js';
import { stringify } from '../native/json.js';
import { errorFromNative, type CodedError } from '../native/native-error.js';
import { JobCancelledError } from '../errors/job-cancelled-error.js';
import { JobTimeoutError } from '../errors/job-timeout-error.js';
import { rejectWith } from '../errors/reject-with.js';
import { thrownSignal } from '../errors/thrown-signal.js';
import { FailureReplies } from './failure-replies.js';
import { failureOf, isUnrecoverable, reasonNotToRun, type AttemptFailure } from '../job/attempt-policy.js';
import type { Job } from '../job/job.js';
import { isObservable, type ObservableLike } from '../job/observable.js';
import { answersBefore } from '../job/open-calls.js';
import type { NativeCancelled, WorkerMessage } from '../native/types.js';
import { OutcomeSender } from './outcome-sender.js';
import { COMPLETED, type Outcomes } from './outcomes.js';
import { Slot } from './slot.js';
import { Waiters } from './waiters.js';
import type { TracedRuns } from '../telemetry/runs.js';
import { ErrorCode } from '../errors/error-code.js';
import type { DispatcherOptions } from './dispatcher-options.js';

/** Refusals of a completion that fail the attempt. */
const MUST_FAIL = new Set<number>([ErrorCode.JobPendingChildren, ErrorCode.JobHasFailedChildren]);

// Taken at load: fake timers of a user's stand still. Of all clocks this one goes on while a machine sleeps.
const clock = Date.now.bind(Date);

/** Jobs of a tick that may end before the clock is looked at again: in a row of short jobs a look for each takes a tenth of the time. */
const MOST_UNSEEN = 4;

// eslint-disable-next-line @typescript-eslint/unbound-method -- bound by each call
const { then } = Promise.prototype;

export class Dispatcher {
  private concurrency: number;
  /** Jobs that run. */
  running = 0;
  private readonly slots: Slot[] = [];
  private readonly freeSlots: Slot[] = [];
  /** Fetched jobs, oldest first; only of the first batch some may have started. */
  private readonly batches: FetchedBatch[] = [];
  /** Number of fetched jobs that have not started. The engine may have taken some of them back. */
  left = 0;
  /** Slots whose job starts when its next iteration is made. */
  private readonly unfollowed = new Set<Slot>();
  /** Handles of those that went back at the latest pause: what is not to run has perhaps left the worker meanwhile. */
  private readonly wentBack = new Set<number>();
  /** Cancelled jobs that have not started, by id: why they are not to. */
  private readonly doomed = new Map<string, { claim: number; text: string }>();
  /** Ends that wait for calls of their handlers, or for the pause before the next try. */
  private readonly behindCalls = new Set<Promise<void>>();
  areLong = false;
  /** Deliveries that wait for callers to go on: nothing starts meanwhile. */
  private held = 0;
  private accepting = true;
  /** The time of the jobs that run is over. */
  private interrupted = false;
  stopped = false;

  /** When the clock was looked at, and how many jobs of this tick have ended since. */
  private now = 0;
  private unseen = 0;
  private readonly drawing: Drawing;
  private readonly sender: OutcomeSender;
  private readonly waiters = new Waiters();

  constructor(private readonly options: DispatcherOptions) {
    this.concurrency = options.concurrency;
    this.drawing = new Drawing(options.native);
    this.sender = new OutcomeSender(this, options.native, options.owner.qualifiedName);
  }

  /** Number of jobs that may run at once. Running jobs are left alone. */
  setConcurrency(concurrency: number): void {
    this.concurrency = concurrency;
    if (!this.accepting) return;
    this.startAll();
    this.giveBack();
  }

  // ---- Fetched jobs

  /** Takes jobs in: starts what fits, keeps the rest. While paused it leaves them to the engine, which takes them back. */
  deliver(fetched: Fetched): void {
    if (!this.accepting) return;
    const batch = new FetchedBatch(fetched, this.options.tokenPrefix, this.options.remake());
    this.batches.push(batch);
    this.left += fetched.count;
    this.areLong = batch.areLong;
    if (fetched.extras.length > 0) this.follow(batch);
    const callers = callersGone(this.options.owner.qualifiedName, () => batch.youngest);
    if (callers) void this.startBehind(callers);
    else this.startAll();
    this.giveBack();
  }

  /** Gives back what has no room, where that is not to wait here. */
  private giveBack(): void {
    if (!this.options.batches || this.left === 0 || this.held > 0 || this.running < this.concurrency) return;
    this.dropFetched();
    this.options.native.takeBack();
  }

  /** Starts jobs when the calls of this thread that may have let them start are answered. */
  private async startBehind(callers: Promise<void>): Promise<void> {
    const { native } = this.options;
    if (this.held++ === 0) native.hold(true);
    await callers;
    if (--this.held === 0) native.hold(false);
    this.startAll();
    this.giveBack();
  }

  /** Makes what follows iterations of job schedulers, as soon as they are here and in one call. */
  private follow(batch: FetchedBatch): void {
    const taken = batch.iterations();
    if (taken.length === 0) return;
    batch.following = this.options.follow(taken).then((refused) => {
      batch.following = undefined;
      if (refused.size > 0) batch.refused = refused;
    });
  }

  /** Starts nothing more; running jobs go on. Call it before the engine is paused, which takes back what is not drawn then. */
  pause(): void {
    this.accepting = false;
    this.dropFetched();
    this.options.batches?.disband();
    this.wentBack.clear();
    for (const slot of this.unfollowed) {
      this.wentBack.add(slot.handle);
      this.sender.gathering.add({ handle: slot.handle, kind: 'returned' });
      this.release(slot);
    }
    this.unfollowed.clear();
    if (this.sender.gathering.size > 0) this.sender.flushSoon(this.look());
  }

  private dropFetched(): void {
    this.batches.length = 0;
    this.left = 0;
  }

  resume(): void {
    this.accepting = true;
  }

  /** Drops everything: sends no outcome and emits no event any more. */
  stop(): void {
    this.stopped = true;
    this.accepting = false;
    this.batches.length = 0;
    this.left = 0;
    this.options.batches?.disband();
    this.options.limits.stop();
    if (this.options.runs) for (const job of this.sender.unstored()) this.traceEnd(job);
    this.sender.stop();
    this.waiters.stop();
  }

  /**
   * The time of the jobs that run is over: aborts their signals. A job whose handler throws from now on goes back, and the try is not counted.
   * @returns whether some may end soon: their handlers hear of it, or have ended
   */
  interrupt(reason: string): boolean {
    this.interrupted = true;
    this.cancelAll(reason);
    return this.behindCalls.size > 0 || this.slots.some(({ controller }) => controller);
  }

  /** Gives back the jobs that run: the start is counted, the try is not. Their handlers are not heard any more. Call {@link flush} to send it. */
  abandonRunning(): void {
    this.behindCalls.clear();
    this.options.limits.stop();
    for (const slot of this.slots) {
      const { job } = slot;
      if (!job) continue;
      slot.abandon();
      this.running--;
      // what becomes of it is the same
      this.sender.gathering.add({ handle: slot.handle, kind: 'rateLimited' });
      this.trace((runs) => runs.limited(job));
    }
    this.slots.length = 0;
    this.freeSlots.length = 0;
  }

  /** Resolves when no job is running. */
  whenQuiet(): Promise<void> {
    return this.waiters.until(() => this.running === 0);
  }

  /** Resolves when no job is running and every outcome is stored. */
  whenSettled(): Promise<void> {
    return this.waiters.until(() => this.running === 0 && this.sender.isSettled);
  }

  /** Whether there are jobs here whose ends are not stored. */
  get holdsJobs(): boolean {
    return this.running > 0 || this.left > 0 || this.hasEnds;
  }

  /** Whether an end is not stored. */
  get hasEnds(): boolean {
    return this.behindCalls.size > 0 || !this.sender.isSettled;
  }

  /** Milliseconds for which an end has had no answer. */
  get silentFor(): number {
    return this.sender.silentFor;
  }

  /** Resolves when what has ended by now is stored. */
  async whenRecorded(): Promise<void> {
    await Promise.all(this.behindCalls);
    this.flush();
    const { lastCall } = this.sender;
    await this.waiters.until(() => this.sender.hasStored(lastCall));
  }

  // ---- Running

  private startAll(): void {
    while (this.running < this.concurrency && this.draw(this.look())) {
      this.running++;
      const slot = this.freeSlots.pop() ?? this.newSlot();
      if (this.take(slot)) this.run(slot);
    }
  }

  /** Looks at the clock. */
  private look(): number {
    this.unseen = 0;
    return (this.now = clock());
  }

  /** Draws the first of the fetched jobs, unless nothing may start, and forgets the batches that the engine has taken back. False when there is none. */
  private draw(now: number): boolean {
    if (this.batches.length === 0 || this.held > 0) return false;
    if (!this.drawing.mayStart(now)) {
      this.dropFetched();
      return false;
    }
    return this.drawing.draw(this.batches[0].offer) || this.drawFromNext();
  }

  private drawFromNext(): boolean {
    do {
      this.left -= this.batches[0].left;
      this.batches.shift();
      this.options.native.heard();
    } while (this.batches.length > 0 && !this.drawing.draw(this.batches[0].offer));
    return this.batches.length > 0;
  }

  private newSlot(): Slot {
    const slot = new Slot(this, String(this.slots.length));
    this.slots.push(slot);
    return slot;
  }

  /** Gives the next drawn job to a slot that counts as running. False when the job does not start at once. */
  private take(slot: Slot): boolean {
    const { options } = this;
    const batch = this.batches[0];
    slot.handle = batch.handle;
    if (slot.claim !== batch.claim) {
      slot.claim = batch.claim;
      slot.token = batch.tokenOf(slot.number);
    }
    let job: Job | undefined;
    try {
      job = batch.take(options.JobClass, options.owner, slot.token, options.workerName);
    } catch (error) {
      options.owner.emit('error', error);
    }
    if (batch.left === 0) this.batches.shift();
    this.left--;
    if (!job) return this.giveUp(slot);
    slot.job = job;
    if (options.runs?.ready) this.trace(({ ready }) => ready?.set(job, batch.readyOf(job)));
    if (this.doomed.size > 0) this.doom(slot, job);
    if (job.repeatJobKey === undefined || !(batch.following || batch.refused)) return true;
    void this.runFollowed(slot, job, batch);
    return false;
  }

  /** Code of the user's made no job of what was read: it stays active until it counts as stalled, as in BullMQ 6.7.0. As {@link next}. */
  private giveUp(slot: Slot): boolean {
    if (!this.stopped) this.sender.gathering.add({ handle: slot.handle, kind: 'moved' });
    return this.next(slot);
  }

  /**
   * Runs an iteration once the next one is made. If that fails, it stays active and is tried again when it has stalled. One that is not to run now has
   * left the active ones already.
   */
  private async runFollowed(slot: Slot, job: Job, batch: FetchedBatch): Promise<void> {
    this.unfollowed.add(slot);
    await batch.following;
    // else it went back meanwhile, and the slot may have another
    if (slot.job !== job || !this.unfollowed.delete(slot)) return;
    const refusal = batch.refused?.get(job.id as string);
    if (refusal === undefined && !this.stopped) {
      if (!this.options.batches?.isFull) return this.run(slot);
      this.sender.gathering.add({ handle: slot.handle, kind: 'returned' });
      return this.release(slot);
    }
    if (!this.stopped) {
      if (refusal) this.options.owner.emit('error', refusal);
      this.sender.gathering.add({ handle: slot.handle, kind: 'moved' });
    }
    this.release(slot);
  }

  /** Whether anybody hears this event: who puts an `emit` of its own in the place of the worker's class hears all. */
  private hears(event: string): boolean {
    const { owner, ownEmit } = this.options;
    return owner.listenerCount(event) > 0 || owner.emit !== ownEmit;
  }

  /** Runs the job of a slot. What calls it stands in the stack traces of users' errors: the fewer, the cheaper. */
  run(slot: Slot): void {
    const { options } = this;
    const job = slot.job!;
    const { owner, policy } = options;
    if (this.hears('active')) owner.emit('active', job, 'waiting');

    try {
      const refusal = reasonNotToRun(job, policy.maxStartedAttempts);
      if (refusal) {
        this.trace((runs) => runs.begin(job));
        throw refusal;
      }
      if (options.runs?.ready) this.trace((runs) => runs.started(job));
      if (options.acceptsSignal) slot.controller = new AbortController();
      const limit = options.limits.of(job);
      // Also turns a plain value, or another library's promise, into one that settles later.
      const running =
        limit === undefined
          ? Promise.resolve(options.process(job, slot.token, slot.controller?.signal))
          : this.runWithin(limit, slot, job);
      // a promise may have a `then` of its own, which may call back twice or never
      void then.call(running, slot.onFulfilled, slot.onRejected);
    } catch (error) {
      void rejectWith(error).catch(slot.onRejected);
    }
  }

  private runWithin(ms: number, slot: Slot, job: Job): Promise<unknown> {
    const { options } = this;
    return options.limits.run(job, ms, slot, () => options.process(job, slot.token, slot.controller?.signal));
  }

  /** The job of a slot returned `value`. As {@link next}. */
  completed(slot: Slot, value: unknown): boolean {
    if (this.options.batches?.goesBack(slot.job!)) return this.putBack(slot);
    let text: string | undefined;
    try {
      if (isObservable(value)) return this.observe(slot, value);
      slot.job![RECORD_RESULT](value);
      text = value === undefined ? undefined : stringify(value);
    } catch (error) {
      return this.refuse(slot, error);
    }
    const answers = answersBefore(this.options.owner, slot.job!);
    return answers ? this.completeBehind(answers, slot, value, text) : this.complete(slot, value, text);
  }

  /** Its last value is the result. */
  private observe(slot: Slot, observable: ObservableLike<unknown>): false {
    void this.options.observe(slot.job!, observable, slot).then(slot.onFulfilled, slot.onRejected);
    return false;
  }

  private complete(slot: Slot, value: unknown, text: string | undefined): boolean {
    try {
      this.sender.makeRoom(text?.length ?? 0);
      if (!this.stopped) this.sender.gathering.complete(slot.job!, slot.handle, value, text);
      else this.traceEnd(slot.job!);
    } catch (error) {
      return this.refuse(slot, error);
    }
    return this.next(slot);
  }

  /** The job of a slot, or its result, throws when it is looked at: the attempt fails. As {@link next}. */
  private refuse(slot: Slot, error: unknown): boolean {
    this.options.owner.emit('error', error);
    this.trace((runs) => runs.erred(slot.job!, error));
    return this.failed(slot, error);
  }

  // What waits for calls of a handler is apart: a closure in a function makes all its calls slower. The slot is in use meanwhile.

  private completeBehind(answers: Promise<void>, slot: Slot, value: unknown, text: string | undefined): false {
    this.endBehind(answers, () => this.complete(slot, value, text) && this.run(slot));
    return false;
  }

  private failBehind(answers: Promise<void>, slot: Slot, error: unknown): false {
    this.endBehind(answers, () => this.fail(slot, error) && this.run(slot));
    return false;
  }

  private endBehind(answers: Promise<void>, end?: () => unknown): void {
    const ended = answers.then(() => {
      // else the job was given back meanwhile
      if (this.behindCalls.delete(ended)) end?.();
    });
    this.behindCalls.add(ended);
  }

  /** The job of a slot threw. As {@link next}. */
  failed(slot: Slot, error: unknown): boolean {
    if (this.options.batches?.goesBack(slot.job!)) return this.putBack(slot);
    const answers = answersBefore(this.options.owner, slot.job!);
    return answers ? this.failBehind(answers, slot, error) : this.fail(slot, error);
  }

  /** No call of the processor took the job. As {@link next}. */
  private putBack(slot: Slot): boolean {
    if (!this.stopped) this.sender.gathering.add({ handle: slot.handle, kind: 'returned' });
    this.traceEnd(slot.job!);
    return this.next(slot);
  }

  private fail(slot: Slot, error: unknown): boolean {
    const job = slot.job!;
    const { handle } = slot;
    if (this.stopped) {
      this.traceEnd(job);
      return this.next(slot);
    }
    try {
      const isCut = this.interrupted && !(error instanceof JobTimeoutError || isUnrecoverable(job, error));
      const signal = thrownSignal(error) ?? (isCut ? 'rateLimited' : undefined);
      if (signal === 'rateLimited') {
        this.sender.gathering.add({ handle, kind: signal });
        // the engine takes them back with this end
        this.dropFetched();
        this.trace((runs) => runs.limited(job));
      } else if (signal === 'moved') {
        this.letGo(slot);
      } else {
        const failure = failureOf(job, error, this.options.policy);
        if ('then' in failure) {
          this.endBehind(this.failLater(slot, error, failure));
          return false;
        }
        this.noteFailure(slot, error, failure);
      }
    } catch (oddity) {
      this.options.owner.emit('error', oddity);
      this.letGo(slot);
    }
    return this.next(slot);
  }

  private async failLater(slot: Slot, error: unknown, asked: Promise<AttemptFailure>): Promise<void> {
    const { job } = slot;
    try {
      const failure = await asked;
      if (slot.job !== job) return;
      if (!this.stopped) this.noteFailure(slot, error, failure);
      else this.traceEnd(slot.job!);
    } catch (strategyError) {
      this.options.owner.emit('error', strategyError);
      if (slot.job !== job) return;
      this.letGo(slot);
    }
    this.release(slot);
  }

  private noteFailure({ job, handle }: Slot, error: unknown, failure: AttemptFailure): void {
    this.sender.makeRoom((failure.reason?.length ?? 0) + failure.stacktrace.length);
    this.sender.gathering.fail(job!, handle, error, failure);
  }

  /**
   * The worker lets go of the job: its processor has moved it, or its strategy, its error or the job itself throws when
   * it is read. Then the job stays active until it counts as stalled, as in BullMQ 6.7.0.
   */
  private letGo(slot: Slot): void {
    if (!this.stopped) this.sender.gathering.add({ handle: slot.handle, kind: 'moved' });
    this.traceEnd(slot.job!);
  }

  /** Nothing more is told of the job. */
  private traceEnd(job: Job): void {
    this.trace((runs) => runs.end(job));
  }

  private traceRefusal(job: Job, refusal: Error): void {
    this.trace((runs) => runs.erred(job, refusal));
    this.traceEnd(job);
  }

  /** What a tracer throws is an error of the worker, and changes nothing for the job. */
  private trace(tell: (runs: TracedRuns) => void): void {
    const { runs, owner } = this.options;
    if (!runs) return;
    try {
      tell(runs);
    } catch (error) {
      owner.emit('error', error);
    }
  }

  /** Gives the slot its next job, or lets it rest. True when it is to run a job now. */
  private next(slot: Slot): boolean {
    slot.job = undefined;
    slot.controller = undefined;
    const now = this.sender.hasTick && ++this.unseen < MOST_UNSEEN ? this.now : this.look();
    if (this.running <= this.concurrency && this.draw(now)) {
      this.sender.flushSoon(now);
      return this.take(slot);
    }
    this.running--;
    this.freeSlots.push(slot);
    this.sender.flushSoon(now);
    if (this.running === 0) this.waiters.wake();
    return false;
  }

  private release(slot: Slot): void {
    if (this.next(slot)) this.run(slot);
  }

  // ---- Outcomes

  /** Sends the outcomes that have gathered, unless they have to wait for answers. */
  flush(): void {
    this.sender.flush();
  }

  /** The engine has stored outcomes: updates their jobs and emits their events. */
  acknowledge(message: WorkerMessage): void {
    if (this.stopped) return;
    // First of all, so that the engine works while listeners run.
    const stored = this.sender.acknowledge(message.flushed!, message.jobs?.count ?? 0);
    const rejected = message.rejected && rejectedByHandle(message.rejected);
    rejected?.forEach((error, handle) => this.wentBack.delete(handle) || this.options.owner.emit('error', error));
    for (const sent of stored) {
      this.report(sent.outcomes, message, rejected);
      this.sender.reuse(sent);
    }
    this.waiters.wake();
  }

  private report(sent: Outcomes, message: WorkerMessage, rejected: Map<number, CodedError> | undefined): void {
    const { jobs, handles, kinds, values } = sent;
    const failures = message.failures && new FailureReplies(message.failures);
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i];
      const refusal = rejected?.get(handles[i]);
      if (refusal) {
        if (MUST_FAIL.has(refusal.code as number)) this.failRefused(job, handles[i], refusal);
        else this.traceRefusal(job, refusal);
        continue;
      }
      const found = kinds[i] !== COMPLETED && failures?.find(handles[i]) ? failures : undefined;
      try {
        this.emitEnd(job, kinds[i], values[i], found, message.finishedOn);
      } catch (error) {
        this.options.owner.emit('error', error); // a job that was frozen, say: its end is stored
      }
    }
  }

  private emitEnd(
    job: Job,
    kind: number,
    value: unknown,
    found: FailureReplies | undefined,
    finishedOn?: number,
  ): void {
    const { owner, runs } = this.options;
    if (kind === COMPLETED) {
      job[RECORD_COMPLETION](finishedOn);
      if (runs) runs.stored(job, 'completed', value);
      else if (this.hears('completed')) owner.emit('completed', job, value, 'active');
    } else {
      if (found) job[RECORD_FAILURE](found, finishedOn);
      if (runs && found) runs.stored(job, found.became, value);
      else if (this.hears('failed')) owner.emit('failed', job, value, 'active');
    }
  }

  /** The engine did not let a parent complete, which this worker still holds: the attempt fails. */
  private failRefused(job: Job, handle: number, refusal: Error): void {
    const slot = this.freeSlots.pop() ?? this.newSlot();
    this.running++;
    slot.job = job;
    slot.handle = handle;
    if (this.failed(slot, refusal)) this.run(slot);
  }

  // ---- Cancelling

  /** Aborts the signal of a running job. False when no such job is running, or its processor takes no signal. */
  cancel(jobId: string, reason?: string): boolean {
    const slot = this.slots.find(({ job, controller }) => controller && job?.id === jobId);
    slot?.controller?.abort(reason);
    return slot !== undefined;
  }

  cancelAll(reason?: string): void {
    for (const { controller } of this.slots) controller?.abort(reason);
  }

  /** Somebody has cancelled these jobs: aborts the signals of those that run. What has not started fails instead, and none of them is tried again. */
  cancelHeld(jobs: readonly NativeCancelled[]): void {
    // of what went back nothing is heard any more
    const oldest = this.batches[0]?.claim ?? Infinity;
    for (const [id, { claim }] of this.doomed) if (claim < oldest) this.doomed.delete(id);
    for (const { id, claim, reason } of jobs) {
      // a user took it
      if (claim === undefined) continue;
      const error = new JobCancelledError(reason);
      const slot = this.slots.find((each) => each.job?.id === id && each.claim === claim);
      if (slot?.job) {
        // a frozen one takes none
        Reflect.set(slot.job, 'deferredFailure', error.message);
        // an observable that is still to come is not subscribed to
        (slot.controller ??= new AbortController()).abort(error);
      } else if (claim >= oldest) {
        this.doomed.set(id, { claim, text: error.message });
      }
    }
  }

  private doom(slot: Slot, job: Job): void {
    const doom = this.doomed.get(job.id as string);
    if (doom?.claim !== slot.claim) return;
    this.doomed.delete(job.id as string);
    job.deferredFailure = doom.text;
  }

  /** Ids of the jobs that are running. */
  runningIds(): string[] {
    // a processor may have put anything in its place
    return this.slots.flatMap(({ job }) => (typeof job?.id === 'string' ? [job.id] : []));
  }
}

function rejectedByHandle(rejected: NonNullable<WorkerMessage['rejected']>): Map<number, CodedError> {
  return new Map(rejected.map(({ handle, error }) => [handle, errorFromNative(error)]));
}
