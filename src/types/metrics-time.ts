/**
 * Usual values of `metrics.maxDataPoints`, in minutes.
 * Source: BullMQ 6.7.0 `MetricsTime`, its `ONE_MONTH` (8 weeks) included.
 */
export enum MetricsTime {
  ONE_MINUTE = 1,
  FIVE_MINUTES = 5,
  FIFTEEN_MINUTES = 15,
  THIRTY_MINUTES = 30,
  ONE_HOUR = 60,
  ONE_WEEK = 10080,
  TWO_WEEKS = 20160,
  ONE_MONTH = 80640,
}
