/** Worker processes of one queue, with handlers of mixed length, and who of them ran what (life/programs/mixed-worker.mjs). */
import type { Redis } from 'ioredis';
import type { Job, Queue } from 'bullmq';
import { neglected, START_MS } from './idleness.js';
import type { JobRecord, Neglect, Span, WorkerRecord } from './idleness.js';
import { Lateness } from './lateness.js';
import { Program } from './program.js';
import { sharedClock } from './shared-clock.js';
import type { Stage } from './stage.js';
import { until } from './waiting.js';

/** A worker that has run so many trivial jobs has seen how short they are. */
const WARM = 100;
/** So many a worker are added at a time. */
const WARM_JOBS = 300;
const WAIT_MS = 60_000;

/** One run of a job. Times are those of the clock that all processes share. */
export interface CrewRun {
  readonly id: string;
  /** Which of the crew ran it. */
  readonly by: number;
  readonly from: number;
  /** Undefined: it has not ended. */
  readonly to: number | undefined;
}

export class Crew {
  readonly members: readonly Program[];
  readonly #concurrency: number;
  /** When each job was sent, and there. */
  readonly #added = new Map<string, { sent: number; added: number }>();

  private constructor(members: readonly Program[], concurrency: number) {
    this.members = members;
    this.#concurrency = concurrency;
  }

  /** Starts so many; `env` as the program has it. */
  static async start(
    stage: Stage,
    library: string,
    count: number,
    env: Record<string, string | number>,
  ): Promise<Crew> {
    const all = { LIBRARY: library, QUEUE: stage.queueName, WARM, ...env };
    const start = () => stage.keep(Program.start('mixed-worker.mjs', { env: all }));
    const crew = new Crew(Array.from({ length: count }, start), Number(env.CONCURRENCY));
    await Promise.all(crew.members.map((member) => member.said('ready')));
    return crew;
  }

  /** Lets each of them run hundreds of trivial jobs, until all are idle again. */
  async warmUp(queue: Queue): Promise<void> {
    const isWarm = () => this.members.every(({ lines }) => lines.includes('warm'));
    const isIdle = async () => Object.values(await queue.getJobCounts('waiting', 'active')).every((count) => !count);
    const deadline = performance.now() + WAIT_MS;
    while (!isWarm() && performance.now() < deadline) {
      await queue.addBulk(Array.from({ length: WARM_JOBS * this.members.length }, () => ({ name: 'warm', data: {} })));
      await until('the trivial jobs to end', isIdle, WAIT_MS);
    }
    if (!isWarm()) throw new Error('some of the crew got next to no trivial jobs');
  }

  /** Adds jobs by one call. */
  async add(queue: Queue, rows: readonly { name: string; data: object }[]): Promise<Job[]> {
    const sent = sharedClock();
    const jobs = await queue.addBulk([...rows]);
    for (const { id } of jobs) this.#added.set(String(id), { sent, added: sharedClock() });
    return jobs;
  }

  /** Which of the jobs that are added meanwhile wait beside an idle worker, and how many milliseconds count as waiting. */
  async neglects(redis: Redis, meanwhile: () => Promise<unknown>): Promise<{ neglects: Neglect[]; mostMs: number }> {
    const from = sharedClock();
    const lateness = new Lateness([redis], sharedClock);
    await meanwhile().finally(() => lateness.end());
    const runs = this.runs;
    const jobs = [...this.#added].flatMap(([key, { sent, added }]): JobRecord[] => {
      const started = runs.find(({ id }) => id === key)?.from ?? Infinity;
      return sent > from ? [{ key, sent, added, started }] : [];
    });
    const mostMs = START_MS * Math.max(1, lateness.pace);
    const workers = this.members.map((member, by) => this.#recordOf(member, by, runs, { from, to: sharedClock() }));
    return { neglects: neglected(jobs, workers, { mostMs, blind: lateness.late }), mostMs };
  }

  #recordOf(member: Program, by: number, runs: readonly CrewRun[], alive: Span): WorkerRecord {
    const late = member.lines.filter((line) => line.startsWith('late ')).map((line) => line.split(' ').map(Number));
    return {
      name: `worker ${by}`,
      concurrency: this.#concurrency,
      alive,
      runs: runs.flatMap(({ id, by: who, from, to = Infinity }) => (who === by ? [{ key: id, from, to }] : [])),
      late: late.map(([, from = NaN, to = NaN]) => ({ from, to })),
    };
  }

  /** All runs so far, in the order of their starts. */
  get runs(): CrewRun[] {
    return this.members.flatMap(({ lines }, by) => runsOf(lines, by)).sort((a, b) => a.from - b.from);
  }

  /** Resolves when so many of these jobs, all by default, have ended: with their runs, in the order of the starts. */
  async ended(ids: readonly (string | undefined)[], count = ids.length): Promise<CrewRun[]> {
    return this.#when('end', ids, count, ({ to }) => to !== undefined);
  }

  /** The same of their starts. */
  async started(ids: readonly (string | undefined)[], count = ids.length): Promise<CrewRun[]> {
    return this.#when('start', ids, count, () => true);
  }

  async #when(
    what: string,
    ids: readonly (string | undefined)[],
    count: number,
    is: (run: CrewRun) => boolean,
  ): Promise<CrewRun[]> {
    const wanted = new Set(ids);
    const runs = () => this.runs.filter(({ id }) => wanted.has(id));
    const reached = () => new Set(runs().flatMap((run) => (is(run) ? [run.id] : []))).size >= count;
    await until(`${count} of ${ids.length} jobs to ${what}`, reached, WAIT_MS);
    return runs();
  }

  tell(line: string): void {
    for (const member of this.members) member.tell(line);
  }
}

function runsOf(lines: readonly string[], by: number): CrewRun[] {
  const runs: { id: string; by: number; from: number; to: number | undefined }[] = [];
  for (const line of lines) {
    const [word, id = '', at] = line.split(' ');
    if (word === 'started') runs.push({ id, by, from: Number(at), to: undefined });
    // a worker may run a job again that it has not ended: the older run ends first
    const run = word === 'ended' && runs.find((other) => other.id === id && other.to === undefined);
    if (run) run.to = Number(at);
  }
  return runs;
}
