// Pins Job#removeChildDependency, and what a parent does that continued.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: flow.unlink', ({ lib }) => {
  const stage = useStage(lib);

  /** A parent with that many children, of which the first has completed if `done` is 1. */
  async function family(size: number, { done = 0 } = {}): Promise<Job> {
    const { job } = await stage.flowProducer().add({
      name: 'parent',
      queueName: stage.name('top'),
      children: Array.from({ length: size }, (_, i) => ({
        name: 'child',
        queueName: stage.name(),
        opts: { jobId: `c${i}` },
      })),
    });
    if (done === 0) return job;
    const hand = stage.worker(null);
    const child = await hand.getNextJob('token');
    await child?.moveToCompleted('value', 'token', false);
    return job;
  }

  const key = (i: number) => stage.childKey(`c${i}`);

  it('drops the child from what its parent waits for', async () => {
    const job = await family(2);
    const child = await fetchJob(stage.queue(), 'c0');
    expect(await child.removeChildDependency()).toBe(true);
    expect([child.parent, child.parentKey]).toEqual([undefined, undefined]);
    const stored = await fetchJob(stage.queue(), 'c0');
    expect([stored.parent, stored.parentKey]).toEqual([undefined, undefined]);
    expect(await job.getDependencies()).toMatchObject({ unprocessed: [key(1)] });
    expect(await job.getState()).toBe('waiting-children');
    expect(await child.getState()).toBe('waiting');
  });

  it('releases the parent when it was the last', async () => {
    const job = await family(1);
    const top = new EventLog(
      stage.worker(async (parent) => parent.getChildrenValues(), {}, 'top'),
      ['completed'],
    );
    expect(await (await fetchJob(stage.queue(), 'c0')).removeChildDependency()).toBe(true);
    expect((await top.get('completed'))[1]).toEqual({});
    expect(await job.getState()).toBe('completed');
    expect(await stage.queue().getJobState('c0')).toBe('waiting');
  });

  it('is false for a child that was waited for no more', async () => {
    const job = await family(2, { done: 1 });
    const child = await fetchJob(stage.queue(), 'c0');
    expect(await child.removeChildDependency()).toBe(false);
    expect(child.parentKey).toBe(stage.childKey(job.id, 'top'));
    expect(await job.getDependenciesCount()).toMatchObject({ processed: 1, unprocessed: 1 });
  });

  it('a child that lost its parent ends alone', async () => {
    const job = await family(2);
    await (await fetchJob(stage.queue(), 'c0')).removeChildDependency();
    const log = new EventLog(
      stage.worker(async () => 'value'),
      ['completed'],
    );
    await log.get('completed', 2);
    expect(await job.getChildrenValues()).toEqual({ [key(1)]: 'value' });
  });

  it('is refused to a job that is gone, and one whose parent is gone', async () => {
    const job = await family(2);
    const [first, second] = [await fetchJob(stage.queue(), 'c0'), await fetchJob(stage.queue(), 'c1')];
    await first.remove();
    const missing = await rejection(first.removeChildDependency());
    expect([missing.message, missing.code]).toEqual(['Missing key for job c0. removeChildDependency', -1]);
    await job.remove({ removeChildren: false });
    const orphan = await rejection(second.removeChildDependency());
    expect([orphan.message, orphan.code]).toEqual([
      `Missing key for parent job ${stage.childKey(job.id, 'top')}. removeChildDependency`,
      -5,
    ]);
  });

  it('is refused to a job that has no parent', async () => {
    const job = await stage.queue().add('alone', {});
    const error = await rejection(job.removeChildDependency());
    expect([error.message, error.code]).toEqual(['Missing key for parent job undefined. removeChildDependency', -5]);
  });

  it('removeUnprocessedChildren lets a parent end that continued', async () => {
    stage.worker(async () => {
      throw new Error('bad');
    });
    const top = new EventLog(
      stage.worker(
        async (job) => {
          await job.removeUnprocessedChildren();
          return job.getDependencies();
        },
        {},
        'top',
      ),
      ['completed'],
    );
    await stage.flowProducer().add({
      name: 'parent',
      queueName: stage.name('top'),
      children: [
        { name: 'bad', queueName: stage.name(), opts: { jobId: 'bad', continueParentOnFailure: true } },
        { name: 'later', queueName: stage.name(), opts: { jobId: 'later', delay: 60_000 } },
      ],
    });
    expect((await top.get('completed'))[1]).toEqual({
      processed: {},
      unprocessed: [],
      ignored: { [stage.childKey('bad')]: 'bad' },
      failed: [],
    });
    expect(await stage.queue().getJob('later')).toBeUndefined();
  });
});
