/** What else the machine does: above a floor nothing that was measured beside it is judged. */
import { readFileSync } from 'node:fs';
import os from 'node:os';

/** Load average over a minute, for each core, above which a judgement is not begun. */
export const LOAD_FLOOR = 0.5;
/** Part of all cores' time that others may take while it runs: other programs, and the host of a virtual machine. */
export const TAKEN_FLOOR = 0.15;

/** Seconds of work for each reading of the clock in /proc/stat. */
const TICK_SECONDS = 0.01;

export function loadPerCore(): number {
  return (os.loadavg()[0] ?? 0) / os.availableParallelism();
}

interface Reading {
  readonly wallSeconds: number;
  /** Of all programs, and stolen by the host; undefined where the system does not say. */
  readonly busySeconds: number | undefined;
  readonly ownSeconds: number;
}

/** @param serverSeconds CPU that the Redis server has spent, which is our doing */
export function readLoad(serverSeconds: number): Reading {
  const { user, system } = process.cpuUsage();
  return {
    wallSeconds: performance.now() / 1e3,
    busySeconds: busySeconds(),
    ownSeconds: (user + system) / 1e6 + serverSeconds,
  };
}

/** Part of the cores' time that others took between two readings; undefined where the system does not say. */
export function takenByOthers(from: Reading, to: Reading, cores = os.cpus().length): number | undefined {
  if (from.busySeconds === undefined || to.busySeconds === undefined) return undefined;
  const others = to.busySeconds - from.busySeconds - (to.ownSeconds - from.ownSeconds);
  return Math.max(others, 0) / ((to.wallSeconds - from.wallSeconds) * cores);
}

function busySeconds(): number | undefined {
  try {
    return parseBusy(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return undefined;
  }
}

/** `cpu user nice system idle iowait irq softirq steal ...` */
export function parseBusy(stat: string): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    stat.split('\n', 1)[0]?.split(/\s+/).map(Number) ?? [];
  return (user + nice + system + irq + softirq + steal) * TICK_SECONDS;
}
