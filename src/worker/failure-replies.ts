/** Numbers a failure takes in `WorkerMessage.failures`. */
const STRIDE = 4;
const FAILED = 0;
const DELAYED = 1;

/**
 * What became of failed attempts, read one by one. They come in the order in which they were sent, without those that were
 * rejected.
 */
export class FailureReplies {
  private at = -STRIDE;

  constructor(private readonly layout: Float64Array) {}

  /** Goes on to the failure of this handle; false when there is none. */
  find(handle: number): boolean {
    do this.at += STRIDE;
    while (this.at < this.layout.length && this.layout[this.at] !== handle);
    return this.at < this.layout.length;
  }

  /** Whether the job failed for good. */
  get isFinal(): boolean {
    return this.layout[this.at + 1] === FAILED;
  }

  /** What followed the attempt. */
  get became(): 'failed' | 'delayed' | 'retried' {
    if (this.isFinal) return 'failed';
    return this.layout[this.at + 1] === DELAYED ? 'delayed' : 'retried';
  }

  /** Attempts that ended. */
  get attemptsMade(): number {
    return this.layout[this.at + 2];
  }

  /** Milliseconds before the next attempt; undefined when there is none, or no pause. */
  get delay(): number | undefined {
    return this.became === 'delayed' ? this.layout[this.at + 3] : undefined;
  }
}
