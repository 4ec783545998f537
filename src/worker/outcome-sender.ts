/**
 * Sends outcomes to the engine: those of one tick in one call. While a call is unanswered, outcomes gather. Only many of them
 * travel in a second call, so that the engine has them when the server answers the first; and few, which the engine lets wait
 * for each other, as long as all that are unanswered are few. When their texts have grown
 * long they are sealed, and others gather; sealed ones travel in calls of their own, one after the other.
 */
import { beginCall, endCall } from '../add/calls-under-way.js';
import { sendAdds } from '../add/producer.js';
import type { Job } from '../job/job.js';
import { native } from '../native/addon.js';
import type { NativeWorker } from '../native/types.js';
import { Outcomes } from './outcomes.js';

/**
 * Fewest outcomes that are sent though the tick has not ended. They go when half of the jobs at hand have ended: then
 * the engine works on one half while the other one runs.
 */
const EARLY_FLUSH = 128;

/** Few outcomes: as many as the engine lets wait for each other. */
const FEW = native.ENDS_A_STEP;

/** Outcomes that are kept to be used again: those under way, and those that gather. */
const MOST_SPARES = 3;

/** Milliseconds after which outcomes are sent though the tick has not ended: handlers may keep it from ending. */
const LONGEST_TICK_MS = 5;

// Taken at load, so that a user's fake timers do not hold up jobs.
const nextTick = process.nextTick.bind(process);
const clock = performance.now.bind(performance);

/** The jobs whose outcomes these are. */
interface JobsAtHand {
  readonly running: number;
  /** Fetched, and not started. */
  readonly left: number;
  /** Those that came last have long texts. */
  readonly areLong: boolean;
  readonly stopped: boolean;
}

/** Outcomes on their way. */
interface Sent {
  readonly outcomes: Outcomes;
  readonly flush: number;
  readonly since: number;
  /** Calls that let parents in other queues start, by these: their workers start them when the events of the children have been emitted. */
  readonly parentCalls: ReadonlyMap<string, number> | undefined;
}

export class OutcomeSender {
  /** The outcomes that gather. */
  gathering = new Outcomes();
  /** Outcomes to be sent before those, oldest first: as many as fit into one call. */
  private readonly sealed: Outcomes[] = [];
  /** Outcomes the engine has not answered yet, oldest first; each call's number and time, too. */
  private readonly sent: Sent[] = [];
  private readonly spares: Outcomes[] = [];
  private lastFlush = 0;
  /** Number of outcomes in the calls that are unanswered. */
  private unanswered = 0;
  private flushDue = false;
  private flushDueSince = 0;

  constructor(
    private readonly jobs: JobsAtHand,
    private readonly native: Pick<NativeWorker, 'finish'>,
    /** Qualified name of the queue. */
    private readonly queue: string,
  ) {}

  /** Whether every outcome is stored. */
  get isSettled(): boolean {
    return this.sent.length === 0 && this.sealed.length === 0 && this.gathering.size === 0;
  }

  /** Whether jobs have ended in this tick. */
  get hasTick(): boolean {
    return this.flushDue;
  }

  /** Milliseconds for which the oldest call has had no answer. */
  get silentFor(): number {
    return this.sent.length === 0 ? 0 : clock() - this.sent[0].since;
  }

  /** The call that has stored all the outcomes so far, once it is answered. */
  get lastCall(): number {
    return this.lastFlush + this.sealed.length + (this.gathering.size > 0 ? 1 : 0);
  }

  /** Whether this call is answered. */
  hasStored(call: number): boolean {
    return this.lastFlush >= call && !this.sent.some(({ flush }) => flush <= call);
  }

  /** Seals the outcomes if texts of that many characters must not travel with them. */
  makeRoom(characters: number): void {
    if (!this.gathering.isFullFor(characters)) return;
    this.sealed.push(this.gathering);
    this.gathering = this.spares.pop() ?? new Outcomes();
  }

  /** Whether outcomes may be sent: there is no unanswered call, or few outcomes in them, or one, and all jobs at hand have ended. */
  private get mayFlush(): boolean {
    const calls = this.sent.length;
    if (calls === 0) return true;
    const { running, left } = this.jobs;
    const { size } = this.gathering;
    if (this.unanswered + size <= FEW) return this.sealed.length === 0;
    return calls === 1 && running === 0 && left === 0 && size >= EARLY_FLUSH;
  }

  /** @param now ms */
  flushSoon(now: number): void {
    if (!this.flushDue) {
      this.flushDue = true;
      this.flushDueSince = now;
      nextTick(endTick, this);
    } else if (
      this.sent.length === 0 &&
      (this.gathering.size >= Math.max(this.fewestEarly, this.jobs.left) ||
        Math.abs(now - this.flushDueSince) > LONGEST_TICK_MS)
    ) {
      this.flush();
    }
  }

  /**
   * Of long jobs fewer are worth a call, while there are others to run: what comes in their place takes the engine and the server as long as those
   * take here.
   */
  private get fewestEarly(): number {
    return this.jobs.areLong && this.jobs.left >= FEW ? FEW : EARLY_FLUSH;
  }

  /** Sends the outcomes that have gathered, unless they have to wait for answers. */
  flush(): void {
    this.flushDue = false;
    if (this.jobs.stopped || !this.mayFlush) return;
    const outcomes = this.sealed.shift() ?? this.gathering;
    if (outcomes.size === 0) return;
    // what handlers have added without waiting for it comes before their ends
    sendAdds();
    const flush = ++this.lastFlush;
    const parentCalls = outcomes.parentQueues && this.beginParentCalls(outcomes.parentQueues);
    this.sent.push({ outcomes, flush, since: clock(), parentCalls });
    this.unanswered += outcomes.size;
    if (outcomes === this.gathering) this.gathering = this.spares.pop() ?? new Outcomes();
    outcomes.send(this.native, flush, Date.now());
  }

  /**
   * The engine has stored the calls up to this one: gives their outcomes, and sends the next ones. A few outcomes wait for
   * those of the jobs that have come along: small and large calls in turn would leave the engine, then this side, without work.
   * @param coming number of jobs that come with the answer
   */
  acknowledge(flushed: number, coming: number): Sent[] {
    const later = this.sent.findIndex(({ flush }) => flush > flushed);
    const stored = this.sent.splice(0, later < 0 ? this.sent.length : later);
    for (const { outcomes } of stored) this.unanswered -= outcomes.size;
    if (this.sealed.length > 0 || this.gathering.size >= coming / 4) this.flush();
    else if (this.gathering.size > 0) queueMicrotask(() => this.flushSoon(clock()));
    return stored;
  }

  /** Jobs whose ends are not stored. */
  unstored(): Job[] {
    return [...this.sent.map(({ outcomes }) => outcomes), ...this.sealed, this.gathering].flatMap(({ jobs }) => jobs);
  }

  private beginParentCalls(queues: Set<string>): Map<string, number> {
    // what comes in this queue comes behind the answer
    queues.delete(this.queue);
    return new Map([...queues].map((queue) => [queue, beginCall(queue)]));
  }

  /** Nothing more is told of outcomes that are on their way. */
  stop(): void {
    for (const sent of this.sent) endParentCalls(sent);
  }

  /** Outcomes are reported: keeps them to be used again. */
  reuse(sent: Sent): void {
    endParentCalls(sent);
    const { outcomes } = sent;
    outcomes.clear();
    if (this.spares.length < MOST_SPARES) this.spares.push(outcomes);
  }
}

function endParentCalls({ parentCalls }: Sent): void {
  parentCalls?.forEach((call, queue) => endCall(queue, call));
}

function endTick(sender: OutcomeSender): void {
  // handlers of this tick have ended, as far as they end at once
  sender.flush();
}
