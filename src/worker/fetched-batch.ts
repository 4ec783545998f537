import { childId } from '../job/child-id.js';
import type { TakenIteration } from '../scheduler/iterations.js';
import { optionsFromText } from '../add/job-options.js';
import { Job } from '../job/job.js';
import type { NativeBatch } from '../native/types.js';
import type { JobQueue } from '../job/minimal-queue.js';

/** Numbers a job takes in `NativeBatch.layout`: id, length of name, length of data, index of options, timestamp, extra. */
const STRIDE = 6;
/** `layout`: the job has the name of the one before it. */
const SAME_NAME = -1;
/** `layout`: the job has no extra fields. */
const NO_EXTRA = -1;
/** `layout`: the job is a child, of the first siblings; of the second ones with the number below, and so on. */
const FIRST_SIBLINGS = -2;

/** Jobs that became active together, as the engine sends them. */
export type Fetched = Omit<NativeBatch, 'layout'> & { layout: ArrayLike<number> };

/** Characters of names and data a job from which on jobs are long. */
const LONG_TEXT = 4096;

const NO_EXTRAS: NativeBatch['extras'] = [];
const NO_SIBLINGS: NativeBatch['siblings'] = [];

/** A plain job that became active alone, as a batch. */
export function batchOfOne(
  base: number,
  offer: number,
  processedOn: number,
  claim: number,
  number: number,
  nameLength: number,
  timestamp: number,
  text: string,
  opts: string,
): Fetched {
  const layout = [number, nameLength, text.length - nameLength, 0, timestamp, NO_EXTRA];
  return {
    base,
    offer,
    count: 1,
    processedOn,
    claim,
    text,
    layout,
    opts: [opts],
    extras: NO_EXTRAS,
    siblings: NO_SIBLINGS,
  };
}

/** Names and data of a batch's jobs, one job after the other. */
class JobTexts {
  name = '';
  data = '';
  /** The text of the next job, and where it begins there. */
  private text = '';
  private offset = 0;
  private readonly behind: Iterator<string> | undefined;

  constructor(text: string | string[]) {
    if (typeof text === 'string') this.text = text;
    else this.behind = text.values();
  }

  /** Goes on to the next job, whose texts are so long. */
  read(nameLength: number, dataLength: number): void {
    if (this.behind && this.offset === this.text.length) this.turnOver(this.behind);
    const { text } = this;
    let { offset } = this;
    if (nameLength !== SAME_NAME) {
      this.name = text.substring(offset, offset + nameLength);
      offset += nameLength;
    }
    this.data = text.substring(offset, (this.offset = offset + dataLength));
  }

  private turnOver(texts: Iterator<string>): void {
    const next = texts.next();
    if (next.done) return;
    this.text = next.value;
    this.offset = 0;
  }
}

/** Fetched jobs that have not started. Each becomes an object only when it starts. */
export class FetchedBatch {
  private taken = 0;
  private readonly texts: JobTexts;

  /** Settles when the next iterations of job schedulers are made. A job in `refused` must not run: it got none, or has left the worker (null). */
  following: Promise<void> | undefined = undefined;
  refused: ReadonlyMap<string, Error | null> | undefined = undefined;

  /** What the tokens of its jobs begin with: the number of the slot follows. */
  private readonly tokens: string;

  /** @param remake how jobs are made of those that were read, where code of the user's makes them */
  constructor(
    private readonly batch: Fetched,
    tokenPrefix: string,
    private readonly remake?: (read: Job) => Job,
  ) {
    this.tokens = `${tokenPrefix}:${batch.claim}.`;
    this.texts = new JobTexts(batch.text);
  }

  /** Whether its jobs have long texts. */
  get areLong(): boolean {
    const { text, count } = this.batch;
    const length = typeof text === 'string' ? text.length : text.reduce((sum, { length }) => sum + length, 0);
    return length >= LONG_TEXT * count;
  }

  /** By which its jobs are drawn. */
  get offer(): number {
    return this.batch.offer;
  }

  /** The claim of these jobs. */
  get claim(): number {
    return this.batch.claim;
  }

  /** The token of a job that starts in the slot of this number. */
  tokenOf(slot: string): string {
    return this.tokens + slot;
  }

  /** The iterations of job schedulers in it. Call only before the first job is taken. */
  iterations(): TakenIteration[] {
    const { layout, extras, opts, count } = this.batch;
    const found: TakenIteration[] = [];
    if (!extras.some((extra) => extra.repeatJobKey !== undefined)) return found;
    const texts = new JobTexts(this.batch.text);
    for (let at = 0; at < STRIDE * count; at += STRIDE) {
      texts.read(layout[at + 1], layout[at + 2]);
      const { id = '', repeatJobKey: scheduler } = layout[at + 5] < 0 ? {} : extras[layout[at + 5]];
      if (scheduler === undefined) continue;
      const options = optionsFromText(opts[layout[at + 3]]);
      found.push({ id, scheduler, name: texts.name, opts: options, token: this.tokenOf('0') });
    }
    return found;
  }

  /** The highest number of its jobs. Infinity where some have fields beside the plain ones: these may have any id. */
  get youngest(): number {
    const { layout, extras, siblings, count } = this.batch;
    if (extras.length > 0 || siblings.length > 0) return Infinity;
    let highest = 0;
    for (let at = 0; at < STRIDE * count; at += STRIDE) if (layout[at] > highest) highest = layout[at];
    return highest;
  }

  /** Number of jobs left. */
  get left(): number {
    return this.batch.count - this.taken;
  }

  /** Handle of the next job, by which the engine knows it. */
  get handle(): number {
    return this.batch.base + this.taken;
  }

  /**
   * The next job. Call only while some are left.
   * @throws what code of the user's throws; the job counts as taken
   */
  take(JobClass: typeof Job, queue: JobQueue, token: string, processedBy: string | undefined): Job {
    const { remake } = this;
    return remake ? remake(this.read(Job, queue, token, processedBy)) : this.read(JobClass, queue, token, processedBy);
  }

  /** From when on the job that was taken last could start, epoch ms, where latency is measured; undefined: nobody knows. */
  readyOf({ opts }: Job): number | undefined {
    const { layout, extras } = this.batch;
    const at = STRIDE * (this.taken - 1);
    return layout[at + 5] < 0 ? layout[at + 4] + (opts.delay ?? 0) : extras[layout[at + 5]].readyOn;
  }

  private read(JobClass: typeof Job, queue: JobQueue, token: string, processedBy: string | undefined): Job {
    const { batch, texts } = this;
    const { layout } = batch;
    const at = STRIDE * this.taken++;
    texts.read(layout[at + 1], layout[at + 2]);
    const extraIndex = layout[at + 5];
    const siblings = extraIndex <= FIRST_SIBLINGS ? batch.siblings[FIRST_SIBLINGS - extraIndex] : undefined;
    return JobClass.fromDelivery(
      queue,
      siblings ? childId(siblings.ids, layout[at]) : String(layout[at]),
      texts.name,
      texts.data,
      batch.opts[layout[at + 3]],
      layout[at + 4],
      batch.processedOn,
      token,
      processedBy,
      extraIndex < 0 ? undefined : batch.extras[extraIndex],
      siblings,
    );
  }
}
