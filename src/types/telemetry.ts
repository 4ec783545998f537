/* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's default: the context belongs to the telemetry library */

/** A telemetry library as BullMQ's `telemetry` option takes it. Source: BullMQ 6.7.0 `Telemetry`. */
export interface Telemetry<Context = any> {
  tracer: Tracer<Context>;
  contextManager: ContextManager<Context>;
  meter?: Meter;
}

/** Carries a context through asynchronous calls, and as text through the queue. */
export interface ContextManager<Context = any> {
  with<A extends (...args: any[]) => any>(context: Context, fn: A): ReturnType<A>;
  active(): Context;
  root?(): Context;
  getMetadata(context: Context): string;
  fromMetadata(activeContext: Context, metadata: string): Context;
}

/** Makes spans. */
export interface Tracer<Context = any> {
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

export interface SpanOptions {
  kind: SpanKind;
}

/** One traced operation. */
export interface Span<Context = any> {
  setSpanOnContext(ctx: Context): Context;
  setAttribute(key: string, value: AttributeValue): void;
  setAttributes(attributes: Attributes): void;
  addEvent(name: string, attributes?: Attributes): void;
  recordException(exception: Exception, time?: Time): void;
  end(): void;
}

export interface Attributes {
  [attribute: string]: AttributeValue | undefined;
}

export type AttributeValue =
  | string
  | number
  | boolean
  | (null | undefined | string)[]
  | (null | undefined | number)[]
  | (null | undefined | boolean)[];

export type Exception = string | ExceptionType;

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

export type Time = HighResolutionTime | number | Date;

type HighResolutionTime = [number, number];

/** Makes instruments. */
export interface Meter {
  createCounter(name: string, options?: MetricOptions): Counter;
  createHistogram(name: string, options?: MetricOptions): Histogram;
  createGauge(name: string, options?: MetricOptions): Gauge;
}

export interface MetricOptions {
  description?: string;
  unit?: string;
}

export interface Counter {
  add(value: number, attributes?: Attributes): void;
}

export interface Histogram {
  record(value: number, attributes?: Attributes): void;
}

export interface Gauge {
  record(value: number, attributes?: Attributes): void;
}
