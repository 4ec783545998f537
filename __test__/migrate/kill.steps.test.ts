// The process that moves jobs is killed behind each of its steps: each job is then in exactly one of the two, as it was, and the next
// process goes on.
import { describe, expect, it } from 'vitest';
import type { Job, JobState, Queue } from 'bullmq';
import { Program } from '../support/program.js';
import { until } from '../support/waiting.js';
import { jobsOf, MAJORS, useBench } from './bench.js';

const LIMIT_MS = 300_000;
const HOUR = 3_600_000;
const BOTH = ['', '-b'] as const;
/** More than one step moves. */
const WAITING = 300;
const STATES: readonly JobState[] = ['waiting', 'prioritized', 'delayed', 'completed', 'failed', 'waiting-children'];

/** Moves the queues QUEUES in DIRECTION, as it was built, and is killed behind its first step that moves a job. */
const DYING = `
const { createRequire } = await import('node:module');
const require = createRequire(process.cwd() + '/package.json');
const { Queue } = require('./dist/cjs/index.js');
const { Mover } = require('./dist/cjs/tools/migrate/mover.js');
const { Returner } = require('./dist/cjs/tools/migrate/returner.js');
const connection = JSON.parse(process.env.CONNECTION);
const queues = JSON.parse(process.env.QUEUES).map((name) => new Queue(name, { connection, skipMetasUpdate: true }));
const onStep = () => mover.moved > 0 && process.kill(process.pid, 'SIGKILL');
const Way = process.env.DIRECTION === 'back' ? Returner : Mover;
const mover = new Way(queues, { gap: 1_000_000, onStep });
await mover.move();
await Promise.all(queues.map((queue) => queue.close()));
`;

describe.each(MAJORS)('killed behind each step, moving from $name', (major) => {
  const bench = useBench(major);

  /** Jobs in every state in which they move, in both queues. */
  async function fill(queue: Queue, other: Queue): Promise<void> {
    const flow = (name: string, children: object[]): object => ({ ...part(name), children });
    const part = (name: string, suffix = '', opts = {}): object => ({
      ...{ name, queueName: bench.name + suffix },
      opts: { jobId: name, ...opts },
    });
    const flows = bench.flows();
    await flows.add(flow('ended', [part('ended-child')]) as never);
    await queue.addBulk(['one', 'two', 'fails'].map((name) => ({ name, data: {} })));
    const worker = bench.worker(
      async (job: Job) => {
        await job.log(`row of ${job.name}`);
        if (job.name === 'fails') throw new Error('no');
        return { of: job.name };
      },
      { name: 'theirs' },
    );
    await until('all to end', async () => (await queue.getJobCountByTypes('completed', 'failed')) === 5);
    await worker.close();
    await flows.add(
      flow('root', [
        { ...flow('middle', [part('leaf', '-b'), part('later-leaf', '', { delay: HOUR })]), queueName: other.name },
        part('ranked-leaf', '', { priority: 2 }),
      ]) as never,
    );
    await queue.addBulk(Array.from({ length: WAITING }, (_, i) => ({ name: 'waits', data: { i } })));
    for (const priority of [3, 1]) await queue.add('ranked', {}, { priority });
    await other.add('owner', {}, { delay: HOUR, deduplication: { id: 'd', ttl: HOUR } });
    await queue.upsertJobScheduler('hourly', { pattern: '0 * * * *' }, { name: 'tick', data: { a: 1 } });
  }

  const each = <T>(of: (suffix: string) => Promise<T>): Promise<T[]> => Promise.all(BOTH.map(of));

  async function idsIn(queues: readonly Queue[]): Promise<string[]> {
    const found = await Promise.all(queues.map((queue) => queue.getJobs([...STATES])));
    return found.flatMap((jobs, i) => jobs.map(({ id }) => `${i} ${id}`));
  }

  /** Starts one process after the other, until one has nothing left to do; gives how many were killed. */
  async function moveByAndBy(direction: 'there' | 'back', all: readonly string[]): Promise<number> {
    const [theirs, own] = [BOTH.map((suffix) => bench.queue(suffix)), BOTH.map((suffix) => bench.target(suffix))];
    const env = { QUEUES: JSON.stringify(theirs.map(({ name }) => name)), DIRECTION: direction };
    for (let killed = 0; ; killed++) {
      const mover = Program.startText(DYING, { env });
      const { code, signal } = await mover.ended;
      expect([...(await idsIn(theirs)), ...(await idsIn(own))].sort()).toEqual(all);
      if (signal === 'SIGKILL') continue;
      expect([code, mover.errors]).toEqual([0, '']);
      return killed;
    }
  }

  it('leaves each job in exactly one of the two', { timeout: LIMIT_MS }, async () => {
    const [queue, other] = [bench.queue(), bench.queue('-b')];
    await fill(queue, other);
    const before = await each((suffix) => jobsOf(bench.queue(suffix)));
    expect(Object.keys(before[0]).sort()).toEqual([...STATES].sort());
    const all = (await idsIn([queue, other])).sort();
    const schedulers = await queue.getJobSchedulers();
    expect(schedulers).toHaveLength(1);

    // of the first queue: parents, ranked, two of the waiting list, delayed, failed, completed; of the second: parents, line, delayed
    expect(await moveByAndBy('there', all)).toBe(10);
    expect(await each((suffix) => jobsOf(bench.target(suffix)))).toEqual(before);
    expect([...(await bench.jobKeys()), ...(await bench.jobKeys('-b'))]).toEqual([]);
    expect(await bench.target('-b').getDeduplicationJobId('d')).toBe(before[1].delayed?.[0]?.id);
    expect(await (await bench.target().getJob('ended'))?.getChildrenValues()).toEqual({
      [`bull:${bench.name}:ended-child`]: { of: 'ended-child' },
    });

    expect(await moveByAndBy('back', all)).toBeGreaterThan(8);
    expect(await each((suffix) => jobsOf(bench.queue(suffix)))).toEqual(before);
    expect(await each((suffix) => jobsOf(bench.target(suffix)))).toEqual([{}, {}]);
    expect(await queue.getJobSchedulers()).toEqual(schedulers);
    expect(await other.getDeduplicationJobId('d')).toBe(before[1].delayed?.[0]?.id);
    expect(await (await queue.getJob('root'))?.getDependenciesCount()).toMatchObject({ unprocessed: 2 });
    expect(await (await other.getJob('middle'))?.getDependenciesCount()).toMatchObject({ unprocessed: 2 });
  });
});
