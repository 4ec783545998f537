import type { Job } from '../job/job.js';

/** What runs the jobs of slots. Both ends answer whether the slot is to run its next job now. */
interface SlotRunner {
  run(slot: Slot): void;
  completed(slot: Slot, value: unknown): boolean;
  failed(slot: Slot, error: unknown): boolean;
}

/** A place in which one job at a time runs. Its callbacks are made once, not once a job. */
export class Slot {
  job: Job | undefined = undefined;
  handle = 0;
  /** Token of its job, and the claim that the token names. */
  token = '';
  claim = 0;
  controller: AbortController | undefined = undefined;
  readonly onFulfilled: (value: unknown) => void;
  readonly onRejected: (error: unknown) => void;

  constructor(
    runner: SlotRunner,
    readonly number: string,
  ) {
    this.onFulfilled = (value) => {
      if (runner.completed(this, value)) runner.run(this);
    };
    this.onRejected = (error) => {
      if (runner.failed(this, error)) runner.run(this);
    };
  }
}
