/**
 * Runs several jobs in one call of the processor (`WorkerOptions.batch`). The dispatcher runs each of them as any other job, in a slot, with a token, a lease, a signal
 * and an end of its own; what runs them joins them here, and hands them on together. A batch is what is there: it begins when it is full, or when this turn
 * of the event loop is over.
 */
import { enterBatch, leaveBatch, type BatchMember } from '../job/batch-member.js';
import type { Job } from '../job/job.js';

// Taken at load, so that a user's fake timers do not hold up jobs.
const { setImmediate } = globalThis;

/** The processor: it is given the first job of a batch. */
type Process = (job: Job, token: string, signal: AbortSignal) => unknown;

interface Joined {
  readonly job: Job;
  readonly token: string;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class Batches {
  /** Jobs that wait for their batch to begin. */
  private forming: Joined[] = [];
  /** Calls of the processor that have not ended, and the jobs in them. */
  private calls = 0;
  private called = 0;
  private isDue = false;
  private stopped = false;
  private told: number;

  /**
   * @param size most jobs of a batch
   * @param concurrency calls of the processor at once
   * @param setRoom is told how many jobs may run at once from now on
   */
  constructor(
    private readonly process: Process,
    private readonly size: number,
    private concurrency: number,
    private readonly setRoom: (jobs: number) => void,
  ) {
    this.told = this.room;
  }

  /** Jobs that may run at once: those that do, and as many as the calls that are free can take. What comes beyond waits in the queue, where others find it. */
  get room(): number {
    return this.called + Math.max(this.concurrency - this.calls, 0) * this.size;
  }

  /** Whether no call is free. */
  get isFull(): boolean {
    return this.calls >= this.concurrency;
  }

  setConcurrency(concurrency: number): void {
    this.concurrency = concurrency;
    this.tellRoom();
    this.beginAll();
  }

  private tellRoom(): void {
    const { room } = this;
    if (room !== this.told) this.setRoom((this.told = room));
  }

  /** Runs a job in the batch that forms. Settles when the job has ended. */
  run(job: Job, token: string, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.forming.push({ job, token, signal, resolve, reject });
      if (this.forming.length >= this.size) this.beginAll();
      else this.beginSoon();
    });
  }

  private beginSoon(): void {
    if (this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      this.beginAll();
    });
  }

  /** Begins no call any more: the jobs that wait for one are not this worker's. */
  stop(): void {
    this.stopped = true;
  }

  private beginAll(): void {
    while (!this.stopped && this.forming.length > 0 && this.calls < this.concurrency)
      void this.call(this.forming.splice(0, this.size));
  }

  private async call(batch: readonly Joined[]): Promise<void> {
    const jobs = batch.map(({ job }) => job);
    const members = batch.map(({ signal }, i): BatchMember => ({
      jobs: i === 0 ? jobs : undefined,
      signal,
      said: undefined,
    }));
    this.calls++;
    this.called += jobs.length;
    jobs.forEach((job, i) => enterBatch(job, members[i]));
    this.tellRoom();
    const end = await this.runAll(batch);
    this.calls--;
    this.called -= jobs.length;
    jobs.forEach(leaveBatch);
    // before the slots of these jobs ask for the next ones
    this.tellRoom();
    batch.forEach((joined, i) => settle(joined, members[i].said ?? end(i)));
    this.beginAll();
  }

  /** Gives how each job ended of which the processor has said nothing. */
  private async runAll(batch: readonly Joined[]): Promise<(i: number) => NonNullable<BatchMember['said']>> {
    const [{ job, token }] = batch;
    try {
      const value = await this.process(job, token, signalOf(batch));
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
