import type { Job } from '../job/job.js';
import { lastValueOf, type ObservableLike } from '../job/observable.js';
import type { TracedRuns } from '../telemetry/runs.js';

/** What holds the signal of a run. There is none where its processor takes none. */
export interface SignalHolder {
  controller: AbortController | undefined;
}

/** Gives the last value of the observable that a processor gave for a job. */
export type Observe = (job: Job, observable: ObservableLike<unknown>, holder: SignalHolder) => Promise<unknown>;

/** Observes within the span of the run, if there is telemetry. Cancelling the job unsubscribes, also where the processor takes no signal. */
export function observeWithin(runs: TracedRuns | undefined): Observe {
  return (job, observable, holder) => {
    const { signal } = (holder.controller ??= new AbortController());
    const call = (): Promise<unknown> => lastValueOf(observable, signal);
    return runs ? runs.within(job, call) : call();
  };
}
