import type { NativeQueueOptions, NativeWorkerOptions } from '../native/types.js';
import { engineGroupRules } from '../options/group.js';
import { readLimiter } from '../options/rate-limiter.js';
import { metricsMinutesOf, mostRunning, type ResolvedWorkerOptions } from '../options/worker.js';

/** Longest span the engine is given, in milliseconds: what users write as Infinity. */
const LONGEST_MS = 2 ** 31 - 1;

/** A worker's options as the engine takes them. */
export function engineOptions(
  target: NativeQueueOptions,
  id: string,
  opts: ResolvedWorkerOptions<unknown>,
): NativeWorkerOptions {
  const { name, maxStartedAttempts, removeOnComplete, removeOnFail } = opts;
  return {
    ...target,
    id,
    ...(name != null && { workerName: String(name) }),
    concurrency: mostRunning(opts),
    // how many jobs a call takes is known when it begins
    takesNoneAhead: opts.batch !== undefined,
    lockDuration: Math.min(opts.lockDuration, LONGEST_MS),
    lockRenewTime: Math.min(opts.lockRenewTime, LONGEST_MS),
    skipLockRenewal: Boolean(opts.skipLockRenewal),
    stalledInterval: Math.min(opts.stalledInterval, LONGEST_MS),
    maxStalledCount: Math.min(opts.maxStalledCount, LONGEST_MS),
    skipStalledCheck: Boolean(opts.skipStalledCheck),
    ...(maxStartedAttempts && { maxStartedAttempts }),
    drainDelay: Math.min(opts.drainDelay, LONGEST_MS / 1000),
    // as in BullMQ, 0 is no rule: all are kept
    ...(removeOnComplete && { removeOnComplete: JSON.stringify(removeOnComplete) }),
    ...(removeOnFail && { removeOnFail: JSON.stringify(removeOnFail) }),
    limiter: readLimiter(opts.limiter),
    ...engineGroupRules(opts.group, opts.batch?.groupAffinity),
    maximumRateLimitDelay: Math.min(Math.max(opts.maximumRateLimitDelay, 1), LONGEST_MS),
    metricsMinutes: metricsMinutesOf(opts.metrics),
    measuresLatency: Boolean(opts.metrics?.latency),
    measuresGroups: opts.metrics?.latency === 'groups',
  };
}
