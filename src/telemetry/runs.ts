import type { JobsOptions } from '../options/job.js';
import { SpanKind, type Attributes, type Telemetry } from '../types/telemetry.js';
import { recordJob, recordWait } from './job-metrics.js';
import { TelemetryAttributes } from './names.js';
import { openSpan, traceEnd, type JobEnd, type OpenSpan, type Traced } from './trace.js';

/** The worker, which emits the ends of its jobs. */
interface TracedWorker extends Traced {
  readonly opts: Traced['opts'] & { metrics?: { latency?: boolean | 'groups' } };
  emit(event: string, ...args: unknown[]): boolean;
}

/** What is told of a job. */
interface TracedJob {
  readonly id?: string;
  readonly name: string;
  readonly opts: JobsOptions;
  readonly attemptsMade: number;
  readonly failedReason: string;
  readonly processedOn?: number;
  readonly finishedOn?: number;
}

/** Spans and figures of the jobs a worker runs: `process` from the start until its end is stored, and that end. */
export class TracedRuns {
  private readonly open = new WeakMap<TracedJob, OpenSpan>();
  /** Where that is measured: from when on jobs that were taken could start, epoch ms; undefined: nobody knows. */
  readonly ready: WeakMap<TracedJob, number | undefined> | undefined;

  constructor(
    private readonly worker: TracedWorker,
    private readonly telemetry: Telemetry,
    private readonly attributes: Attributes,
  ) {
    this.ready = telemetry.meter && worker.opts.metrics?.latency ? new WeakMap() : undefined;
  }

  /** The job starts: tells for how long it has waited. */
  started(job: TracedJob): void {
    const since = this.ready?.get(job);
    if (since !== undefined) recordWait(this.worker, job, since);
  }

  /** Runs the job's processor in the context of its span. */
  run<T>(job: TracedJob, process: () => T): T {
    return this.telemetry.contextManager.with(this.begin(job).context, process);
  }

  /** Opens the job's span; by itself for a job that fails without being run. */
  begin(job: TracedJob): OpenSpan {
    const metadata = job.opts.telemetry?.metadata;
    const opened = openSpan(this.worker, this.telemetry, SpanKind.CONSUMER, 'process', this.worker.name, metadata);
    this.open.set(job, opened);
    opened.span.setAttributes({
      ...this.attributes,
      [TelemetryAttributes.JobId]: job.id,
      [TelemetryAttributes.JobName]: job.name,
    });
    return opened;
  }

  /** The engine has stored the job's end: `completed` or `failed` is emitted in the context of its span, which ends then. */
  stored(job: TracedJob, became: JobEnd, value: unknown): void {
    recordJob(this.worker, job, became);
    this.within(job, () => {
      traceEnd(this.worker, job, became);
      this.tell(job, became, value);
    });
    this.end(job);
  }

  /** As {@link stored}, of a job whose `moveToCompleted` or `moveToFailed` has had a span of its own. */
  told(job: TracedJob, became: JobEnd, value: unknown): void {
    this.within(job, () => this.tell(job, became, value));
    this.end(job);
  }

  /** Calls in the context of the job's span. */
  within<T>(job: TracedJob, call: () => T): T {
    const { contextManager } = this.telemetry;
    return contextManager.with(this.open.get(job)?.context ?? contextManager.active(), call);
  }

  private tell(job: TracedJob, became: JobEnd, value: unknown): void {
    this.worker.emit(became === 'completed' ? 'completed' : 'failed', job, value, 'active');
    const span = this.open.get(job)?.span;
    if (became === 'completed') {
      span?.addEvent('job completed', { [TelemetryAttributes.JobResult]: JSON.stringify(value) });
    } else {
      span?.addEvent('job failed', { [TelemetryAttributes.JobFailedReason]: job.failedReason });
    }
    span?.setAttributes({ [TelemetryAttributes.JobAttemptsMade]: job.attemptsMade });
  }

  /** The job's end could not be made, or was refused. */
  erred(job: TracedJob, error: unknown): void {
    this.open.get(job)?.span.recordException(error as Error);
  }

  /** The job went back in the waiting list because of a rate limit. */
  limited(job: TracedJob): void {
    this.end(job);
    recordJob(this.worker, job, 'waiting');
  }

  /** Jobs of lost workers are back in the waiting list. */
  stalled(ids: string[]): void {
    const { span } = openSpan(
      this.worker,
      this.telemetry,
      SpanKind.INTERNAL,
      'moveStalledJobsToWait',
      this.worker.name,
    );
    span.setAttributes({ ...this.attributes, [TelemetryAttributes.WorkerStalledJobs]: ids });
    for (const id of ids) span.addEvent('job stalled', { [TelemetryAttributes.JobId]: id });
    span.end();
  }

  /** The run is over, and nothing more is told of it. */
  end(job: TracedJob): void {
    const opened = this.open.get(job);
    if (!opened) return;
    this.open.delete(job);
    opened.span.setAttributes({
      [TelemetryAttributes.JobAttemptFinishedTimestamp]: job.finishedOn || Date.now(),
      [TelemetryAttributes.JobProcessedTimestamp]: job.processedOn,
    });
    opened.span.end();
  }
}
