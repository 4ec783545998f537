import { COMMANDS } from '../connection/members.js';
import type { Backend } from '../connection/backend.js';
import type { Job } from '../job/job.js';
import { rank } from '../native/rank.js';
import type { NativeListedGroup } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import { checkCount, checkGroupId, checkWeight } from '../options/group.js';
import type { GroupLimit } from '../options/group.js';
import { checkExpireTime } from '../options/rate-limiter.js';
import type { GroupStatus, GroupWithCount, GroupWithStatus } from '../types/group.js';
import { QueueGetters } from './queue-getters.js';

/** The statuses of groups, in the order in which they are listed. */
const STATUSES: GroupStatus[] = ['waiting', 'limited', 'maxed', 'paused'];

/** Groups that are asked for at once. */
const GROUPS_A_STEP = 1000;
/** No group is between them. */
const NO_RANKS = [1, 0] as const;

// A symbol, not a `#` name: a Proxy around a queue has no such, and a subclass may call its members what it likes.
const LIST_GROUPS: unique symbol = Symbol('list groups');

/**
 * Groups of a queue: jobs that share `opts.group.id`. They are served in turns. A group is there as long as jobs wait in it; what was set for it stays until it is
 * removed. Not in BullMQ; the names are those of its paid edition.
 */
export class QueueGroups<
  JobBase extends Job = Job,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueGetters<JobBase, B, ConnectionOptionsType> {
  // ---- What is set for a group

  /**
   * Keeps workers from starting jobs of a group, until `resumeGroup()`. Jobs under way go on, and jobs may be added. A group without jobs stays paused, too.
   * @returns false when it was paused already
   */
  async pauseGroup(groupId: string): Promise<boolean> {
    checkGroupId(groupId);
    return this[COMMANDS].native.pauseGroup(groupId, true);
  }

  /** @returns false when it was not paused */
  async resumeGroup(groupId: string): Promise<boolean> {
    checkGroupId(groupId);
    return this[COMMANDS].starting((native) => native.pauseGroup(groupId, false));
  }

  /** Whether the group is paused. */
  async isGroupPaused(groupId: string): Promise<boolean> {
    return (await this.getGroupStatus(groupId)) === 'paused';
  }

  /**
   * Sets how many jobs of a group may run at once, over all workers; it comes before the worker option `group.concurrency`, and needs none.
   * @throws (rejects) RangeError unless it is a whole number of at least 1
   */
  async setGroupConcurrency(groupId: string, concurrency: number): Promise<void> {
    checkGroupId(groupId);
    checkCount(concurrency, 'The concurrency of a group');
    await this[COMMANDS].starting((native) => native.setGroupConcurrency(groupId, concurrency));
  }

  /** What `setGroupConcurrency` has set; undefined: nothing. */
  async getGroupConcurrency(groupId: string): Promise<number | undefined> {
    checkGroupId(groupId);
    return (await this[COMMANDS].native.getGroup(groupId)).concurrency;
  }

  /** @returns false when none was set */
  async removeGroupConcurrency(groupId: string): Promise<boolean> {
    checkGroupId(groupId);
    return this[COMMANDS].starting((native) => native.setGroupConcurrency(groupId));
  }

  /**
   * Sets how many jobs of a group may start in a window of time, over all workers; it comes before the worker option `group.limit`, and needs none.
   * @param duration of a window, in milliseconds
   * @throws (rejects) RangeError unless both are whole numbers of at least 1
   */
  async setGroupRateLimit(groupId: string, max: number, duration: number): Promise<void> {
    checkGroupId(groupId);
    checkCount(max, 'The rate limit of a group');
    checkCount(duration, "The duration of a group's rate limit");
    await this[COMMANDS].starting((native) => native.setGroupLimit(groupId, max, duration));
  }

  /** What `setGroupRateLimit` has set; undefined: nothing. */
  async getGroupRateLimit(groupId: string): Promise<GroupLimit | undefined> {
    checkGroupId(groupId);
    const { max, duration } = await this[COMMANDS].native.getGroup(groupId);
    return max !== undefined && duration !== undefined ? { max, duration } : undefined;
  }

  /** @returns false when none was set */
  async removeGroupRateLimit(groupId: string): Promise<boolean> {
    checkGroupId(groupId);
    return this[COMMANDS].starting((native) => native.setGroupLimit(groupId));
  }

  /**
   * Starts no job of a group for a while, whatever its limits: as `worker.rateLimitGroup`. 0 lifts the limit that it meets now.
   * @param expireTimeMs milliseconds
   */
  async rateLimitGroup(groupId: string, expireTimeMs: number): Promise<void> {
    checkGroupId(groupId);
    const ms = expireTimeMs === 0 ? 0 : checkExpireTime(expireTimeMs);
    await this[COMMANDS].starting((native) => native.limitGroup(groupId, ms));
  }

  /**
   * For how long the job of a group has waited that could have started first, in milliseconds; null: none could start now, as the group has none, or is paused, limited or
   * full. {@link getLatency} tells it, too.
   */
  async getGroupOldest(groupId: string): Promise<number | null> {
    checkGroupId(groupId);
    return (await this[COMMANDS].native.oldestMs(Date.now(), groupId)) ?? null;
  }

  /**
   * Milliseconds until the group may start jobs again; 0 when it may now.
   * @param maxJobs a limit of starts a window: 0 as well while fewer jobs have started in this one
   */
  async getGroupRateLimitTtl(groupId: string, maxJobs?: number): Promise<number> {
    checkGroupId(groupId);
    const { limitedMs, starts, windowMs, max } = await this[COMMANDS].native.getGroup(groupId);
    if (limitedMs > 0) return limitedMs;
    const most = maxJobs ?? max;
    return most !== undefined && starts >= most ? windowMs : 0;
  }

  /**
   * Sets how many turns a group has to one of another group.
   * @throws (rejects) RangeError unless it is a finite number above 0
   */
  async setGroupWeight(groupId: string, weight: number): Promise<void> {
    checkGroupId(groupId);
    checkWeight(weight, 'The weight of a group');
    await this[COMMANDS].starting((native) => native.setGroupWeight(groupId, weight));
  }

  /** What `setGroupWeight`, or a job's `group.weight`, has set; else 1. */
  async getGroupWeight(groupId: string): Promise<number> {
    checkGroupId(groupId);
    return (await this[COMMANDS].native.getGroup(groupId)).weight ?? 1;
  }

  /** @returns false when none was set */
  async removeGroupWeight(groupId: string): Promise<boolean> {
    checkGroupId(groupId);
    return this[COMMANDS].starting((native) => native.setGroupWeight(groupId));
  }

  /**
   * Removes the jobs that wait in a group, what was set for it, and what `getLatency` knows of it. Jobs that run go on, and delayed ones join the group anew when they are due.
   * Cost: a step for 500 jobs.
   */
  async deleteGroup(groupId: string): Promise<void> {
    checkGroupId(groupId);
    await this[COMMANDS].native.deleteGroup(groupId);
  }

  /** `deleteGroup` for every group that has jobs. */
  async deleteGroups(): Promise<void> {
    for (;;) {
      const { groups } = await this[COMMANDS].native.listGroups(STATUSES, 0, GROUPS_A_STEP - 1);
      if (groups.length === 0) return;
      for (const { id } of groups) await this.deleteGroup(id);
    }
  }

  // ---- Reading groups

  /** @internal Groups of these ranks, a thousand at a time: those that come or go meanwhile may be there twice or not. */
  async [LIST_GROUPS](statuses: GroupStatus[], start: number, end: number): Promise<NativeListedGroup[]> {
    const { native } = this[COMMANDS];
    const { counts } = await native.listGroups(statuses, ...NO_RANKS);
    const all = counts.reduce((sum, count) => sum + count, 0);
    const [from, to] = [rank(start), rank(end)].map((at) => (at < 0 ? all + at : at));
    const found: NativeListedGroup[] = [];
    for (let at = Math.max(from, 0); at <= Math.min(to, all - 1); at += GROUPS_A_STEP) {
      const last = Math.min(at + GROUPS_A_STEP - 1, to);
      found.push(...(await native.listGroups(statuses, at, last)).groups);
    }
    return found;
  }

  /**
   * The groups that have jobs, those whose turn comes next first, then the limited, the maxed and the paused ones.
   * @param end inclusive; negative counts from the last one
   */
  async getGroups(start = 0, end = -1): Promise<GroupWithStatus[]> {
    const groups = await this[LIST_GROUPS](STATUSES, start, end);
    return groups.map(({ id, status }) => ({ id, status: status as GroupStatus }));
  }

  /** The groups of one status, each with the number of jobs that wait in it; see {@link getGroups}. */
  async getGroupsByStatus(status: GroupStatus, start = 0, end = -1): Promise<GroupWithCount[]> {
    if (!STATUSES.includes(status)) throw new TypeError(`There is no group status ${String(status)}`);
    const groups = await this[LIST_GROUPS]([status], start, end);
    return groups.map(({ id, jobs }) => ({ id, count: jobs }));
  }

  /** Number of groups that have jobs. */
  async getGroupsCount(): Promise<number> {
    const counts = await this.getGroupsCountByStatus();
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  }

  /** Number of groups, not of jobs, by status. */
  async getGroupsCountByStatus(): Promise<Record<GroupStatus, number>> {
    const { counts } = await this[COMMANDS].native.listGroups(STATUSES, ...NO_RANKS);
    return Object.fromEntries(STATUSES.map((status, i) => [status, counts[i] ?? 0])) as Record<GroupStatus, number>;
  }

  /** How a group stands; undefined when it has no jobs, and nothing keeps it from starting some. */
  async getGroupStatus(groupId: string): Promise<GroupStatus | undefined> {
    checkGroupId(groupId);
    return (await this[COMMANDS].native.getGroup(groupId)).status as GroupStatus | undefined;
  }

  /**
   * The jobs that wait in a group, in the order in which they will start.
   * @param end inclusive; negative counts from the last job
   */
  async getGroupJobs(groupId: string, start = 0, end = -1): Promise<JobBase[]> {
    checkGroupId(groupId);
    const found = await this[COMMANDS].native.getJobs([`group:${groupId}`], rank(start), rank(end), true);
    return found.map((job) => this.Job.fromNative(this, job) as unknown as JobBase);
  }

  /** Number of jobs that wait in a group. */
  async getGroupJobsCount(groupId: string): Promise<number> {
    checkGroupId(groupId);
    return (await this[COMMANDS].native.getGroup(groupId)).jobs;
  }

  /** Number of jobs that wait in groups, over all of them. All are counted at once: a limit has no effect. */
  async getGroupsJobsCount(_limit?: number): Promise<number> {
    return this[COMMANDS].native.countGrouped();
  }

  /** Number of jobs of a group that run. */
  async getGroupActiveCount(groupId: string): Promise<number> {
    checkGroupId(groupId);
    return (await this[COMMANDS].native.getGroup(groupId)).active;
  }

  /** Number of jobs that wait in a group, by `group.priority`, for the given ones; 0: those without one. */
  async getCountsPerPriorityForGroup(groupId: string, priorities: number[]): Promise<{ [index: string]: number }> {
    checkGroupId(groupId);
    const wanted = [...new Set(priorities)];
    if (!wanted.every((priority) => Number.isFinite(Number(priority)))) {
      throw new RangeError('Priorities must be finite numbers');
    }
    const counts = await this[COMMANDS].native.getCountsPerPriority(wanted.map(Number), groupId);
    return Object.fromEntries(wanted.map((priority, i) => [priority, counts[i] ?? 0]));
  }
}
