import { COMMANDS } from '../connection/members.js';
import type { Backend } from '../connection/backend.js';
import type { Job } from '../job/job.js';
import { callAbout, callToLimit } from '../job/open-calls.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { ObliterateOpts } from '../options/queue.js';
import { checkExpireTime } from '../options/rate-limiter.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { traceInternal } from '../telemetry/trace.js';
import type { JobProgress } from '../types/job-progress.js';
import { QueueCancelling } from './queue-cancelling.js';

/** What `Queue` does with a queue beside adding jobs: settings and limits, single jobs changed and removed. */
export class QueueAdministration<
  JobBase extends Job = Job,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueCancelling<JobBase, B, ConnectionOptionsType> {
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
}

/** The text under which a limit is stored. NaN, and what is no number, would be a limit nobody can read. */
function numberText(name: string, value: number): string {
  const text = String(value);
  const isNumber = typeof value !== 'object' && text.trim() !== '' && !Number.isNaN(Number(text));
  if (!isNumber) throw new TypeError(`${name} must be a number, not ${JSON.stringify(text)}`);
  return text;
}
