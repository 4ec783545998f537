/**
 * Runs several jobs in one call of the processor (`WorkerOptions.batch`). The dispatcher runs each of them as any other job, in a slot, with a token, a lease, a signal
 * and an end of its own; what runs them joins them here, and hands them on together. A batch is what is there: it begins when it is full, or when this turn
 * of the event loop is over; with a least size, when it has so many jobs, or its time is over. Until then its jobs are held, or go back (`gatherer`).
 */
import { WaitingError } from '../errors/waiting-error.js';
import { enterBatch, leaveBatch, type BatchMember } from '../job/batch-member.js';
import type { Job } from '../job/job.js';
import { isObservable, lastValueOf } from '../job/observable.js';
import type { BatchOptions } from '../options/worker.js';
import { Gatherer } from './gatherer.js';

// Taken at load, so that a user's fake timers do not hold up jobs.
const { setImmediate, setTimeout, clearTimeout } = globalThis;

/** Longest time that a timer takes, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

/** The processor: it is given the first job of a batch. */
type Process = (job: Job, token: string, signal: AbortSignal) => unknown;

interface Joined {
  readonly job: Job;
  readonly token: string;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A call of the processor. */
interface Call {
  readonly batch: readonly Joined[];
  /** Jobs whose end is not given up. */
  left: number;
}

/** The worker, as seen from here. */
interface BatchesOwner {
  readonly process: Process;
  /** The processor is called for this job, whose time begins. */
  readonly begin: (job: Job) => void;
  /** Is told how many jobs may run at once from now on. */
  readonly setRoom: (jobs: number) => void;
  /** As that of `NativeWorker`. Undefined where it fails, which is told. */
  readonly gather: (ms: number) => Promise<number | undefined>;
  /** As that of `NativeWorker`. */
  readonly leaseNumber: () => number | null;
}

export class Batches {
  private readonly size: number;
  private readonly minSize: number;
  private readonly ofOneGroup: boolean;
  private readonly timeout: number;
  /** Jobs that wait for their batch to begin. */
  private forming: Joined[] = [];
  /** Rings when they have waited long enough for more. */
  private clock: NodeJS.Timeout | undefined = undefined;
  private isOver = false;
  /** The lease under which the first of them came. */
  private lease: number | null = null;
  /** Jobs that may be active at once, as far as is known. */
  private most = Infinity;
  private readonly gatherer: Gatherer;
  private readonly back = new WeakSet<Job>();
  /** Calls of the processor that have not ended, and the jobs in them. */
  private readonly calls = new Set<Call>();
  private called = 0;
  private isDue = false;
  private stopped = false;
  private told: number;

  /** @param concurrency calls of the processor at once */
  constructor(
    private readonly owner: BatchesOwner,
    { size, minSize = 1, timeout = Infinity, groupAffinity = false }: BatchOptions,
    private concurrency: number,
  ) {
    this.size = size;
    this.minSize = minSize;
    this.ofOneGroup = groupAffinity;
    this.timeout = timeout;
    this.gatherer = new Gatherer(this, (ms) => owner.gather(ms), timeout);
    this.told = this.room;
  }

  /** Whether jobs wait for others. */
  private get holds(): boolean {
    return this.minSize > 1 && this.timeout > 0;
  }

  /** Jobs that may run at once: those that do, and as many as the calls that are free can take. What comes beyond waits in the queue, where others find it. */
  get room(): number {
    return this.called + (this.isFull ? 0 : (this.concurrency - this.calls.size) * this.size);
  }

  /** Whether no call is free, or none is to begin here for now. */
  get isFull(): boolean {
    return this.calls.size >= this.concurrency || this.gatherer.rests;
  }

  setConcurrency(concurrency: number): void {
    this.concurrency = concurrency;
    this.tellRoom();
    this.beginAll();
  }

  /** @internal For the gatherer. */
  tellRoom(): void {
    const { room } = this;
    if (room !== this.told) this.owner.setRoom((this.told = room));
  }

  /** @internal For the gatherer. */
  limit(jobs: number): void {
    this.most = jobs;
    this.beginAll();
  }

  /** Runs a job in the batch that forms. Settles when the job has ended, or goes back. */
  run(job: Job, token: string, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.forming.push({ job, token, signal, resolve, reject }) === 1) this.startClock();
      if (this.forming.length >= this.size) this.beginAll();
      else this.beginSoon();
    });
  }

  /** Runs a job by itself at once, one that a user has taken: nobody else keeps its lease. */
  runAlone(job: Job, token: string, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      void this.runTogether([{ job, token, signal, resolve, reject }]).then((settleAll) => settleAll());
    });
  }

  private startClock(): void {
    clearTimeout(this.clock);
    this.isOver = false;
    this.most = Infinity;
    if (!this.holds) return;
    this.lease = this.owner.leaseNumber();
    if (this.timeout > LONGEST_MS) return;
    this.clock = setTimeout(() => {
      this.isOver = true;
      this.beginAll();
    }, this.timeout);
  }

  private beginSoon(): void {
    if (this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      this.beginAll();
    });
  }

  private get least(): number {
    return this.isOver || !this.holds ? 1 : Math.min(this.minSize, this.most);
  }

  /** Begins no call any more: the jobs that wait for one are not this worker's. */
  stop(): void {
    this.stopped = true;
  }

  private beginAll(): void {
    if (this.stopped) return;
    while (this.forming.length >= this.least && !this.isFull) {
      if (this.holds && !this.isHeld()) return this.giveBack();
      const batch = this.forming.splice(0, this.nextSize());
      this.startClock();
      void this.call(batch);
    }
    if (this.forming.length === 0) this.endWait();
    else if (this.isFull) this.giveBack();
    else this.gatherer.begin();
  }

  /** A step takes jobs of one group, but two steps may have come together. */
  private nextSize(): number {
    const [first] = this.forming;
    const other = this.ofOneGroup ? this.forming.findIndex(({ job }) => job.gid !== first.job.gid) : -1;
    return other < 0 ? this.size : Math.min(other, this.size);
  }

  /**
   * Whether the jobs are this worker's still. Where this process has stood still others may have run them; where its lease was lost in the server, one may have
   * come back to it as another's.
   */
  private isHeld(): boolean {
    const lease = this.owner.leaseNumber();
    const ids = new Set(this.forming.map(({ job }) => job.id));
    return lease !== null && lease === this.lease && ids.size === this.forming.length;
  }

  private endWait(): void {
    clearTimeout(this.clock);
    this.gatherer.end();
  }

  /** What has not begun goes back in the queue, with no try counted. */
  giveBack(): void {
    this.endWait();
    for (const { job, reject } of this.forming.splice(0)) {
      this.back.add(job);
      reject(new WaitingError());
    }
  }

  /** The same where the worker takes nothing any more. */
  disband(): void {
    this.gatherer.stop();
    this.giveBack();
  }

  /** Whether a job goes back, whatever its run came to. True once. */
  goesBack(job: Job): boolean {
    return this.back.delete(job);
  }

  private async call(batch: readonly Joined[]): Promise<void> {
    const call = { batch, left: batch.length };
    this.calls.add(call);
    this.called += batch.length;
    this.tellRoom();
    const settleAll = await this.runTogether(batch);
    this.called -= call.left;
    this.calls.delete(call);
    // before the slots of these jobs ask for the next ones
    this.tellRoom();
    settleAll();
    this.beginAll();
  }

  /**
   * The end of a job that runs is given up. Its place is free for others once that is so of its whole call.
   * @returns the first job of the call when it is
   */
  giveUp(job: Job): Job | undefined {
    const call = [...this.calls].find(({ batch }) => batch.some((joined) => joined.job === job));
    // it runs by itself
    if (!call) return job;
    call.left--;
    this.called--;
    if (call.left === 0) this.calls.delete(call);
    this.tellRoom();
    this.beginSoon();
    return call.left === 0 ? call.batch[0].job : undefined;
  }

  /** Gives what tells each job how it has ended. */
  private async runTogether(batch: readonly Joined[]): Promise<() => void> {
    const jobs = batch.map(({ job }) => job);
    const members = batch.map(({ signal }, i): BatchMember => ({
      jobs: i === 0 ? jobs : undefined,
      signal,
      said: undefined,
    }));
    jobs.forEach((job, i) => {
      enterBatch(job, members[i]);
      this.owner.begin(job);
    });
    const end = await this.runAll(batch);
    jobs.forEach(leaveBatch);
    return () => batch.forEach((joined, i) => settle(joined, members[i].said ?? end(i)));
  }

  /** Gives how each job ended of which the processor has said nothing. */
  private async runAll(batch: readonly Joined[]): Promise<(i: number) => NonNullable<BatchMember['said']>> {
    const [{ job, token }] = batch;
    try {
      const signal = signalOf(batch);
      const returned = await this.owner.process(job, token, signal);
      const value = isObservable(returned) ? await lastValueOf(returned, signal) : returned;
      if (Array.isArray(value) && value.length === batch.length) return (i) => ({ result: value[i] as unknown });
      return () => ({ result: value });
    } catch (error) {
      return () => ({ error });
    }
  }
}

function settle({ resolve, reject }: Joined, said: NonNullable<BatchMember['said']>): void {
  if ('error' in said) reject(said.error);
  else resolve(said.result);
}

/** Aborted once all jobs are. */
function signalOf(batch: readonly Joined[]): AbortSignal {
  const all = new AbortController();
  let left = batch.length;
  for (const { signal } of batch) {
    const abort = (): void => {
      if (--left === 0) all.abort(signal?.reason);
    };
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  }
  return all.signal;
}
