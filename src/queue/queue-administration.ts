import { COMMANDS } from '../connection/members.js';
import type { Backend } from '../connection/backend.js';
import type { Job } from '../job/job.js';
import { callAbout, callToLimit } from '../job/open-calls.js';
import type { ConnectionOptions } from '../options/connection.js';
import {
  readFilter,
  readNumber,
  type FailedJobsFilter,
  type FailedJobsOptions,
  type RemoveFailedOptions,
  type ReplayFailedOptions,
} from '../options/failed-jobs.js';
import type { ObliterateOpts } from '../options/queue.js';
import { checkExpireTime } from '../options/rate-limiter.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { traceInternal } from '../telemetry/trace.js';
import type { JobProgress } from '../types/job-progress.js';
import type { FinishedStatus } from '../types/job-state.js';
import { SpanKind } from '../types/telemetry.js';
import { QueueGroups } from './queue-groups.js';

/** Jobs a `cleaned` event. */
const CLEANED_BATCH = 10_000;

/** What `Queue` does with a queue beside adding jobs: settings and limits, jobs changed and removed, one or many at once. */
export class QueueAdministration<
  JobBase extends Job = Job,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueGroups<JobBase, B, ConnectionOptionsType> {
  // ---- Settings, and single jobs

  /** Stops all workers of the queue from taking jobs, until `resume()`. Jobs under way go on. */
  async pause(): Promise<void> {
    return traceInternal(this, 'pause', {}, async () => {
      await this[COMMANDS].native.pause(true);
      this.emit('paused');
    });
  }

  /** Lets workers take jobs again. */
  async resume(): Promise<void> {
    return traceInternal(this, 'resume', {}, async () => {
      await this[COMMANDS].starting((native) => native.pause(false));
      this.emit('resumed');
    });
  }

  /** Whether the queue is paused for all workers. */
  async isPaused(): Promise<boolean> {
    return this[COMMANDS].native.isPaused();
  }

  /**
   * Limits how many jobs may be active at once, over all workers of the queue. Workers that wait for a place look again.
   * @returns 1 when there was no such limit before, else 0
   * @throws (rejects) TypeError unless it is a number
   */
  async setGlobalConcurrency(concurrency: number): Promise<number> {
    const text = numberText('concurrency', concurrency);
    return this[COMMANDS].starting((native) => native.limitConcurrency(text));
  }

  /** @returns 1 when there was a limit, else 0 */
  async removeGlobalConcurrency(): Promise<number> {
    return this[COMMANDS].starting((native) => native.limitConcurrency());
  }

  /**
   * Limits how many jobs may start in a window of time, over all workers of the queue; it begins with the first of them.
   * Overrides the `max` of a worker's own `limiter`, whose `duration` in turn overrides this one.
   * @param duration of a window, in milliseconds
   * @returns number of settings that were not there before: 2 or 0
   * @throws (rejects) TypeError unless both are numbers
   */
  async setGlobalRateLimit(max: number, duration: number): Promise<number> {
    const [most, span] = [numberText('max', max), numberText('duration', duration)];
    return this[COMMANDS].starting((native) => native.limitRate(most, span));
  }

  /** @returns 2 when there was a limit, else 0 */
  async removeGlobalRateLimit(): Promise<number> {
    return this[COMMANDS].starting((native) => native.limitRate());
  }

  /**
   * Limits how many jobs may wait in the queue, as `count()` counts them: waiting, prioritized, delayed, or for their
   * children. An add without room for all of its jobs then rejects, with the `code` `ERR_QUEUE_FULL`, and none of them is
   * added: of one `addBulk` or flow, or of the `add` calls of one tick, which travel together. What is in the queue may
   * move and run again whatever its length, and job schedulers go on. Not in BullMQ.
   * @param jobs a whole number of at least 1
   * @returns 1 when there was no such limit before, else 0
   * @throws (rejects) RangeError for any other number
   */
  async setMaxLength(jobs: number): Promise<number> {
    if (!(Number.isSafeInteger(jobs) && jobs >= 1)) {
      throw new RangeError(`The maximum length must be a whole number of at least 1, not ${String(jobs)}`);
    }
    return this[COMMANDS].native.limitLength(jobs);
  }

  /** @returns 1 when there was a limit, else 0 */
  async removeMaxLength(): Promise<number> {
    return this[COMMANDS].native.limitLength();
  }

  /**
   * Lets no job start for a while, wherever a rate limit holds: in workers with a `limiter`, or in all when there is a
   * global rate limit. A processor that meets somebody else's limit calls it, then throws `Worker.RateLimitError()`.
   * @param expireTimeMs milliseconds
   * @throws (rejects) Error with the server's text unless it is a whole number of at least 1
   */
  async rateLimit(expireTimeMs: number): Promise<void> {
    return traceInternal(this, 'rateLimit', { [TelemetryAttributes.QueueRateLimit]: expireTimeMs }, async () => {
      await callToLimit(this, this[COMMANDS].native.hold(checkExpireTime(expireTimeMs)));
    });
  }

  /**
   * Ends the window of the rate limit that is under way. Workers that sleep because of it look again.
   * @returns 1 when there was one, else 0
   */
  async removeRateLimitKey(): Promise<number> {
    return this[COMMANDS].starting((native) => native.hold());
  }

  /** Whether as many jobs are active as the global concurrency allows. */
  async isMaxed(): Promise<boolean> {
    const concurrency = await this.getGlobalConcurrency();
    return concurrency !== null && (await this.getActiveCount()) >= concurrency;
  }

  /**
   * Removes a job, with its children unless told otherwise.
   * @returns 1, also when there is no such job; 0 when the job or one of its children is held by a worker
   */
  async remove(jobId: string, { removeChildren = true }: { removeChildren?: boolean } = {}): Promise<number> {
    const options = JSON.stringify({ removeChildren });
    const attributes = { [TelemetryAttributes.JobId]: jobId, [TelemetryAttributes.JobOptions]: options };
    return traceInternal(this, 'remove', attributes, async () => {
      const id = String(jobId);
      const call = this[COMMANDS].startingParents((native) => native.remove(id, Boolean(removeChildren)));
      const removed = await callAbout(this, id, call);
      if (removed === 1) this.emit('removed', jobId);
      return removed;
    });
  }

  /** Stores a job's progress and emits `progress` with its id. */
  async updateJobProgress(jobId: string, progress: JobProgress): Promise<void> {
    const text = JSON.stringify(progress);
    const attributes = { [TelemetryAttributes.JobId]: jobId, [TelemetryAttributes.JobProgress]: text };
    return traceInternal(this, 'updateJobProgress', attributes, async () => {
      const id = String(jobId);
      await callAbout(this, id, this[COMMANDS].native.updateProgress(id, text ?? 'null'));
      this.emit('progress', jobId, progress);
    });
  }

  /**
   * Adds a row to a job's log.
   * @param keepLogs number of rows to keep, the newest ones; 0 or undefined keeps all
   * @returns the number of rows now kept
   */
  addJobLog(jobId: string, logRow: string, keepLogs?: number): Promise<number> {
    return this.Job.addJobLog(this, jobId, logRow, keepLogs);
  }

  /**
   * Frees a deduplication id, whichever job owns it: the next add of that id is added. What an active owner keeps for
   * later (`keepLastIfActive`) is still added when it has finished.
   * @returns 1, or 0 when no job owned it
   */
  async removeDeduplicationKey(id: string): Promise<number> {
    return traceInternal(this, 'removeDeduplicationKey', { [TelemetryAttributes.DeduplicationKey]: id }, async () => {
      return this[COMMANDS].native.removeDeduplicationKey(String(id));
    });
  }

  /** @deprecated Use removeDeduplicationKey. */
  removeDebounceKey(id: string): Promise<number> {
    return traceInternal(this, 'removeDebounceKey', { [TelemetryAttributes.JobKey]: id }, () =>
      this[COMMANDS].native.removeDeduplicationKey(String(id)),
    );
  }

  /**
   * Pauses the queue and removes everything in it, for good.
   * @throws (rejects) Error `Cannot obliterate queue with active jobs` unless forced
   */
  async obliterate(opts?: ObliterateOpts): Promise<void> {
    const { force = false, count = 1000 } = opts ?? {};
    return traceInternal(this, 'obliterate', {}, async () => {
      await this.pause();
      await this[COMMANDS].native.obliterate(Boolean(force), Number(count));
      this[COMMANDS].producer.beginAnew();
    });
  }

  /** 0: here a job and what says where it is change in one step, so no job is ever orphaned. */
  removeOrphanedJobs(_count = 1000, _limit = 0): Promise<number> {
    return Promise.resolve(0);
  }

  /** 0: the key of older BullMQ versions that this removed never exists here. */
  removeDeprecatedPriorityKey(): Promise<number> {
    return Promise.resolve(0);
  }

  // ---- Many jobs at once

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
      const removed = await this[COMMANDS].native.clean(state, { before: Math.max(now - grace, 0) }, most, now);
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

  /**
   * Puts failed (or completed) jobs back in the waiting list, in the order in which they ended. Their counts of tries go on.
   * Cost: a step of a few milliseconds for 500 jobs.
   * @param opts.count jobs a step, 500 at most
   * @param opts.timestamp only jobs that ended by then, epoch milliseconds; default now
   */
  async retryJobs(opts: { count?: number; state?: FinishedStatus; timestamp?: number } = {}): Promise<void> {
    // the clock that BullMQ reads here, where somebody fakes one of the two
    const { count = 1000, state = 'failed', timestamp = new Date().getTime() } = opts;
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(opts) };
    const retry = async (): Promise<void> => {
      const before = { before: Number(timestamp) };
      await this[COMMANDS].starting((native) =>
        native.retryJobs(String(state), before, 0, Number(count), false, Date.now()),
      );
    };
    return traceInternal(this, 'retryJobs', attributes, retry, SpanKind.PRODUCER);
  }

  /**
   * Puts all delayed jobs in the waiting list, in the order in which they are due. Jobs with a priority wait without it.
   * Cost: a step of a few milliseconds for 500 jobs.
   * @param opts.count jobs a step, 500 at most
   */
  async promoteJobs(opts: { count?: number } = {}): Promise<void> {
    const { count = 500 } = opts;
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(opts) };
    return traceInternal(this, 'promoteJobs', attributes, () =>
      this[COMMANDS].starting((native) => native.promoteJobs(Number(count), Date.now())),
    );
  }

  /**
   * Removes the oldest events until about `maxLength` are left: events that were written together stay together.
   * Cost: reads the event log, a hundred entries at a time.
   * @returns the number of events removed
   * @throws (rejects) RangeError unless `maxLength` is a number of 0 or more
   */
  async trimEvents(maxLength: number): Promise<number> {
    return traceInternal(this, 'trimEvents', { [TelemetryAttributes.QueueEventMaxLength]: maxLength }, async () => {
      if (typeof maxLength !== 'number' || !(maxLength >= 0)) {
        throw new RangeError('maxLength must be a number of 0 or more');
      }
      return this[COMMANDS].native.trimEvents(Math.min(maxLength, Number.MAX_SAFE_INTEGER));
    });
  }

  // ---- Failed jobs: an extension

  /**
   * Failed jobs that match the filter, the latest first. An extension.
   * Cost: a step of a few milliseconds for 500 failed jobs that are looked at; the filter is applied by the server.
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async getFailedJobs(opts: FailedJobsOptions = {}): Promise<JobBase[]> {
    const now = Date.now();
    const pick = readFilter(opts, ['start', 'limit'], now);
    const [start, limit] = [readNumber('start', opts.start ?? 0), readNumber('limit', opts.limit ?? 100)];
    const found = await this[COMMANDS].native.findFailed(pick, start, limit, now);
    return found.map((job) => this.Job.fromNative(this, job) as unknown as JobBase);
  }

  /**
   * Number of failed jobs that match the filter. An extension; costs as {@link getFailedJobs} of all of them.
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async countFailedJobs(filter: FailedJobsFilter = {}): Promise<number> {
    const now = Date.now();
    return this[COMMANDS].native.countFailed(readFilter(filter, [], now), now);
  }

  /**
   * Puts failed jobs that match the filter back in the waiting list, in the order in which they failed. An extension; a job that fails
   * again meanwhile stays failed.
   * Cost: a step of a few milliseconds for 500 jobs.
   * @returns the number of jobs
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async replayFailed(opts: ReplayFailedOptions = {}): Promise<number> {
    const now = Date.now();
    const pick = readFilter(opts, ['limit', 'resetAttempts'], now);
    const limit = readNumber('limit', opts.limit ?? Infinity);
    if (limit === 0) return 0;
    const reset = Boolean(opts.resetAttempts);
    return this[COMMANDS].starting((native) => native.retryJobs('failed', pick, limit, 1000, reset, now));
  }

  /**
   * Removes failed jobs that match the filter, in the order in which they failed. An extension; emits `cleaned` as
   * {@link clean} does.
   * Cost: a step of a few milliseconds for 500 jobs.
   * @returns their ids
   * @throws (rejects) TypeError for an unknown field, or one without a value
   */
  async removeFailed(opts: RemoveFailedOptions = {}): Promise<string[]> {
    const now = Date.now();
    const pick = readFilter(opts, ['limit'], now);
    const limit = readNumber('limit', opts.limit ?? Infinity);
    if (limit === 0) return [];
    const ids = await this[COMMANDS].native.clean('failed', { before: now, ...pick }, limit, now);
    for (const batch of cleanedBatches(ids, limit)) this.emit('cleaned', batch, 'failed');
    return ids;
  }
}

/** The removed ids as the `cleaned` events tell them: the last event may tell none, unless a limit was reached. */
function cleanedBatches(ids: string[], limit: number): string[][] {
  const batches: string[][] = [];
  for (let from = 0; from < ids.length; from += CLEANED_BATCH) batches.push(ids.slice(from, from + CLEANED_BATCH));
  const last = batches.at(-1);
  if (!last || (last.length === CLEANED_BATCH && ids.length !== limit)) batches.push([]);
  return batches;
}

/** The text under which a limit is stored. NaN, and what is no number, would be a limit nobody can read. */
function numberText(name: string, value: number): string {
  const text = String(value);
  const isNumber = typeof value !== 'object' && text.trim() !== '' && !Number.isNaN(Number(text));
  if (!isNumber) throw new TypeError(`${name} must be a number, not ${JSON.stringify(text)}`);
  return text;
}
