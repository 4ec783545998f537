/** What is stored about a queue as a whole. */
export interface QueueMeta {
  /** Most jobs that may be active at once over all workers. */
  concurrency?: number;
  /** Most activations in one rate-limit window. */
  max?: number;
  /** Length of the rate-limit window in milliseconds. */
  duration?: number;
  /** Most jobs that may wait. */
  maxLength?: number;
  /** Approximate cap of the event stream. */
  maxLenEvents?: number;
  /** Whether `queue.pause()` is in force. */
  paused?: boolean;
  /** Who wrote the meta. */
  version?: string;
}
