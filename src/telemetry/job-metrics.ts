import type { Attributes } from '../types/telemetry.js';
import { MetricNames, TelemetryAttributes } from './names.js';
import type { Traced } from './trace.js';

/** What is told of a job. */
interface MeasuredJob {
  readonly name: string;
  readonly processedOn?: number;
}

/** What became of a job, and the counter of such jobs. */
const COUNTERS = {
  completed: MetricNames.JobsCompleted,
  failed: MetricNames.JobsFailed,
  delayed: MetricNames.JobsDelayed,
  retried: MetricNames.JobsRetried,
  waiting: MetricNames.JobsWaiting,
  'waiting-children': MetricNames.JobsWaitingChildren,
} as const;

/** Not in BullMQ, and so not among {@link MetricNames}. */
const JOB_WAIT = 'chasquimq.job.wait';

/**
 * Tells the meter, if there is one, for how long a job that starts has waited.
 * @param since when it could start, epoch ms
 */
export function recordWait({ name, opts }: Traced, job: MeasuredJob, since: number): void {
  const description = 'Time from when a job could start until it did';
  const wait = opts.telemetry?.meter?.createHistogram(JOB_WAIT, { description, unit: 'ms' });
  wait?.record(Math.max((job.processedOn ?? Date.now()) - since, 0), {
    [TelemetryAttributes.QueueName]: name,
    [TelemetryAttributes.JobName]: job.name,
    [TelemetryAttributes.JobState]: 'active',
  });
}

/** Tells the meter, if there is one, what became of a job, and how long it ran. */
export function recordJob({ name, opts }: Traced, job: MeasuredJob, state: keyof typeof COUNTERS): void {
  const meter = opts.telemetry?.meter;
  if (!meter) return;
  const attributes: Attributes = {
    [TelemetryAttributes.QueueName]: name,
    [TelemetryAttributes.JobName]: job.name,
    [TelemetryAttributes.JobState]: state,
  };
  meter.createCounter(COUNTERS[state], { description: `Number of jobs ${state}`, unit: '1' }).add(1, attributes);
  if (!job.processedOn) return;
  const duration = meter.createHistogram(MetricNames.JobDuration, {
    description: 'Job processing duration',
    unit: 'ms',
  });
  duration.record(Date.now() - job.processedOn, attributes);
}
