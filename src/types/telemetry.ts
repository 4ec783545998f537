/* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's default: the context belongs to the telemetry library */

/** A telemetry library as BullMQ's `telemetry` option takes it. Source: BullMQ 6.7.0 `Telemetry`. */
export interface Telemetry<Context = any> {
  /** Makes spans. */
  tracer: Tracer<Context>;
  /** Carries contexts. */
  contextManager: ContextManager<Context>;
  /** Makes instruments; without it nothing is counted. */
  meter?: Meter;
}

/** Carries a context through asynchronous calls, and as text through the queue. */
export interface ContextManager<Context = any> {
  /** Calls `fn` within a context. */
  with<A extends (...args: any[]) => any>(context: Context, fn: A): ReturnType<A>;
  /** The context of the caller. */
  active(): Context;
  /** The empty context. */
  root?(): Context;
  /** A context as text, to be stored with a job. */
  getMetadata(context: Context): string;
  /** The context of such a text. */
  fromMetadata(activeContext: Context, metadata: string): Context;
}

/** Makes spans. */
export interface Tracer<Context = any> {
  /** Begins a span, below the one of `context`. */
  startSpan(name: string, options?: SpanOptions, context?: Context): Span;
}

/** Role of a span in a trace. */
export enum SpanKind {
  INTERNAL = 0,
  SERVER = 1,
  CLIENT = 2,
  PRODUCER = 3,
  CONSUMER = 4,
}

/** Options of `startSpan`. */
export interface SpanOptions {
  /** Role of the span. */
  kind: SpanKind;
}

/** One traced operation. */
export interface Span<Context = any> {
  /** A context in which this span is the active one. */
  setSpanOnContext(ctx: Context): Context;
  /** Sets an attribute of the span. */
  setAttribute(key: string, value: AttributeValue): void;
  /** Sets several attributes of the span. */
  setAttributes(attributes: Attributes): void;
  /** Records an event within the span. */
  addEvent(name: string, attributes?: Attributes): void;
  /** Records an error within the span. */
  recordException(exception: Exception, time?: Time): void;
  /** Ends the span. */
  end(): void;
}

/** Attributes of a span or a measurement. */
export interface Attributes {
  /** A value, by its name. */
  [attribute: string]: AttributeValue | undefined;
}

/** What an attribute may be. */
export type AttributeValue =
  | string
  | number
  | boolean
  | (null | undefined | string)[]
  | (null | undefined | number)[]
  | (null | undefined | boolean)[];

/** What `recordException` takes. */
export type Exception = string | ExceptionType;

/** An error, or what looks like one. */
export type ExceptionType = CodeException | MessageException | NameException;

interface CodeException {
  code: string | number;
  name?: string;
  message?: string;
  stack?: string;
}

interface MessageException {
  code?: string | number;
  name?: string;
  message: string;
  stack?: string;
}

interface NameException {
  code?: string | number;
  name: string;
  message?: string;
  stack?: string;
}

/** A point in time: epoch milliseconds, a date, or seconds and nanoseconds. */
export type Time = HighResolutionTime | number | Date;

type HighResolutionTime = [number, number];

/** Makes instruments. */
export interface Meter {
  /** Makes a counter. */
  createCounter(name: string, options?: MetricOptions): Counter;
  /** Makes a histogram. */
  createHistogram(name: string, options?: MetricOptions): Histogram;
  /** Makes a gauge. */
  createGauge(name: string, options?: MetricOptions): Gauge;
}

/** Options of an instrument. */
export interface MetricOptions {
  /** What it measures. */
  description?: string;
  /** The unit of its values. */
  unit?: string;
}

/** Counts what only increases. */
export interface Counter {
  /** Counts `value` more. */
  add(value: number, attributes?: Attributes): void;
}

/** Records the distribution of values. */
export interface Histogram {
  /** Records one value. */
  record(value: number, attributes?: Attributes): void;
}

/** Records a value that goes up and down. */
export interface Gauge {
  /** Records the current value. */
  record(value: number, attributes?: Attributes): void;
}
