import type { Backend } from '../connection/backend.js';
import { COMMANDS } from '../connection/members.js';
import type { Job } from '../job/job.js';
import { callAbout } from '../job/open-calls.js';
import {
  checkCancelOptions,
  type CancelJobOptions,
  type CancelJobsOptions,
  type CancelledState,
} from '../options/cancelling.js';
import type { ConnectionOptions } from '../options/connection.js';
import { requireFilter, type JobFilter } from '../options/job-filter.js';
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
    const { cascade = false, waitForEnd = false, ...others } = opts;
    const { reason, remove } = checkCancelOptions(others, { cascade, waitForEnd });
    const id = String(jobId);
    const attributes = { [TelemetryAttributes.JobId]: id, [TelemetryAttributes.JobOptions]: JSON.stringify(opts) };
    return traceInternal(this, 'cancelJob', attributes, async () => {
      const call = this[COMMANDS].startingParents((native) => native.cancel(id, reason, remove, cascade, Date.now()));
      const became = (await callAbout(this, id, call)) as CancelledState;
      if (became === 'signalled' && waitForEnd !== false) {
        await this.untilOver(id, waitForEnd === true ? Infinity : waitForEnd);
      }
      return became;
    });
  }

  private async untilOver(id: string, ms: number): Promise<void> {
    const until = clock() + ms;
    while (!OVER.includes(await this.getJobState(id))) {
      const left = until - clock();
      if (left <= 0) {
        throw Object.assign(new Error(`Job ${id} still runs ${ms} ms after it was cancelled`), {
          code: 'ERR_STILL_RUNNING',
        });
      }
      await new Promise((resolve) => setTimeout(resolve, Math.min(left, LOOK_MS)));
    }
  }

  /**
   * Cancels jobs that match the filter and have not ended, as {@link cancelJob} does. The next jobs of schedulers stay, unless they run. An extension.
   * Cost: a step of a few milliseconds for 500 jobs that are looked at, or 250 that are cancelled.
   * @returns the number of jobs that were cancelled or signalled
   * @throws (rejects) TypeError that names the field or option that cannot be; the signal's reason: what was cancelled by then stays so
   */
  async cancelJobs(filter: JobFilter, opts: CancelJobsOptions = {}): Promise<number> {
    requireFilter(filter);
    const { reason: why, remove: removes, ...others } = opts;
    const { reason, remove } = checkCancelOptions({ reason: why, remove: removes });
    const change = readChange(this, filter, others, CANCELLABLE);
    const attributes = { [TelemetryAttributes.QueueOptions]: JSON.stringify(filter) };
    return traceInternal(this, 'cancelJobs', attributes, () =>
      changePicked(this[COMMANDS], ...change, cancelStep(reason, remove), () => {}),
    );
  }
}

function cancelStep(reason: string, remove: boolean): ChangeStep {
  return (native, { state, pick, place, room, now }) =>
    native.cancelPicked(state, pick, place, room, reason, remove, now);
}
