/**
 * Adding jobs. `add` calls of one tick travel to the engine as one batch, sent when the tick ends; `addBulk` makes
 * batches of its own. Batches leave in the order of the calls, so ids are handed out in that order.
 *
 * This path is hot: per job it takes one JSON.stringify, two string appends and three numbers.
 */
import { ownError, rejectedWith } from '../native/native-error.js';
import { LongText } from '../native/long-text.js';
import { doubled } from '../native/typed-array.js';
import { ANY_QUEUE, beginCall, endCall } from './calls-under-way.js';
import { NO_OPTIONS, OptionsChecker } from './job-options.js';
import type { NativeAdded, NativeError, NativeQueue } from '../native/types.js';

/** What the producer needs of a job. */
export interface AddedJob {
  readonly name: string;
  id?: string | undefined;
}

/** Jobs in one call to the engine, at most. */
const MAX_JOBS = 4096;
/** Jobs that may be without an answer before further adds are refused, unless the queue's options say otherwise. */
export const MOST_PENDING = 1_000_000;
/** UTF-16 units of text in one call at most, but for a single job that is larger. */
const MAX_TEXT = 4 * 1024 * 1024;

// Taken at load, so that a user's fake timers do not hold up jobs.
const nextTick = process.nextTick.bind(process);

/** Those of this thread that have gathered adds of this tick. */
const gathering = new Set<Producer>();

/** Sends the adds of this tick, of all queues. */
export function sendAdds(): void {
  for (const producer of gathering) producer.flush();
}

/** Why a job was not added. Each caller gets an error of its own. */
type Refusal = Error | NativeError;

/** Settles a caller's promise. */
type Resolve<T> = (value: T | PromiseLike<T>) => void;

/** Jobs on their way to the engine, with what becomes of their callers. */
interface Batch {
  readonly jobs: readonly AddedJob[];
  /** `refused`: nothing was added. `failed`: by index, the jobs that were not. */
  settle(refused: Refusal | undefined, failed: Map<number, Refusal> | undefined): void;
}

export class Producer {
  /** Checks the options of this connection's jobs. */
  readonly options = new OptionsChecker();
  /** Jobs that may be without an answer before further adds are refused. */
  mostPending = MOST_PENDING;
  /** Jobs sent and not answered. */
  private pending = 0;
  /** The number of the last job that was answered. */
  private newest = 0;
  private readonly sent = new Map<number, Batch>();
  /** The batch that `add` calls of this tick join, and what it holds so far. */
  private tick: TickBatch | undefined;
  private readonly tickEncoder = new Encoder();

  /**
   * @param native gives the connection; asked at each flush, because a worker opens it only when it is needed
   * @param queue qualified name of the queue
   */
  constructor(
    private readonly native: () => NativeQueue,
    private readonly queue = ANY_QUEUE,
  ) {}

  /**
   * Adds one job with those of the same tick.
   * @param created its creation time; undefined when its option text says so
   * @param data the JSON text of its data
   * @param opts the text of its options
   * @returns the job, with its id
   */
  add<J extends AddedJob>(job: J, created: number | undefined, data: string, opts: string): Promise<J> {
    if (this.pending >= this.mostPending) return Promise.reject(this.tooMany());
    return new Promise<J>((resolve) => {
      // Jobs of a batch share one creation time: a later one starts the next batch.
      if (this.tick && created !== undefined && created !== this.tick.now) this.flush();
      this.makeRoom();
      if (this.tick) {
        this.tickEncoder.append(job.name, data, opts);
      } else {
        this.tick = new TickBatch(created ?? Date.now(), data, opts);
        gathering.add(this);
        nextTick(flushProducer, this);
      }
      this.tick.push(job, resolve as Resolve<AddedJob>);
    });
  }

  /** As {@link add}, but not together with others: what becomes of this job must not become of them. */
  addAlone<J extends AddedJob>(job: J, created: number | undefined, data: string, opts: string): Promise<J> {
    this.flush();
    const added = this.add(job, created, data, opts);
    this.flush();
    return added;
  }

  /** Before another job joins the tick's batch, which is sent when it is full. */
  private makeRoom(): void {
    const { tick, tickEncoder } = this;
    if (!tick) return;
    if (tickEncoder.isEmpty) tickEncoder.append(tick.jobs[0].name, tick.data, tick.opts);
    if (tickEncoder.isFull) this.flush();
  }

  /** Sends what `add` calls have gathered, without waiting for the end of the tick. */
  flush(): void {
    const batch = this.tick;
    if (!batch) return;
    this.tick = undefined;
    gathering.delete(this);
    if (this.tickEncoder.isEmpty) this.sendOne(batch);
    else this.send(batch, batch.now, this.tickEncoder.take());
  }

  /**
   * Adds many jobs, in as few calls to the engine as their size allows. Nothing is sent when `encode` throws.
   * @param now creation time of jobs whose option text names none
   * @param encode appends job `i` to the encoder
   * @returns the jobs, with their ids
   */
  addBulk<J extends AddedJob>(jobs: J[], now: number, encode: (encoder: Encoder, i: number) => void): Promise<J[]> {
    if (this.pending >= this.mostPending) return Promise.reject(this.tooMany());
    const encoder = new Encoder(Math.min(jobs.length, MAX_JOBS));
    const calls: { jobs: J[]; encoded: EncodedJobs }[] = [];
    for (let from = 0, i = 0; i < jobs.length;) {
      encode(encoder, i++);
      if (encoder.isFull || i === jobs.length) {
        calls.push({ jobs: i - from === jobs.length ? jobs : jobs.slice(from, i), encoded: encoder.take() });
        from = i;
      }
    }
    this.flush();
    if (calls.length === 0) return Promise.resolve(jobs);
    return new Promise<J[]>((resolve) => {
      const whole = new BulkCall(jobs, calls.length, resolve as Resolve<AddedJob[]>);
      for (const call of calls) this.send(new BulkBatch(call.jobs, whole), now, call.encoded);
    });
  }

  private send(batch: Batch, now: number, encoded: EncodedJobs): void {
    this.call(batch, (native, request) => native.add(request, now, encoded.text, encoded.layout, encoded.options));
  }

  /** Sends a batch of one job: text by text costs the engine less than the layout of many. */
  private sendOne(batch: TickBatch): void {
    const { now, jobs, data, opts } = batch;
    this.call(batch, (native, request) =>
      native.addOne(request, now, jobs[0].name, data, opts === NO_OPTIONS ? undefined : opts),
    );
  }

  private call(batch: Batch, give: (native: NativeQueue, request: number) => void): void {
    const request = beginCall(this.queue, this.newest);
    this.sent.set(request, batch);
    this.pending += batch.jobs.length;
    try {
      give(this.native(), request);
    } catch (error) {
      this.answered(request, batch);
      batch.settle(ownError(error), undefined);
    }
  }

  private answered(request: number, batch: Batch): void {
    this.sent.delete(request);
    this.pending -= batch.jobs.length;
    endCall(this.queue, request, this.newest);
  }

  private tooMany(): Error {
    return new Error(`${this.pending} added jobs are without an answer, which is the limit (maxPendingAdds)`);
  }

  /** Takes the engine's answer to a call whose jobs were all given numbers, from `first` on. */
  settleAdded(request: number, first: number): void {
    const batch = this.sent.get(request);
    if (!batch) return;
    this.newest = first + batch.jobs.length - 1;
    this.answered(request, batch);
    numberJobs(batch.jobs, first);
    batch.settle(undefined, undefined);
  }

  /** Takes the engine's answers: sets ids and settles the callers' promises. */
  settle(answers: NativeAdded[]): void {
    for (const answer of answers) {
      const batch = this.sent.get(answer.request);
      if (!batch) continue;
      if (!answer.error) this.newest = answer.first + batch.jobs.length - 1;
      this.answered(answer.request, batch);
      if (answer.error) batch.settle(answer.error, undefined);
      else batch.settle(undefined, setIds(batch.jobs, answer));
    }
  }

  /** The queue's data are gone: its jobs are numbered from 1 again. */
  beginAnew(): void {
    this.newest = 0;
  }

  /** Number of jobs whose adding is under way. */
  get unanswered(): number {
    return this.pending;
  }

  /** Rejects every caller still waiting: the connection was closed under them. */
  abandon(error: Error): void {
    const batches = [...this.sent];
    for (const [request, batch] of batches) this.answered(request, batch);
    for (const [, batch] of batches) batch.settle(error, undefined);
  }
}

function flushProducer(producer: Producer): void {
  producer.flush();
}

/** Gives each job its id: they count up from `first`, but for the exceptions. Returns the jobs that were refused. */
function setIds(jobs: readonly AddedJob[], { first, exceptions }: NativeAdded): Map<number, Refusal> | undefined {
  numberJobs(jobs, first);
  if (!exceptions) return undefined;
  let failed: Map<number, Refusal> | undefined;
  for (const { index, id, error } of exceptions) {
    if (error) (failed ??= new Map()).set(index, error);
    else jobs[index].id = id;
  }
  return failed;
}

function numberJobs(jobs: readonly AddedJob[], first: number): void {
  for (let i = 0; i < jobs.length; i++) jobs[i].id = String(first + i);
}

/** Jobs of single `add` calls: each settles its own promise. */
class TickBatch implements Batch {
  readonly jobs: AddedJob[] = [];
  private readonly resolves: Resolve<AddedJob>[] = [];

  /** With the texts of the first job, which the encoder gets once there is a second: most ticks have one. */
  constructor(
    readonly now: number,
    readonly data: string,
    readonly opts: string,
  ) {}

  push(job: AddedJob, resolve: Resolve<AddedJob>): void {
    this.jobs.push(job);
    this.resolves.push(resolve);
  }

  settle(refused: Refusal | undefined, failed: Map<number, Refusal> | undefined): void {
    const { jobs, resolves } = this;
    for (let i = 0; i < jobs.length; i++) {
      const refusal = refused ?? failed?.get(i);
      if (refusal) resolves[i](rejectedWith(refusal));
      else resolves[i](jobs[i]);
    }
  }
}

/** One `addBulk`, which settles when all its batches have. */
class BulkCall {
  private isRefused = false;

  constructor(
    private readonly jobs: AddedJob[],
    private open: number,
    private readonly resolve: Resolve<AddedJob[]>,
  ) {}

  done(refusal: Refusal | undefined): void {
    if (refusal && !this.isRefused) {
      this.isRefused = true;
      this.resolve(rejectedWith(refusal));
    }
    if (--this.open === 0) this.resolve(this.jobs);
  }
}

class BulkBatch implements Batch {
  constructor(
    readonly jobs: AddedJob[],
    private readonly call: BulkCall,
  ) {}

  settle(refused: Refusal | undefined, failed: Map<number, Refusal> | undefined): void {
    this.call.done(refused ?? failed?.values().next().value);
  }
}

/** Arguments of `NativeQueue.add`. */
interface EncodedJobs {
  text: string | string[];
  layout: Uint32Array;
  options: string[];
}

/** Writes jobs in the layout of `NativeQueue.add`: one text, three numbers a job, each distinct option text once. */
export class Encoder {
  private readonly text = new LongText();
  private count = 0;
  private numbers: Uint32Array;
  private options: string[] = [];
  /** Filled from the second distinct text on. */
  private indexes: Map<string, number> | undefined;
  private lastOptions: string | undefined;
  private lastIndex = 0;

  /** @param room number of jobs expected */
  constructor(room = 64) {
    this.numbers = new Uint32Array(3 * room);
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** Whether the next job belongs in another call. */
  get isFull(): boolean {
    return this.count >= MAX_JOBS || this.text.length >= MAX_TEXT;
  }

  /** Adds a job: its name, the JSON text of its data, the text of its options. */
  append(name: string, data: string, opts: string): void {
    this.text.append(name, data); // first: it throws when it is too long
    const at = 3 * this.count++;
    if (at === this.numbers.length) this.numbers = doubled(this.numbers, 6);
    const { numbers } = this;
    numbers[at] = name.length;
    numbers[at + 1] = data.length;
    numbers[at + 2] = opts === this.lastOptions ? this.lastIndex : this.indexOf(opts);
  }

  /** What was written, which is then forgotten. */
  take(): EncodedJobs {
    // The layout is a copy: the engine may still read it while the next batch is written.
    const encoded = { text: this.text.take(), layout: this.numbers.slice(0, 3 * this.count), options: this.options };
    this.count = 0;
    this.options = [];
    this.indexes = undefined;
    this.lastOptions = undefined;
    return encoded;
  }

  private indexOf(opts: string): number {
    if (this.lastOptions !== undefined) this.indexes ??= new Map([[this.lastOptions, this.lastIndex]]);
    this.lastOptions = opts;
    const known = this.indexes?.get(opts);
    if (known !== undefined) return (this.lastIndex = known);
    this.lastIndex = this.options.push(opts) - 1;
    this.indexes?.set(opts, this.lastIndex);
    return this.lastIndex;
  }
}
