import type { Telemetry } from '../types/telemetry.js';
import { SpanKind } from '../types/telemetry.js';
import { TelemetryAttributes } from './names.js';
import { openSpan, type OpenSpan } from './trace.js';

/** The span of one job of a flow, which is within that of its parent. */
export interface NodeSpan extends OpenSpan {
  readonly around: NodeSpan | undefined;
  /** By which the job's run is told to belong to it. */
  readonly metadata: string;
}

/** The spans of a call's flows: one for each job, that ends when all jobs are written. */
export class FlowSpans {
  private readonly open: NodeSpan[] = [];

  constructor(private readonly telemetry: Telemetry) {}

  start(queue: string, name: string, id: string, around: NodeSpan | undefined): NodeSpan {
    const { telemetry } = this;
    const { contextManager } = telemetry;
    const start = () => openSpan({ name: queue, opts: { telemetry } }, telemetry, SpanKind.PRODUCER, 'addNode', queue);
    const opened = around ? contextManager.with(around.context, start) : start();
    opened.span.setAttributes({ [TelemetryAttributes.JobName]: name, [TelemetryAttributes.JobId]: id });
    const span = { ...opened, around, metadata: contextManager.getMetadata(opened.context) };
    this.open.push(span);
    return span;
  }

  /** A job is refused, and with it those that would wait for it. */
  refuse(span: NodeSpan, error: unknown): void {
    for (let at: NodeSpan | undefined = span; at; at = at.around) at.span.recordException(error as Error);
  }

  end(): void {
    for (const { span } of this.open.splice(0)) span.end();
  }
}
