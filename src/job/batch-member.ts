/** What is known of a job while a processor runs it together with others (`WorkerOptions.batch`). */
export interface BatchMember {
  /** All jobs of the batch, this one first: known of the job that the processor is given. */
  jobs: readonly object[] | undefined;
  readonly signal: AbortSignal | undefined;
  /** What the processor has said of this job alone. */
  said: { readonly result: unknown } | { readonly error: unknown } | undefined;
}

const members = new WeakMap<object, BatchMember>();

/** Undefined of a job that runs alone, or not at all. */
export function batchMember(job: object): BatchMember | undefined {
  return members.get(job);
}

export function enterBatch(job: object, member: BatchMember): void {
  members.set(job, member);
}

export function leaveBatch(job: object): void {
  members.delete(job);
}

/** @throws Error unless the job runs in a batch */
export function requireBatch(job: object, call: string): BatchMember {
  const member = members.get(job);
  if (!member) throw new Error(`${call} is for a job of a batch, while the processor of its worker runs it`);
  return member;
}
