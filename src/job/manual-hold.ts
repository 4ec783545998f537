/** What is known of a job that a user has taken (`worker.getNextJob`). */
export interface ManualHold {
  /** Made when it is first asked for. */
  signalOf(job: object): AbortSignal;
  /** Nobody is told of the job any more. */
  release(): void;
}

const holds = new WeakMap<object, ManualHold>();

/** Undefined of a job that no user has taken. */
export function manualHold(job: object): ManualHold | undefined {
  return holds.get(job);
}

export function holdManually(job: object, hold: ManualHold): void {
  holds.set(job, hold);
}
