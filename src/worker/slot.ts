import type { Job } from '../job/job.js';

/** What runs the jobs of slots. Both ends answer whether the slot is to run its next job now. */
interface SlotRunner {
  run(slot: Slot): void;
  completed(slot: Slot, value: unknown): boolean;
  failed(slot: Slot, error: unknown): boolean;
}

/** Hears of a job that runs nowhere any more. */
const NOBODY: SlotRunner = { run: () => {}, completed: () => false, failed: () => false };

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
    private runner: SlotRunner,
    readonly number: string,
  ) {
    this.onFulfilled = (value) => {
      if (this.runner.completed(this, value)) this.runner.run(this);
    };
    this.onRejected = (error) => {
      if (this.runner.failed(this, error)) this.runner.run(this);
    };
  }

  /** Its job is given back while its handler runs: of what that does nothing is heard any more. */
  abandon(): void {
    this.job = undefined;
    this.runner = NOBODY;
  }
}
