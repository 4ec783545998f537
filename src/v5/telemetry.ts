/** Telemetry as BullMQ 5 takes it: a meter may have no gauges. Source: BullMQ 5.81. */
import type { Meter as BaseMeter, Telemetry as BaseTelemetry } from '../types/telemetry.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- the default is BullMQ's: a context is of any type */

/** Makes what counts and measures. */
export interface Meter extends Omit<BaseMeter, 'createGauge'> {
  /** Makes a gauge. */
  createGauge?: BaseMeter['createGauge'];
}

/** Receives spans and metrics. */
export interface Telemetry<Context = any> extends Omit<BaseTelemetry<Context>, 'meter'> {
  /** Makes the instruments. */
  meter?: Meter;
}
