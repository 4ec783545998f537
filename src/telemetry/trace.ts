import type { JobsOptions } from '../options/job.js';
import type { Attributes, Span, Telemetry } from '../types/telemetry.js';
import { SpanKind } from '../types/telemetry.js';
import { TelemetryAttributes } from './names.js';

/** Whose operations are traced: a queue, a worker. */
export interface Traced {
  readonly name: string;
  readonly opts: { telemetry?: Telemetry };
}

/** A span that is under way, and the context in which its operation runs. */
export interface OpenSpan {
  readonly span: Span;
  readonly context: unknown;
}

/**
 * Starts the span `<operation> <destination>`.
 * @param metadata of the producer that caused the operation, which becomes its parent
 */
export function openSpan(
  { name }: Traced,
  telemetry: Telemetry,
  kind: SpanKind,
  operation: string,
  destination: string,
  metadata?: string,
): OpenSpan {
  const { tracer, contextManager } = telemetry;
  const active: unknown = contextManager.active();
  const parent: unknown = metadata ? contextManager.fromMetadata(active, metadata) : undefined;
  const span = tracer.startSpan(destination ? `${operation} ${destination}` : operation, { kind }, parent);
  span.setAttributes({ [TelemetryAttributes.QueueName]: name, [TelemetryAttributes.QueueOperation]: operation });
  const around = kind === SpanKind.CONSUMER && parent ? parent : active;
  return { span, context: span.setSpanOnContext(around) };
}

/**
 * Runs an operation within a span; without telemetry it just runs. What it throws is recorded.
 * @param operate gets the span, and the metadata by which what it produces is told to belong to it
 */
export async function trace<T>(
  traced: Traced,
  kind: SpanKind,
  operation: string,
  destination: string,
  operate: (span?: Span, metadata?: string) => Promise<T> | T,
  sourceMetadata?: string,
): Promise<T> {
  const { telemetry } = traced.opts;
  if (!telemetry) return operate();
  const { span, context } = openSpan(traced, telemetry, kind, operation, destination, sourceMetadata);
  try {
    const metadata = telemetry.contextManager.getMetadata(context);
    return await telemetry.contextManager.with(context, () => operate(span, metadata));
  } catch (error) {
    span.recordException(error as Error);
    throw error;
  } finally {
    span.end();
  }
}

/** Runs an operation of a queue or worker within a span of its own that has these attributes. */
export function traceInternal<T>(
  traced: Traced,
  operation: string,
  attributes: Attributes,
  operate: () => Promise<T> | T,
  kind = SpanKind.INTERNAL,
): Promise<T> {
  return trace(traced, kind, operation, traced.name, (span) => {
    span?.setAttributes(attributes);
    return operate();
  });
}

/** What the end of a job's try is called, by what became of the job. */
const ENDS = { completed: 'complete', failed: 'fail', delayed: 'delay', retried: 'retry' } as const;

export type JobEnd = keyof typeof ENDS;

/**
 * A span, over at once, that tells how a job's try ended; only known when the engine has stored it.
 * @param error why that was not stored
 */
export function traceEnd(
  traced: Traced,
  job: { readonly id?: string; readonly name: string },
  became: JobEnd,
  error?: unknown,
): void {
  const { telemetry } = traced.opts;
  if (!telemetry) return;
  const { span } = openSpan(traced, telemetry, SpanKind.INTERNAL, ENDS[became], traced.name);
  span.setAttributes({ [TelemetryAttributes.JobName]: job.name, [TelemetryAttributes.JobId]: job.id });
  if (error !== undefined) span.recordException(error as Error);
  span.end();
}

/** The `telemetry` of a job that is one of many: what it brings itself comes first. */
export function telemetryOf(
  given: JobsOptions | undefined,
  metadata: string | undefined,
): JobsOptions['telemetry'] | undefined {
  const own = given?.telemetry;
  return own?.metadata || own?.omitContext || !metadata ? own : { ...own, metadata };
}
