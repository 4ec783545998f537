// Flows whose jobs move at different times, and in part: each parent gets each child's outcome once.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { until } from '../support/waiting.js';
import { MAJORS, useBench } from './bench.js';

describe.each(MAJORS)('moving flows from $name', (major) => {
  const bench = useBench(major);

  function child(
    name: string,
    opts = {},
    suffix = '',
  ): { name: string; queueName: string; data: object; opts: object } {
    return { name, queueName: bench.name + suffix, data: {}, opts: { jobId: name, ...opts } };
  }

  it('moves parents of parents with their children, and finishes them here', async () => {
    await bench.flows().add({
      ...child('root'),
      children: [
        { ...child('middle', {}, '-b'), children: [child('leaf-1'), child('leaf-2', {}, '-b')] },
        child('leaf-3', { priority: 2 }),
      ],
    });
    const { accounts } = await bench.move({ compares: true }, ['', '-b']);
    expect(accounts.map(({ total, stays, compared, differ }) => [total, stays.size, compared, differ.size])).toEqual([
      [3, 0, 3, 0],
      [2, 0, 2, 0],
    ]);
    expect([...(await bench.jobKeys()), ...(await bench.jobKeys('-b'))]).toEqual([]);
    const processor = async (job: Job): Promise<unknown> => ({ of: job.id, children: await job.getChildrenValues() });
    bench.ownWorker(processor);
    bench.ownWorker(processor, {}, '-b');
    const target = bench.target();
    await until('the root to complete', async () => (await target.getJobState('root')) === 'completed');
    expect((await target.getJob('root'))?.returnvalue).toEqual({
      of: 'root',
      children: {
        [`bull:${bench.name}-b:middle`]: {
          of: 'middle',
          children: {
            [`bull:${bench.name}:leaf-1`]: { of: 'leaf-1', children: {} },
            [`bull:${bench.name}-b:leaf-2`]: { of: 'leaf-2', children: {} },
          },
        },
        [`bull:${bench.name}:leaf-3`]: { of: 'leaf-3', children: {} },
      },
    });
  });

  it('tells a parent that moved what became of children that BullMQ ran', async () => {
    await bench.flows().add({
      ...child('parent'),
      children: [
        child('done'),
        child('active-1', {}, '-b'),
        child('active-2', { ignoreDependencyOnFailure: true }, '-b'),
        child('waits'),
      ],
    });
    const [queue, other] = [bench.queue(), bench.queue('-b')];
    const first = bench.worker(async (job) => job.name, { concurrency: 1 });
    await until('one to complete', async () => (await queue.getCompletedCount()) > 0);
    await first.close();
    const ends: (() => void)[] = [];
    bench.worker(
      async (job) => {
        await new Promise<void>((resolve) => ends.push(resolve));
        if (job.name === 'active-2') throw new Error('not now');
        return job.name;
      },
      { concurrency: 2 },
      '-b',
    );
    await until('both to be active', () => ends.length === 2);
    const mover = await bench.move({}, ['', '-b']);
    expect(mover.accounts[0]?.openChildren).toBe(2);
    const target = bench.target();
    expect(await target.getJobState('parent')).toBe('waiting-children');
    bench.ownWorker(async (job) => ({
      values: await job.getChildrenValues(),
      failures: await job.getIgnoredChildrenFailures(),
    }));
    await until('the waiting child to complete', async () => (await target.getJobState('waits')) === 'completed');
    expect(await target.getJobState('parent')).toBe('waiting-children');
    ends.forEach((end) => end());
    await until('both to end', async () => (await other.getJobCountByTypes('completed', 'failed')) === 2);

    await mover.move();
    expect(mover.accounts[0]?.openChildren).toBe(0);
    await until('the parent to complete', async () => (await target.getJobState('parent')) === 'completed');
    const key = (id: string, suffix = ''): string => `bull:${bench.name}${suffix}:${id}`;
    const { values, failures } = (await target.getJob('parent'))?.returnvalue as { values: object; failures: object };
    expect(Object.keys(values).sort()).toEqual([key('active-1', '-b'), key('done'), key('waits')].sort());
    expect(failures).toEqual({ [key('active-2', '-b')]: 'not now' });
    expect([...(await bench.jobKeys()), ...(await bench.jobKeys('-b'))]).toEqual([]);
  });

  it.each([
    ['failParentOnFailure', 'failed'],
    ['continueParentOnFailure', 'completed'],
    ['removeDependencyOnFailure', 'completed'],
  ])('carries out %s for a child that BullMQ ran', async (policy, state) => {
    await bench.flows().add({ ...child('parent'), children: [child('child', { [policy]: true }, '-b')] });
    const fails: ((error: Error) => void)[] = [];
    bench.worker(() => new Promise<void>((_, reject) => fails.push(reject)), {}, '-b');
    const other = bench.queue('-b');
    await until('the child to be active', () => fails.length === 1);
    const mover = await bench.move({}, ['', '-b']);
    fails[0]?.(new Error('bad'));
    await until('the child to fail', async () => (await other.getFailedCount()) === 1);
    await mover.move();
    bench.ownWorker(async () => 'ran');
    const target = bench.target();
    await until('the parent to end', async () => ['failed', 'completed'].includes(await target.getJobState('parent')));
    expect(await target.getJobState('parent')).toBe(state);
  });

  it('leaves children whose parent is of a queue that does not move', async () => {
    await bench.flows().add({ ...child('parent', {}, '-b'), children: [child('child')] });
    const { accounts } = await bench.move();
    expect(accounts[0]?.stays).toEqual(new Map([['parent', ['child']]]));
    expect(await bench.queue().getWaitingCount()).toBe(1);
    const tried = await bench.move({ tries: true });
    expect(tried.accounts[0]?.stays).toEqual(new Map([['parent', ['child']]]));
    await bench.move({}, ['', '-b']);
    expect(await bench.target().getWaitingCount()).toBe(1);
  });

  it('keeps what is known of the children of a parent that ended', async () => {
    await bench.flows().add({ ...child('parent'), children: [child('one'), child('two')] });
    const queue = bench.queue();
    const worker = bench.worker(async (job) => job.name);
    await until('all to complete', async () => (await queue.getCompletedCount()) === 3);
    await worker.close();
    await bench.move();
    const parent = await bench.target().getJob('parent');
    const key = (id: string): string => `bull:${bench.name}:${id}`;
    expect(await parent?.getChildrenValues()).toEqual({ [key('one')]: 'one', [key('two')]: 'two' });
    expect((await bench.target().getJob('one'))?.parent).toMatchObject({
      id: 'parent',
      queueKey: `bull:${bench.name}`,
    });
  });
});
