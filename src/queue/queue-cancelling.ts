import type { Backend } from '../connection/backend.js';
import { COMMANDS } from '../connection/members.js';
import type { Job } from '../job/job.js';
import { callAbout } from '../job/open-calls.js';
import {
  readCancelOptions,
  type CancelJobOptions,
  type CancelJobsOptions,
  type CancelledState,
  type CancelRule,
} from '../options/cancelling.js';
import type { ConnectionOptions } from '../options/connection.js';
import { checkOptions, requireFilter, type JobFilter } from '../options/job-filter.js';
import { TelemetryAttributes } from '../telemetry/names.js';
import { traceInternal } from '../telemetry/trace.js';
import type { JobState } from '../types/job-state.js';
import { changePicked, type ChangeStep } from './picked-jobs.js';
import { QueueJobs, readChange } from './queue-jobs.js';

// Taken at load: a user's fake timers stand still.
const { setTimeout } = globalThis;
const clock = performance.now.bind(performance);

const CANCELLABLE: readonly JobState[] = ['waiting-children', 'delayed', 'prioritized', 'waiting', 'active'];
const OVER: readonly string[] = ['completed', 'failed', 'unknown'];
/** Milliseconds between two looks at a job that runs. */
const LOOK_MS = 50;
/** Jobs that are cancelled at once with what they wait for. */
const FAMILIES_A_STEP = 100;
const CHANGED: readonly string[] = ['cancelled', 'signalled'];

/** How a queue cancels jobs, from any process: an extension. */
export class QueueCancelling<
  JobBase extends Job = Job,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueJobs<JobBase, B, ConnectionOptionsType> {
  /**
   * Cancels a job, wherever it is. One that does not run fails for good with the text of a {@link JobCancelledError}, as any job that fails: its parent is
   * told, and `failed` is emitted globally. Of one that runs the signal is aborted, in whatever process: it is not tried again if it fails, and
   * completes if its processor does not look. An extension.
   * @returns `cancelled`: it has ended by this; `signalled`: it runs, and its worker is told; `ended`: it had ended before; `missing`: there is no such job
   * @throws (rejects) TypeError that names the option that cannot be; Error with the code -8 for the next job of a scheduler, unless it runs; Error
   *   with the code `ERR_STILL_RUNNING` when it runs for longer than `waitForEnd` says
   */
  async cancelJob(jobId: string, opts: CancelJobOptions = {}): Promise<CancelledState> {
    const { rule, others } = readCancelOptions(opts);
    checkOptions(others, []);
    const id = String(jobId);
    const attributes = { [TelemetryAttributes.JobId]: id, [TelemetryAttributes.JobOptions]: JSON.stringify(opts) };
    return traceInternal(this, 'cancelJob', attributes, async () => {
      const { reason, remove, cascade } = rule;
      const call = this[COMMANDS].startingParents((native) => native.cancel(id, reason, remove, cascade, Date.now()));
      const became = (await callAbout(this, id, call)) as CancelledState;
      if (became === 'signalled') await this.untilOver([id], rule.wait);
      return became;
    });
  }

  /** @param ms for how long to wait for them all */
  private async untilOver(ids: Iterable<string>, ms: number, signal?: AbortSignal): Promise<void> {
    if (ms === 0) return;
    const until = clock() + ms;
    for (const id of ids) {
      while (!OVER.includes(await this.getJobState(id))) {
        signal?.throwIfAborted();
        const left = until - clock();
        if (left <= 0) {
          throw Object.assign(new Error(`Job ${id} still runs ${ms} ms after it was cancelled`), {
            code: 'ERR_STILL_RUNNING',
          });
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(left, LOOK_MS)));
      }
    }
  }

  /**
   * Cancels jobs that match the filter and have not ended, as {@link cancelJob} does. The next jobs of schedulers stay, unless they run. An extension.
   * Cost: a step of a few milliseconds for 500 jobs that are looked at, or 250 that are cancelled; with `cascade` or `waitForEnd` for 100, and calls more for each
   * that has children.
   * @returns the number of jobs that were cancelled or signalled; children that the filter does not pick do not count
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason; Error with the code `ERR_STILL_RUNNING` when one runs
   *   for longer than `waitForEnd` says: what was cancelled by then stays so
   */
  async cancelJobs(filter: JobFilter, opts: CancelJobsOptions = {}): Promise<number> {
    requireFilter(filter);
    const { rule, others } = readCancelOptions(opts);
    const change = readChange(this, filter, others, CANCELLABLE);
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(filter) };
    return traceInternal(this, 'cancelJobs', attributes, async () => {
      const running = new Set<string>();
      const done = await changePicked(this[COMMANDS], ...change, cancelStep(rule, running), () => {});
      await this.untilOver(running, rule.wait, others.signal);
      return done;
    });
  }
}

/** @param running gets the ids of those that run, where they are waited for */
function cancelStep({ reason, remove, cascade, wait }: CancelRule, running: Set<string>): ChangeStep {
  if (!cascade && wait === 0) {
    return (native, { state, pick, place, room, now }) =>
      native.cancelPicked(state, pick, place, room, reason, remove, now);
  }
  // by their ids: what a job waits for is read before it is cancelled, and one that was told the same before is waited for as well
  return async (native, { state, pick, place, room, now }) => {
    const { jobs, ...step } = await native.findJobs(state, pick, place, Math.min(room, FAMILIES_A_STEP));
    const found = jobs.map(({ id }) => id);
    const became = await native.cancelNamed(found, reason, remove, cascade, now);
    // one that leaves its frame is found twice
    const ids = found.filter((id, at) => CHANGED.includes(became[at]) && !running.has(id));
    for (const [at, id] of found.entries()) if (became[at] === 'signalled') running.add(id);
    return { ...step, ids };
  };
}
