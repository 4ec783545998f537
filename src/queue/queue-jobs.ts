import { COMMANDS, TARGET } from '../connection/members.js';
import type { Backend } from '../connection/backend.js';
import type { Job } from '../job/job.js';
import type { ConnectionOptions } from '../options/connection.js';
import {
  readFailedFilter,
  type FailedJobsFilter,
  type FailedJobsOptions,
  type RemoveFailedOptions,
  type ReplayFailedOptions,
} from '../options/failed-jobs.js';
import {
  checkOptions,
  readFilter,
  readLimit,
  readNumber,
  requireFilter,
  type ChangeJobsOptions,
  type FindJobsOptions,
  type FoundJobs,
  type JobFilter,
  type JobsWatch,
  type ReadFilter,
  type RetryJobsOptions,
} from '../options/job-filter.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { traceInternal } from '../telemetry/trace.js';
import type { FinishedStatus, JobState } from '../types/job-state.js';
import { SpanKind } from '../types/telemetry.js';
import { cursorOf, placeOf } from './job-steps.js';
import { changePicked, countPicked, findPicked, type ChangeStep, type StepsOf } from './picked-jobs.js';
import { QueueBase } from './queue-base.js';
import { QueueGroups } from './queue-groups.js';

/** Jobs a `cleaned` event. */
const CLEANED_BATCH = 10_000;

const WATCH = ['signal', 'onProgress'];
const MOVABLE: readonly JobState[] = ['prioritized', 'waiting', 'delayed', 'failed', 'completed'];

/** What BullMQ's `retryJobs` is told. */
interface RetryAllOptions {
  count?: number;
  state?: FinishedStatus;
  timestamp?: number;
}

/** What a queue does with many jobs at once: drains, cleans, and finds and changes those that a filter picks. */
export class QueueJobs<
  JobBase extends Job = Job,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueGroups<JobBase, B, ConnectionOptionsType> {
  // ---- Whole states

  /**
   * Removes every job that waits, and those that are delayed if `delayed` is true. Jobs that are active stay, and so do
   * jobs added while this runs. It works in steps of a few milliseconds: each is atomic, the whole is not.
   * Cost: a step for 500 jobs, or for 6,400 plain ones.
   */
  async drain(delayed = false): Promise<void> {
    return traceInternal(this, 'drain', { [TelemetryAttributes.QueueDrainDelay]: delayed }, async () => {
      await this[COMMANDS].native.drain(Boolean(delayed), Date.now());
    });
  }

  /**
   * Removes jobs of one state that are older than `grace`: since they ended or started, or else were created. Jobs that a
   * worker holds stay; parents (`waiting-children`, which BullMQ's types leave out) go without their children. Emits
   * `cleaned`, here and as a global event, once for 10,000 jobs and at the end.
   * Cost: a step of a few milliseconds for 500 jobs, or for 6,400 plain ones.
   * @param grace milliseconds
   * @param limit looks at so many jobs at most, the oldest first; 0 = no limit
   * @returns the ids of the removed jobs
   * @throws (rejects) RangeError for a grace or limit that is no number
   */
  async clean(
    grace: number,
    limit = 0,
    type: 'completed' | 'wait' | 'waiting' | 'active' | 'paused' | 'prioritized' | 'delayed' | 'failed' = 'completed',
  ): Promise<string[]> {
    return this.trace(SpanKind.INTERNAL, 'clean', this.name, async (span) => {
      if (Number.isNaN(Number(grace))) throw new RangeError('grace must be a number of milliseconds');
      if (Number.isNaN(Number(limit))) throw new RangeError('limit must be a number of jobs');
      if (limit < 0) return [];
      const now = Date.now();
      const state = type === 'waiting' ? 'wait' : String(type);
      const most = Math.min(Math.ceil(limit), Number.MAX_SAFE_INTEGER);
      const removed = await this[COMMANDS].native.clean(state, Math.max(now - grace, 0), most, now);
      const ids: string[] = [];
      for (const batch of cleanedBatches(removed, most)) {
        // BullMQ reads its list of waiting jobs from the other end
        if (state === 'wait') batch.reverse();
        this.emit('cleaned', batch, state);
        ids.push(...batch);
      }
      span?.setAttributes({
        [TelemetryAttributes.QueueGrace]: grace,
        [TelemetryAttributes.JobType]: type,
        [TelemetryAttributes.QueueCleanLimit]: most || Infinity,
        [TelemetryAttributes.QueueCleanCount]: ids.length,
      });
      return ids;
    });
  }

  // ---- Jobs that a filter picks: an extension

  /**
   * Jobs that match the filter, in any state, a page at a time. Waiting, prioritized and delayed jobs come in the order in which they start; those that ended
   * the latest first; active ones in none. A job that is in its state all the while is found once; one that moves on meanwhile may be found again on a later
   * page. An extension.
   * Cost: a step of a few milliseconds for 500 jobs that are looked at, or for 2,000 plain ones; the server applies the filter.
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason
   */
  async findJobs(filter: JobFilter = {}, opts: FindJobsOptions = {}): Promise<FoundJobs<JobBase>> {
    checkOptions(opts, ['limit', 'cursor', ...WATCH]);
    const read = readFilter(filter, { now: Date.now(), queue: this.qualifiedName });
    const { cursor, limit = 100, ...watch } = opts;
    const from = cursor === undefined ? undefined : placeOf(cursor, read.states);
    const found = await findPicked(this[COMMANDS], read, { ...watch, limit: readLimit(limit), from });
    const jobs = found.jobs.map((job) => this.Job.fromNative(this, job) as unknown as JobBase);
    return { jobs, cursor: cursorOf(found.place) };
  }

  /**
   * Number of jobs that match the filter. A job that moves on while they are counted may count twice. An extension; costs as {@link findJobs}, and
   * next to nothing where only states are named.
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason
   */
  async countJobs(filter: JobFilter = {}, opts: JobsWatch = {}): Promise<number> {
    checkOptions(opts, WATCH);
    const read = readFilter(filter, { now: Date.now(), queue: this.qualifiedName });
    if (Object.keys(read.pick).length > 0) {
      return (await countPicked(this[COMMANDS], read, { ...opts, limit: Number.MAX_SAFE_INTEGER })).jobs;
    }
    opts.signal?.throwIfAborted();
    const counts = await this[COMMANDS].native.getCounts([...read.states]);
    return counts.reduce((sum, jobs) => sum + jobs, 0);
  }

  /**
   * Removes jobs that match the filter, those that ended or start first first. Jobs that a worker holds stay, and so do the next jobs of schedulers,
   * and the children of what is removed; parents wait for it no more. Emits `cleaned` for each step, here and as a global event. An extension.
   * Cost: a step of a few milliseconds for 500 jobs that are looked at, or 250 that are removed.
   * @returns the number of jobs
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason: what was removed by then is gone
   */
  async removeJobs(filter: JobFilter, opts: ChangeJobsOptions = {}): Promise<number> {
    requireFilter(filter);
    const change = readChange(this, filter, opts);
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(filter) };
    return traceInternal(this, 'removeJobs', attributes, () =>
      changePicked(this[COMMANDS], ...change, removeStep, (ids, state) => {
        if (ids.length > 0) this.emit('cleaned', ids, state);
      }),
    );
  }

  /**
   * Puts failed (or completed) jobs back in the waiting list, in the order in which they ended. Their counts of tries go on.
   * Cost: a step of a few milliseconds for 500 jobs.
   * @param opts.count jobs a step, 500 at most
   * @param opts.timestamp only jobs that ended by then, epoch milliseconds; default now
   */
  async retryJobs(opts?: { count?: number; state?: FinishedStatus; timestamp?: number }): Promise<void>;
  /**
   * Puts jobs that match the filter back in the waiting list, in the order in which they ended: failed ones unless `states` says otherwise. One
   * that ends again meanwhile stays. An extension; costs as {@link removeJobs}.
   * @returns the number of jobs
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason: what was put back by then waits
   */
  async retryJobs(filter: JobFilter, opts?: RetryJobsOptions): Promise<number>;
  async retryJobs(of: RetryAllOptions | JobFilter = {}, opts?: RetryJobsOptions): Promise<number | void> {
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(of) };
    const retry = async (): Promise<number | void> => {
      if (isFilter(of, ['count', 'state', 'timestamp'], opts)) {
        const { resetAttempts = false, ...others } = opts ?? {};
        if (typeof resetAttempts !== 'boolean') throw new TypeError('resetAttempts must be true or false');
        const change = readChange(this, { states: 'failed', ...of }, others, ['failed', 'completed']);
        return changePicked(this[COMMANDS], ...change, retryStep(resetAttempts), () => {});
      }
      // the clock that BullMQ reads here, where somebody fakes one of the two
      const { count = 1000, state = 'failed', timestamp = new Date().getTime() } = of;
      await this[COMMANDS].starting((native) =>
        native.retryJobs(String(state), Number(timestamp), Number(count), Date.now()),
      );
    };
    return traceInternal(this, 'retryJobs', attributes, retry, SpanKind.PRODUCER);
  }

  /**
   * Puts all delayed jobs in the waiting list, in the order in which they are due. Jobs with a priority wait without it.
   * Cost: a step of a few milliseconds for 500 jobs.
   * @param opts.count jobs a step, 500 at most
   */
  async promoteJobs(opts?: { count?: number }): Promise<void>;
  /**
   * Puts delayed jobs that match the filter in the waiting list, in the order in which they are due. An extension; costs as {@link removeJobs}.
   * @returns the number of jobs
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason: what was promoted by then waits
   */
  async promoteJobs(filter: JobFilter, opts?: ChangeJobsOptions): Promise<number>;
  async promoteJobs(of: { count?: number } | JobFilter = {}, opts?: ChangeJobsOptions): Promise<number | void> {
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(of) };
    return traceInternal(this, 'promoteJobs', attributes, async () => {
      if (isFilter(of, ['count'], opts)) {
        const change = readChange(this, of, opts ?? {}, ['delayed']);
        return changePicked(this[COMMANDS], ...change, promoteStep, () => {});
      }
      const { count = 500 } = of;
      return this[COMMANDS].starting((native) => native.promoteJobs(Number(count), Date.now()));
    });
  }

  /**
   * Moves jobs that match the filter to another queue, those that ended or start first first: waiting, prioritized and delayed ones, and those that
   * ended, which wait there. They are new jobs there, with the same name, data, options, priority, group and due time; an id that is a number is given anew,
   * and one of the user's stays. A job goes in one step: it is never in both queues, or in none. Children, parents, jobs of schedulers, and those whose id
   * the other queue has already stay. The other queue's maximum length does not hold for them. An extension; costs as {@link removeJobs}.
   * @param queue a queue on the same server, or the name of one with the same prefix; in a Cluster it shares this one's hash tag
   * @returns the number of jobs
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason: what was moved by then is there
   */
  async moveJobs(
    queue: QueueBase<unknown, unknown> | string,
    filter: JobFilter,
    opts: ChangeJobsOptions = {},
  ): Promise<number> {
    requireFilter(filter);
    const target = targetName(this, queue);
    const change = readChange(this, filter, opts, MOVABLE);
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(filter) };
    return traceInternal(this, 'moveJobs', attributes, () =>
      changePicked(this[COMMANDS], ...change, moveStep(target), () => {}),
    );
  }

  // ---- Failed jobs: the same, of one state

  /**
   * Failed jobs that match the filter, the latest first. An extension; costs as {@link findJobs}.
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async getFailedJobs(opts: FailedJobsOptions = {}): Promise<JobBase[]> {
    const read = readFailedFilter(opts, ['start', 'limit'], { now: Date.now(), queue: this.qualifiedName });
    const [start, limit] = [readNumber('start', opts.start ?? 0), readNumber('limit', opts.limit ?? 100)].map(
      Math.floor,
    );
    const { place: from } = await countPicked(this[COMMANDS], read, { limit: start });
    if (!from) return [];
    const { jobs } = await findPicked(this[COMMANDS], read, { limit, from });
    return jobs.map((job) => this.Job.fromNative(this, job) as unknown as JobBase);
  }

  /**
   * Number of failed jobs that match the filter. An extension; costs as {@link findJobs} of all of them.
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async countFailedJobs(filter: FailedJobsFilter = {}): Promise<number> {
    const read = readFailedFilter(filter, [], { now: Date.now(), queue: this.qualifiedName });
    return (await countPicked(this[COMMANDS], read, { limit: Number.MAX_SAFE_INTEGER })).jobs;
  }

  /**
   * Puts failed jobs that match the filter back in the waiting list, as {@link retryJobs} does. An extension.
   * @returns the number of jobs
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async replayFailed(opts: ReplayFailedOptions = {}): Promise<number> {
    const now = Date.now();
    const read = readFailedFilter(opts, ['limit', 'resetAttempts'], { now, queue: this.qualifiedName });
    const limit = Math.floor(readNumber('limit', opts.limit ?? Infinity));
    return changePicked(this[COMMANDS], read, { limit, now }, retryStep(Boolean(opts.resetAttempts)), () => {});
  }

  /**
   * Removes failed jobs that match the filter, as {@link removeJobs} does, and emits `cleaned` as {@link clean} does. An extension.
   * @returns their ids
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async removeFailed(opts: RemoveFailedOptions = {}): Promise<string[]> {
    const now = Date.now();
    const read = readFailedFilter(opts, ['limit'], { now, queue: this.qualifiedName });
    const limit = Math.floor(readNumber('limit', opts.limit ?? Infinity));
    if (limit === 0) return [];
    const removed: string[] = [];
    await changePicked(this[COMMANDS], read, { limit, now }, removeStep, (ids) => removed.push(...ids));
    for (const batch of cleanedBatches(removed, limit)) this.emit('cleaned', batch, 'failed');
    return removed;
  }
}

const removeStep: ChangeStep = (native, { state, pick, place, room, now }) =>
  native.removeJobs(state, pick, place, room, now);

const promoteStep: ChangeStep = (native, { pick, place, room, now }) => native.promotePicked(pick, place, room, now);

function retryStep(reset: boolean): ChangeStep {
  return (native, { state, pick, place, room, now }) => native.retryPicked(state, pick, place, room, reset, now);
}

/**
 * What a call that changes jobs is told.
 * @param possible the states that it is about
 */
export function readChange(
  { qualifiedName: queue }: { qualifiedName: string },
  filter: JobFilter,
  { limit = Infinity, ...watch }: ChangeJobsOptions,
  possible?: readonly JobState[],
): [ReadFilter, StepsOf & { now: number }] {
  checkOptions(watch, WATCH);
  const now = Date.now();
  const read = readFilter(filter, { now, queue, ...(possible && { possible }) });
  return [read, { ...watch, limit: readLimit(limit), now }];
}

function moveStep(target: string): ChangeStep {
  return (native, { state, pick, place, room, now }) => native.movePicked(state, pick, place, room, target, now);
}

/**
 * Qualified name of a queue that jobs of this one are moved to.
 * @throws TypeError unless it is another queue of the same server
 */
function targetName(of: QueueBase<unknown, unknown>, to: unknown): string {
  const name = typeof to === 'string' ? to : undefined;
  if (name !== undefined ? name === '' || name.includes(':') : !(to instanceof QueueBase)) {
    throw new TypeError('The queue to move jobs to must be a Queue, or the name of one');
  }
  const other = to as QueueBase<unknown, unknown>;
  if (name === undefined && placeOfServer(other) !== placeOfServer(of)) {
    throw new TypeError('The queue to move jobs to must be on the same server');
  }
  const qualified = name === undefined ? other.qualifiedName : `${of[TARGET].prefix}:${name}`;
  if (qualified === of.qualifiedName) throw new TypeError('The queue to move jobs to must be another one');
  return qualified;
}

/** Where a queue's server is, as its options say. */
function placeOfServer({ [TARGET]: { connection } }: QueueBase<unknown, unknown>): string {
  const { host = '127.0.0.1', port = 6379, path, db = 0, discovery } = connection;
  return JSON.stringify(path === undefined && !discovery ? [host, port, db] : [path, discovery, db]);
}

/** Whether such a call is by a filter, and not BullMQ's. */
function isFilter(of: object, bullmq: readonly string[], opts: object | undefined): of is JobFilter {
  return opts !== undefined || Object.keys(of).some((field) => !bullmq.includes(field));
}

/** The removed ids as the `cleaned` events tell them: the last event may tell none, unless a limit was reached. */
function cleanedBatches(ids: string[], limit: number): string[][] {
  const batches: string[][] = [];
  for (let from = 0; from < ids.length; from += CLEANED_BATCH) batches.push(ids.slice(from, from + CLEANED_BATCH));
  const last = batches.at(-1);
  if (!last || (last.length === CLEANED_BATCH && ids.length !== limit)) batches.push([]);
  return batches;
}
