import type { Job, Queue } from 'bullmq';
import { until } from './waiting.js';

/** What became of the jobs of a test that goes on adding while something happens to the server. */
export class Ledger {
  /** Data of the jobs whose `add` resolved, by their ids. An id comes twice when the server has lost the first. */
  readonly acknowledged: { id: number; data: number }[] = [];
  /** How often each job's handler ran, by data. */
  readonly runs = new Map<number, number>();
  #made = 0;

  /** A processor. */
  readonly run = async ({ data }: Job): Promise<void> => {
    this.runs.set(data as number, (this.runs.get(data as number) ?? 0) + 1);
  };

  /** Adds jobs singly and in bulk while `happening` goes on, and for so many jobs before and behind. */
  async addWhile(queue: Queue, happening: () => Promise<unknown>, around = 500): Promise<void> {
    let left = Infinity;
    const add = async (size: number) => {
      while (left > 0) {
        left -= size;
        const jobs = Array.from({ length: size }, () => ({ name: 'job', data: this.#made++ }));
        const added = size === 1 ? [await queue.add('job', jobs[0]?.data)] : await queue.addBulk(jobs);
        for (const { id, data } of added) this.acknowledged.push({ id: Number(id), data: data as number });
      }
    };
    const adding = [add(1), add(1), add(10)];
    await until('jobs to be added', () => this.acknowledged.length >= around, 60_000);
    await happening();
    left = around;
    await Promise.all(adding);
  }

  /** Waits until nothing is left to do, and gives the data of the completed jobs by their ids. */
  async completed(queue: Queue): Promise<Map<number, number>> {
    const states = ['waiting', 'active', 'delayed', 'prioritized'] as const;
    const isIdle = async () => Object.values(await queue.getJobCounts(...states)).every((count) => count === 0);
    await until('all jobs to complete', isIdle, 60_000);
    const found = new Map<number, number>();
    for (let from = 0; ; from += 1_000) {
      const jobs = await queue.getCompleted(from, from + 999);
      for (const { id, data } of jobs) found.set(Number(id), data as number);
      if (jobs.length < 1_000) return found;
    }
  }

  /**
   * The jobs that were acknowledged and are not there. A server that is killed takes along what it had not told its
   * replica: the end of what it has acknowledged, and nothing before.
   */
  lost(completed: ReadonlyMap<number, number>): { count: number; isTheEnd: boolean } {
    const isThere = ({ id, data }: { id: number; data: number }) => completed.get(id) === data;
    const lost = this.acknowledged.filter((job) => !isThere(job));
    const firstId = Math.min(...lost.map(({ id }) => id));
    const later = this.acknowledged.findIndex((job) => job.id >= firstId && isThere(job));
    const last = this.acknowledged.findLastIndex((job) => !isThere(job));
    return { count: lost.length, isTheEnd: lost.length === 0 || later < 0 || last < later };
  }
}
