import { performance } from 'node:perf_hooks';
import type { Server } from './server.js';

export type Metric =
  | 'jobsPerSecond'
  | 'megabytesPerSecond'
  | 'roundTrips'
  | 'redisCommands'
  | 'recordedP50Ms'
  | 'recordedP99Ms'
  | 'idleNodeMillis'
  | 'idleRedisMillis'
  | 'idleCommands'
  | 'idleCommandsMinute'
  | 'idleRequestsMinute'
  | 'connections'
  | 'processMegabytes'
  | 'nodeCpuMicros'
  | 'redisCpuMicros'
  | 'latencyP50Ms'
  | 'latencyP90Ms'
  | 'latencyP99Ms'
  | 'latencyP999Ms'
  | 'latencyLastMs'
  | 'burstMs'
  | 'busiestJobs'
  | 'bytesPerJob';

/** The metrics of a scenario that moves as many jobs as it can. */
export const throughputMetrics: readonly Metric[] = ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'];

/** What one run of one scenario on one side measured. */
export interface Sample {
  /** Jobs that were measured, warm-up jobs left out. */
  readonly jobs: number;
  /** How long the clock ran. */
  readonly seconds: number;
  readonly values: Partial<Record<Metric, number>>;
}

interface Reading {
  readonly wallMs: number;
  readonly node: NodeJS.CpuUsage;
  /** Asked for at the same moment as the rest is read; the server answers within its next event loop turn. */
  readonly redisMicros: Promise<number>;
}

/**
 * Wall time, CPU of this process (user and system, all threads, hence a native engine's too) and CPU of the server,
 * from `start` to `stop`. Several such stretches add up.
 */
export class Stopwatch {
  private readonly stretches: { readonly from: Reading; readonly to: Reading }[] = [];
  private running: Reading | undefined;

  constructor(private readonly server: Server) {}

  start(): void {
    this.running = this.read();
  }

  /** Does nothing when the watch is not running. */
  stop(): void {
    if (this.running) this.stretches.push({ from: this.running, to: this.read() });
    this.running = undefined;
  }

  /** The sample of a run in which `jobs` jobs were done while the watch ran. */
  async sample(jobs: number): Promise<Sample> {
    let seconds = 0;
    let nodeMicros = 0;
    let redisMicros = 0;
    for (const { from, to } of this.stretches) {
      seconds += (to.wallMs - from.wallMs) / 1e3;
      nodeMicros += to.node.user - from.node.user + to.node.system - from.node.system;
      redisMicros += (await to.redisMicros) - (await from.redisMicros);
    }
    return {
      jobs,
      seconds,
      values: {
        jobsPerSecond: jobs / seconds,
        nodeCpuMicros: nodeMicros / jobs,
        redisCpuMicros: redisMicros / jobs,
      },
    };
  }

  private read(): Reading {
    const redisMicros = this.server.cpuMicros();
    redisMicros.catch(() => undefined); // `sample` reports it, unless the run has failed before
    return { wallMs: performance.now(), node: process.cpuUsage(), redisMicros };
  }
}
