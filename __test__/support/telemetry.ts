import { AsyncLocalStorage } from 'node:async_hooks';
import type {
  Attributes,
  ContextManager,
  Counter,
  Gauge,
  Histogram,
  MetricOptions,
  Span,
  SpanKind,
  Telemetry,
} from 'bullmq';

/** A context is the span that is under way, and the metadata it came from. */
export interface TestContext {
  span?: string;
  from?: string;
}

/** A span as it was told of. */
export interface TestSpan {
  name: string;
  kind: SpanKind | undefined;
  /** What its parent's context was. */
  parent: TestContext | undefined;
  /** The span in whose context it began. */
  within: string | undefined;
  attributes: Record<string, unknown>;
  events: [name: string, attributes: Attributes | undefined][];
  exceptions: string[];
  ended: number;
}

/** What an instrument was told. */
export interface TestMeasure {
  instrument: string;
  options: MetricOptions | undefined;
  value: number;
  attributes: Attributes | undefined;
}

/** A telemetry library that writes down everything it is told. */
export class TestTelemetry implements Telemetry<TestContext> {
  readonly spans: TestSpan[] = [];
  readonly measures: TestMeasure[] = [];
  private readonly storage = new AsyncLocalStorage<TestContext>();
  private readonly waiters: { is: (span: TestSpan) => boolean; resolve: (span: TestSpan) => void }[] = [];

  readonly tracer = {
    startSpan: (name: string, options?: { kind: SpanKind }, parent?: TestContext): Span<TestContext> => {
      const span: TestSpan = {
        name,
        kind: options?.kind,
        parent,
        within: this.contextManager.active().span,
        attributes: {},
        events: [],
        exceptions: [],
        ended: 0,
      };
      this.spans.push(span);
      return {
        setSpanOnContext: (context) => ({ ...context, span: name }),
        setAttribute: (key, value) => void (span.attributes[key] = value),
        setAttributes: (attributes) => void Object.assign(span.attributes, attributes),
        addEvent: (event, attributes) => void span.events.push([event, attributes]),
        recordException: (exception) => void span.exceptions.push((exception as Error).message),
        end: () => {
          span.ended++;
          for (const waiter of this.waiters) if (waiter.is(span)) waiter.resolve(span);
        },
      };
    },
  };

  readonly contextManager = {
    with: ((context: TestContext, fn: () => unknown) => this.storage.run(context, fn)) as ContextManager['with'],
    active: (): TestContext => this.storage.getStore() ?? {},
    root: (): TestContext => ({}),
    getMetadata: (context: TestContext): string => JSON.stringify(context),
    fromMetadata: (_active: TestContext, metadata: string): TestContext => ({ from: metadata }),
  };

  readonly meter = {
    createCounter: (name: string, options?: MetricOptions): Counter => ({
      add: (value, attributes) => this.measure(name, options, value, attributes),
    }),
    createHistogram: (name: string, options?: MetricOptions): Histogram => ({
      record: (value, attributes) => this.measure(name, options, value, attributes),
    }),
    createGauge: (name: string, options?: MetricOptions): Gauge => ({
      record: (value, attributes) => this.measure(name, options, value, attributes),
    }),
  };

  private measure(
    instrument: string,
    options: MetricOptions | undefined,
    value: number,
    attributes: Attributes | undefined,
  ): void {
    this.measures.push({ instrument, options, value, attributes });
  }

  /** The ended span of this name, as soon as there is one. */
  async ended(name: string, nth = 1): Promise<TestSpan> {
    const is = (span: TestSpan): boolean => span.name === name && span.ended > 0;
    for (;;) {
      const found = this.spans.filter(is)[nth - 1];
      if (found) return found;
      await new Promise<TestSpan>((resolve) => this.waiters.push({ is, resolve }));
    }
  }

  /** Names of the spans so far. */
  get names(): string[] {
    return this.spans.map(({ name }) => name);
  }
}
