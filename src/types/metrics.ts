/** Finished jobs a minute, newest first, as `queue.getMetrics` returns them. */
export interface Metrics {
  meta: {
    count: number;
    prevTS: number;
    prevCount: number;
  };
  data: number[];
  count: number;
}
