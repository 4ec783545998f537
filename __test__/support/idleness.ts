/**
 * Which jobs waited though somebody was idle: pure functions over what worker processes noted. A worker is idle while it has a free slot, its
 * event loop turns, and it starts nothing that was there before. A job that waits meanwhile for longer than anything takes is held by somebody
 * who does not run it. Times are milliseconds of one clock.
 */

/** A job that waits for longer beside an idle worker is held by somebody, where the known work of pace.ts takes a millisecond. */
export const START_MS = 50;

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** One run of a job's handler. */
export interface RunRecord extends Span {
  readonly key: string;
}

export interface WorkerRecord {
  readonly name: string;
  readonly concurrency: number;
  /** Jobs that may run at once, where one call takes several; else as many as calls. */
  readonly slots?: number;
  /** From when on it took jobs, and up to when it was to. */
  readonly alive: Span;
  readonly runs: readonly RunRecord[];
  /** In which its event loop did not turn. */
  readonly late: readonly Span[];
}

/** A job that is added to the waiting list, whose turn it is when all that came before are taken. */
export interface JobRecord {
  readonly key: string;
  /** When it was sent; it may have been in the list from then on. */
  readonly sent: number;
  /** When its sender heard that it is there. */
  readonly added: number;
  /** When it was started first; `Infinity`: it never was. */
  readonly started: number;
}

export interface Limits {
  /** What a worker may take to start a job that is there, ms. */
  readonly mostMs: number;
  /** In which the server, or the way to it, was late: nobody is to blame for what waited then. */
  readonly blind: readonly Span[];
}

/** A job that waited, and the worker that was idle for longest meanwhile. */
export interface Neglect extends Span {
  readonly key: string;
  readonly idle: string;
  /** Who ran it in the end, if somebody did. */
  readonly by?: string;
  /** It was given to a free slot of a worker whose event loop blocked before it could start: of those, there are no more than slots. */
  readonly inSlot: boolean;
}

/** What was given to a slot starts so soon after its event loop turns again, ms. */
const TURN_MS = 10;

export function neglected(
  jobs: readonly JobRecord[],
  workers: readonly WorkerRecord[],
  { mostMs, blind }: Limits,
): Neglect[] {
  const known = new Map(jobs.map((job) => [job.key, job]));
  const witnesses = workers.map((worker) => ({ ...worker, idle: without(idleSpans(worker), blind) }));
  const waited = jobs.filter(({ added, started }) => started - added > mostMs);
  const slots = new Slots(workers);
  return waited
    .sort((one, other) => one.started - other.started)
    .flatMap((job) => {
      const seen = witnesses.map(({ name, idle, runs }) => {
        const turns = turnsBefore(job, runs, known);
        return { ...longest(idle.flatMap((span) => between(turns, common(span, job)))), idle: name };
      });
      const worst = seen.sort((one, other) => length(other) - length(one))[0];
      return worst && length(worst) > mostMs ? [{ ...worst, key: job.key, ...slots.take(job) }] : [];
    });
}

/** Slots that were free when an event loop blocked. */
class Slots {
  readonly #workers: readonly WorkerRecord[];
  readonly #free = new Map<Span, number>();

  constructor(workers: readonly WorkerRecord[]) {
    this.#workers = workers;
  }

  /** Who ran a job, and whether there was a slot left in which it may have waited. */
  take({ key, started }: JobRecord): Pick<Neglect, 'by' | 'inSlot'> {
    const worker = this.#workers.find(({ runs }) => runs.some((run) => run.key === key && run.from === started));
    if (!worker) return { inSlot: false };
    const block = worker.late.find(({ from, to }) => started >= from && started <= to + TURN_MS);
    if (!block) return { by: worker.name, inSlot: false };
    const free = this.#free.get(block) ?? freeAt(worker, block);
    this.#free.set(block, free - 1);
    return { by: worker.name, inSlot: free > 0 };
  }
}

/** Slots beside those of what ran as the block began, and of what blocked. */
function freeAt({ concurrency, slots = concurrency, runs }: WorkerRecord, { from, to }: Span): number {
  const blocker = runs.find((run) => run.from >= from && run.from <= to);
  const running = runs.filter((run) => run !== blocker && run.from < from && run.to > (blocker?.from ?? from));
  return slots - running.length - (blocker ? 1 : 0);
}

/** When a worker had a free slot, and its event loop turned. */
export function idleSpans({ alive, concurrency, runs, late }: WorkerRecord): Span[] {
  const changes = runs.flatMap(({ from, to }) => [
    { at: from, by: 1 },
    { at: to, by: -1 },
  ]);
  // who ends one and starts another at the same time has no free slot between
  changes.sort((one, other) => one.at - other.at || other.by - one.by);
  const full: Span[] = [];
  let running = 0;
  let since = NaN;
  for (const { at, by } of changes) {
    const before = running;
    running += by;
    if (before < concurrency && running >= concurrency) since = at;
    if (before >= concurrency && running < concurrency) full.push({ from: since, to: at });
  }
  return without([alive], [...full, ...late]);
}

/** What is left of these spans outside of those. */
export function without(spans: readonly Span[], holes: readonly Span[]): Span[] {
  const inOrder = [...holes].sort((one, other) => one.from - other.from);
  return spans.flatMap((span) => {
    const left: Span[] = [];
    let { from } = span;
    for (const hole of inOrder) {
      if (hole.to <= from || hole.from >= span.to) continue;
      if (hole.from > from) left.push({ from, to: hole.from });
      from = Math.max(from, hole.to);
    }
    if (from < span.to) left.push({ from, to: span.to });
    return left;
  });
}

/** Sum of their lengths. */
export function total(spans: readonly Span[]): number {
  return spans.reduce((sum, span) => sum + length(span), 0);
}

function length({ from, to }: Span): number {
  return to - from;
}

function common(span: Span, { added, started }: JobRecord): Span {
  return { from: Math.max(span.from, added), to: Math.min(span.to, started) };
}

/** When a worker started what may have been there before this job. Of what is not known, or runs again, nobody knows since when it is there. */
function turnsBefore(job: JobRecord, runs: readonly RunRecord[], known: ReadonlyMap<string, JobRecord>): number[] {
  const cameLater = ({ key, from }: RunRecord) => {
    const other = known.get(key);
    return other !== undefined && other.started === from && other.sent > job.added;
  };
  return runs
    .filter((run) => run.from < job.started && run.from > job.added && !cameLater(run))
    .map(({ from }) => from);
}

/** The parts of a span between these moments. */
function between(moments: readonly number[], span: Span): Span[] {
  const inside = moments.filter((at) => at > span.from && at < span.to).sort((one, other) => one - other);
  return [...inside, span.to].map((to, i) => ({ from: inside[i - 1] ?? span.from, to }));
}

function longest(spans: readonly Span[]): Span {
  return spans.reduce((one, other) => (length(other) > length(one) ? other : one), { from: 0, to: 0 });
}
