/** Finished jobs a minute, newest first, as `queue.getMetrics` returns them. */
export interface Metrics {
  /** The counter behind the minutes. */
  meta: {
    /** Finished jobs since metrics are kept. */
    count: number;
    /** Time of the last minute that was counted, epoch milliseconds. */
    prevTS: number;
    /** `count` at that time. */
    prevCount: number;
  };
  /** Finished jobs of each minute. */
  data: number[];
  /** Minutes that there are, whatever range was asked for. */
  count: number;
}
