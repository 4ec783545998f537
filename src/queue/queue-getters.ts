import { AS_STORED } from '../job/members.js';
import { rank } from '../native/rank.js';
import { COMMANDS } from '../connection/members.js';
import type { Backend } from '../connection/backend.js';
import { pairs } from '../job/dependencies.js';
import type { Job } from '../job/job.js';
import { QueueBase } from './queue-base.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { GroupLatencyOptions, LatencyOptions } from '../options/latency.js';
import { MetricNames, TelemetryAttributes } from '../telemetry/names.js';
import type { JobJson } from '../types/job-json.js';
import type { JobState, JobType } from '../types/job-state.js';
import type { GroupLatency, QueueLatency } from '../types/latency.js';
import type { Metrics } from '../types/metrics.js';
import type { Meter } from '../types/telemetry.js';
import { countable, statesFor } from './counted-states.js';
import { latencyOf } from './latency.js';
import { prometheusText } from './prometheus.js';
import type { QueueMeta } from './queue-meta.js';

// A symbol, not a `#` name: a Proxy around a queue has no such, and a subclass may call its members what it likes.
const CLIENTS: unique symbol = Symbol('clients');

/** Meta fields that are numbers, as they are stored and as they are shown, in BullMQ's order. */
const META_NUMBERS = [
  ['concurrency', 'concurrency'],
  ['opts.maxLenEvents', 'maxLenEvents'],
  ['max', 'max'],
  ['duration', 'duration'],
  ['maxLength', 'maxLength'],
] as const;

/**
 * Reading a queue: its jobs, counts and settings.
 * Source: BullMQ 6.7.0 `QueueGetters`.
 */
export class QueueGetters<
  JobBase extends Job = Job,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueBase<B, ConnectionOptionsType> {
  /** The job of this id, or undefined when there is none. */
  getJob(jobId: string): Promise<JobBase | undefined> {
    return this.Job.fromId(this, jobId) as Promise<JobBase | undefined>;
  }

  /** The state the job is in, or `unknown` when there is none of this id. */
  async getJobState(jobId: string): Promise<JobState | 'unknown'> {
    return (await this[COMMANDS].native.getState(String(jobId))) as JobState | 'unknown';
  }

  /**
   * The jobs in the given states (all of them when none is named). The range counts within each state.
   * @param end inclusive; negative counts from the last job
   * @param asc oldest first; otherwise newest first
   */
  async getJobs(types?: JobType[] | JobType, start = 0, end = -1, asc = false): Promise<JobBase[]> {
    const wanted = countable(statesFor(typeof types === 'string' ? [types] : types));
    if (wanted.length === 0) return [];
    const { native } = this[COMMANDS];
    const asked = [wanted, rank(start), rank(end), Boolean(asc)] as const;
    // who puts a `getJob` of its own in the place of ours gives the jobs of lists, too
    if (this.getJob !== ownGetJob) {
      const jobs = await Promise.all((await native.getIds(...asked)).map((id) => this.getJob(id)));
      return jobs.filter((job) => job !== undefined);
    }
    const found = await native.getJobs(...asked);
    return found.map((job) => this.Job.fromNative(this, job) as unknown as JobBase);
  }

  /**
   * The ids of the jobs in the given states; see {@link getJobs}.
   * @throws (rejects) TypeError for states that are no array
   */
  async getRanges(types: JobType[], start = 0, end = 1, asc = false): Promise<string[]> {
    if (!Array.isArray(types)) throw new TypeError(`getRanges takes an array of states, not ${String(types)}`);
    const wanted = countable(new Set(types));
    return wanted.length === 0 ? [] : this[COMMANDS].native.getIds(wanted, rank(start), rank(end), Boolean(asc));
  }

  /** Waiting jobs, in the order in which they will be taken. */
  getWaiting(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['waiting'], start, end, true);
  }

  /** Jobs that wait for their children. */
  getWaitingChildren(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['waiting-children'], start, end, true);
  }

  /** Jobs that workers hold. */
  getActive(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['active'], start, end, true);
  }

  /** Delayed jobs, the next due first. */
  getDelayed(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['delayed'], start, end, true);
  }

  /** Waiting jobs that have a priority, the most urgent first. */
  getPrioritized(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['prioritized'], start, end, true);
  }

  /** Completed jobs, the latest first. */
  getCompleted(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['completed'], start, end, false);
  }

  /** Failed jobs, the latest first. */
  getFailed(start = 0, end = -1): Promise<JobBase[]> {
    return this.getJobs(['failed'], start, end, false);
  }

  /** Number of jobs in each of the given states (all of them when none is named), under the names asked for. */
  async getJobCounts(...types: JobType[]): Promise<{ [index: string]: number }> {
    const wanted = statesFor(types);
    const counted = countable(wanted);
    const { native } = this[COMMANDS];
    const schedulers = counted.includes('repeat') ? native.countSchedulers() : 0;
    const [counts, repeat] = await Promise.all([counted.length > 0 ? native.getCounts(counted) : [], schedulers]);
    const byType: { [index: string]: number } = {};
    for (const type of wanted) byType[String(type)] = 0;
    counted.forEach((type, i) => (byType[type] = type === 'repeat' ? repeat : (counts[i] ?? 0)));
    return byType;
  }

  /** Number of jobs in the given states together. */
  async getJobCountByTypes(...types: JobType[]): Promise<number> {
    const counts = await this.getJobCounts(...types);
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  }

  /** Number of jobs still to be processed: waiting, delayed, prioritized or waiting for children. */
  count(): Promise<number> {
    return this.getJobCountByTypes('waiting', 'delayed', 'prioritized', 'waiting-children');
  }

  /** Number of jobs in the waiting list by priority, for the given ones; 0: those without a priority. */
  async getCountsPerPriority(priorities: number[]): Promise<{ [index: string]: number }> {
    const wanted = [...new Set(priorities)];
    if (!wanted.every((priority) => Number.isFinite(Number(priority)))) {
      throw new RangeError('Priorities must be finite numbers');
    }
    const counts = await this[COMMANDS].native.getCountsPerPriority(wanted.map(Number));
    return Object.fromEntries(wanted.map((priority, i) => [priority, counts[i] ?? 0]));
  }

  /** Number of completed jobs that are kept. */
  getCompletedCount(): Promise<number> {
    return this.getJobCountByTypes('completed');
  }

  /** Number of failed jobs that are kept. */
  getFailedCount(): Promise<number> {
    return this.getJobCountByTypes('failed');
  }

  /**
   * Number of delayed jobs.
   * @param timestamp counts only jobs due before this time, epoch milliseconds
   */
  async getDelayedCount(timestamp?: number): Promise<number> {
    if (timestamp === undefined) return this.getJobCountByTypes('delayed');
    if (!Number.isSafeInteger(timestamp)) throw new Error('timestamp must be a safe integer in milliseconds');
    return this[COMMANDS].native.countDelayedBefore(timestamp);
  }

  /** Number of jobs that workers hold. */
  getActiveCount(): Promise<number> {
    return this.getJobCountByTypes('active');
  }

  /** Number of jobs in the waiting list that have a priority. */
  getPrioritizedCount(): Promise<number> {
    return this.getJobCountByTypes('prioritized');
  }

  /** Number of jobs in the waiting list that have no priority. */
  getWaitingCount(): Promise<number> {
    return this.getJobCountByTypes('waiting');
  }

  /** Number of jobs that wait for their children. */
  getWaitingChildrenCount(): Promise<number> {
    return this.getJobCountByTypes('waiting-children');
  }

  /** What is stored about the queue as a whole. */
  async getMeta(): Promise<QueueMeta> {
    const stored = new Map(await this[COMMANDS].native.getMeta());
    const numbers: QueueMeta = {};
    for (const [field, name] of META_NUMBERS) {
      const value = stored.get(field);
      if (stored.delete(field)) numbers[name] = Number(value);
    }
    const paused = stored.get('paused');
    stored.delete('paused');
    return { ...Object.fromEntries(stored), ...numbers, paused: paused !== undefined && paused !== '0' };
  }

  /** Most jobs that may be active at once over all workers; null when there is no limit. */
  async getGlobalConcurrency(): Promise<number | null> {
    return (await this.getMeta()).concurrency ?? null;
  }

  /** Most activations in a window of `duration` milliseconds; null when there is no limit. */
  async getGlobalRateLimit(): Promise<{ max: number; duration: number } | null> {
    const { max, duration } = await this.getMeta();
    return max !== undefined && duration !== undefined ? { max, duration } : null;
  }

  /** Most jobs that may wait, as `count()` counts them; null when there is no limit. */
  async getMaxLength(): Promise<number | null> {
    return (await this.getMeta()).maxLength ?? null;
  }

  /**
   * Rows of a job's log.
   * @param asc oldest first, with the range counted from the oldest; otherwise newest first
   */
  async getJobLogs(jobId: string, start = 0, end = -1, asc = true): Promise<{ logs: string[]; count: number }> {
    return this[COMMANDS].native.getLogs(String(jobId), rank(start), rank(end), Boolean(asc));
  }

  /** Id of the job that owns a deduplication id, or null. */
  async getDeduplicationJobId(id: string): Promise<string | null> {
    return this[COMMANDS].native.getDeduplicationJobId(String(id));
  }

  /** @deprecated Use getDeduplicationJobId. */
  getDebounceJobId(id: string): Promise<string | null> {
    return this.getDeduplicationJobId(id);
  }

  /**
   * Milliseconds that the window of the rate limit still lasts. With `maxJobs`, or when there is a global rate limit: 0
   * while fewer jobs than that have started in it. Otherwise -2 when there is no window.
   */
  async getRateLimitTtl(maxJobs?: number): Promise<number> {
    return this[COMMANDS].native.limitLeft(maxJobs ? String(maxJobs) : undefined);
  }

  // ---- Figures and clients

  /**
   * The numbers of {@link getJobCounts}, which are also recorded by the telemetry's meter, if there is one, as the gauge
   * `bullmq.queue.jobs`.
   */
  async recordJobCountsMetric(...types: JobType[]): Promise<{ [index: string]: number }> {
    const counts = await this.getJobCounts(...types);
    // one written for older versions has no gauges
    const meter: Partial<Meter> | undefined = this.opts.telemetry?.meter;
    const gauge = meter?.createGauge?.(MetricNames.QueueJobsCount, {
      description: 'Number of jobs in the queue by state',
      unit: '{jobs}',
    });
    for (const [state, count] of Object.entries(counts)) {
      gauge?.record(count, {
        [TelemetryAttributes.QueueName]: this.name,
        [TelemetryAttributes.QueueJobsState]: state,
      });
    }
    return counts;
  }

  /**
   * Finished jobs a minute, as counted by workers with the option `metrics`, the newest minute first.
   * @param start first minute, 0 is the newest
   * @param end last minute, included; negative counts from the oldest
   */
  async getMetrics(type: 'completed' | 'failed', start = 0, end = -1): Promise<Metrics> {
    const range = [rank(start), rank(end)] as const;
    const { count, prevTs, prevCount, data, minutes } = await this[COMMANDS].native.getMetrics(String(type), ...range);
    return { meta: { count, prevTS: prevTs, prevCount }, data, count: minutes };
  }

  /**
   * How late the queue is, or a group: for how long jobs wait now, and, by workers with the option `metrics.latency`, how long those took that ended in a span of time. Not
   * in BullMQ.
   * @throws (rejects) TypeError that names the option that is wrong
   */
  async getLatency(options: GroupLatencyOptions): Promise<GroupLatency>;
  async getLatency(options?: LatencyOptions): Promise<QueueLatency>;
  async getLatency(options: Partial<GroupLatencyOptions> = {}): Promise<QueueLatency | GroupLatency> {
    return latencyOf(this[COMMANDS].native, options, Date.now());
  }

  /**
   * The numbers of jobs in each state and of all jobs that ended, as Prometheus reads them. The latter are those that
   * workers with the option `metrics` counted. Where workers have the option `metrics.latency`, the age of the oldest job that could start as well, and histograms of how
   * long jobs wait and run.
   * @param globalVariables labels that every line is given
   */
  async exportPrometheusMetrics(globalVariables?: Record<string, string>): Promise<string> {
    const { native } = this[COMMANDS];
    const [counts, completed, failed, latency] = await Promise.all([
      this.getJobCounts(),
      this.getMetrics('completed'),
      this.getMetrics('failed'),
      native.getLatencySoFar(),
    ]);
    const oldest = latency && (await native.oldestMs(Date.now()));
    return prometheusText({ queue: this.name, ...globalVariables }, { counts, completed, failed, oldest, latency });
  }

  /**
   * The connected workers of this queue, as the server's `CLIENT LIST` describes them; `name` is the queue's name,
   * `rawname` the connection's. Cost: a line of text for each client of the server.
   */
  getWorkers(): Promise<{ [index: string]: string }[]> {
    return this[CLIENTS](false);
  }

  /** Number of the connected workers of this queue; see {@link getWorkers}. */
  async getWorkersCount(): Promise<number> {
    return (await this.getWorkers()).length;
  }

  /**
   * The connected `QueueEvents` of this queue; see {@link getWorkers}.
   * @deprecated as in BullMQ
   */
  getQueueEvents(): Promise<{ [index: string]: string }[]> {
    return this[CLIENTS](true);
  }

  /** @internal */
  async [CLIENTS](events: boolean): Promise<{ [index: string]: string }[]> {
    try {
      const clients = (await this[COMMANDS].native.getClients(events)).map((fields) => new Map(fields));
      return clients.map((of) => ({ ...Object.fromEntries(of), name: this.name, rawname: of.get('name') ?? '' }));
    } catch (error) {
      // what BullMQ says of servers that do not know the command
      if (!/unknown command.*client/i.test((error as Error).message)) throw error;
      return [{ name: 'GCP does not support client list' }];
    }
  }

  /**
   * Children of a job by rank, which is of no order: their keys, with what those returned that completed, and the jobs
   * of those that exist.
   * @param end inclusive; -1 is the last child
   * @returns besides the number of all children of that type
   */
  async getDependencies(
    parentId: string,
    type: 'processed' | 'pending',
    start: number,
    end: number,
  ): Promise<{
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's type: the results are of any type
    items: { id: string; v?: any; err?: string }[];
    jobs: JobJson[];
    total: number;
  }> {
    const kind = type === 'processed' ? 'processed' : 'unprocessed';
    const range = [rank(start), rank(end)] as const;
    const { values, jobs, total } = await this[COMMANDS].native.getChildRange(String(parentId), kind, ...range);
    const items =
      kind === 'processed'
        ? Object.entries(pairs(values, valueOf)).map(([id, v]) => ({ id, ...v }))
        : values.map((id) => ({ id }));
    return { items, jobs: jobs.map((job) => this.Job.plainFromNative(this, job)[AS_STORED]()), total };
  }
}

/** What a child returned, or why its text cannot be read. */
function valueOf(text: string): { v?: unknown; err?: string } {
  try {
    return { v: JSON.parse(text) as unknown };
  } catch (error) {
    return { err: (error as Error).message };
  }
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- compared, not called
const { getJob: ownGetJob } = QueueGetters.prototype;
