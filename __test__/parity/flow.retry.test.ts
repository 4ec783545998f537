// Pins what retrying children and parents does to the flow.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { endChildren, familyOf } from '../support/flows.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const NONE = { processed: 0, unprocessed: 0, ignored: 0, failed: 0 };

describe.each(libraries)('$name: flow.retry', ({ lib }) => {
  const stage = useStage(lib);
  const key = (id: string) => stage.childKey(id);

  const flow = (kids: Record<string, JobsOptions>) => familyOf(stage, kids);

  /** Ends what waits in the queue of the children: a `bad...` fails the first time, the rest completes with the number of its start. */
  const end = (count: number) =>
    endChildren(
      stage,
      count,
      (job) => job.attemptsStarted,
      (job) => job.name.startsWith('bad') && job.attemptsStarted === 1,
    );

  it('a failed child that is retried and completes releases its parent', async () => {
    const { job } = await stage.flowProducer().add(flow({ bad: {} }));
    await end(1);
    const child = await fetchJob(stage.queue(), 'bad');
    await child.retry();
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 1 });
    expect(await job.getState()).toBe('waiting-children');
    await end(1);
    expect(await job.getState()).toBe('waiting');
    expect(await job.getChildrenValues()).toEqual({ [key('bad')]: 2 });
  });

  it.each([
    ['ignoreDependencyOnFailure', { ...NONE, ignored: 1, unprocessed: 1 }],
    ['failParentOnFailure', { ...NONE, failed: 1, unprocessed: 1 }],
    ['continueParentOnFailure', { ...NONE, ignored: 1, unprocessed: 1 }],
  ])('a child with %s is pending again', async (option, counts) => {
    const { job } = await stage.flowProducer().add(flow({ bad: { [option]: true }, later: { delay: 60_000 } }));
    await end(1);
    expect(await job.getDependenciesCount()).toEqual(counts);
    await (await fetchJob(stage.queue(), 'bad')).retry();
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 2 });
    await end(1);
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, processed: 1, unprocessed: 1 });
  });

  it('a child whose dependency was removed is not waited for again', async () => {
    const { job } = await stage
      .flowProducer()
      .add(flow({ bad: { removeDependencyOnFailure: true }, later: { delay: 60_000 } }));
    await end(1);
    await (await fetchJob(stage.queue(), 'bad')).retry();
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 1 });
    await end(1);
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 1 });
  });

  it('a completed child that is retried is pending again', async () => {
    const { job } = await stage.flowProducer().add(flow({ good: {}, later: { delay: 60_000 } }));
    await end(1);
    await (await fetchJob(stage.queue(), 'good')).retry('completed');
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 2 });
    expect(await job.getChildrenValues()).toEqual({});
    await end(1);
    expect(await job.getChildrenValues()).toEqual({ [key('good')]: 2 });
  });

  it('a parent that left is not parked again', async () => {
    const { job } = await stage.flowProducer().add(flow({ good: {} }));
    await end(1);
    expect(await job.getState()).toBe('waiting');
    await (await fetchJob(stage.queue(), 'good')).retry('completed');
    expect(await job.getState()).toBe('waiting');
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 1 });
  });

  it('retryJobs takes the children back as well', async () => {
    const { job } = await stage
      .flowProducer()
      .add(flow({ bad1: { ignoreDependencyOnFailure: true }, bad2: {}, later: { delay: 60_000 } }));
    await end(2);
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, ignored: 1, unprocessed: 2 });
    await stage.queue().retryJobs();
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 3 });
    await end(2);
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, processed: 2, unprocessed: 1 });
  });

  it('retryJobs of completed ones takes their values back', async () => {
    const { job } = await stage.flowProducer().add(flow({ good: {}, later: { delay: 60_000 } }));
    await end(1);
    await stage.queue().retryJobs({ state: 'completed' });
    expect(await job.getDependenciesCount()).toEqual({ ...NONE, unprocessed: 2 });
  });

  it('a parent that failed and is retried sees its children’s values', async () => {
    let runs = 0;
    const top = new EventLog(
      stage.worker(
        async (job) => {
          if (++runs === 1) throw new Error('first');
          return job.getChildrenValues();
        },
        {},
        'top',
      ),
      ['completed', 'failed'],
    );
    await stage.flowProducer().add(flow({ good: {} }));
    await end(1);
    const [parent] = await top.get<[Job]>('failed');
    expect(await parent.getState()).toBe('failed');
    await parent.retry();
    expect((await top.get('completed'))[1]).toEqual({ [key('good')]: 1 });
  });

  it('a parent with attempts is tried again without its children', async () => {
    let runs = 0;
    const top = new EventLog(
      stage.worker(
        async (job) => {
          if (++runs < 3) throw new Error('again');
          return job.getChildrenValues();
        },
        {},
        'top',
      ),
      ['completed', 'failed'],
    );
    await stage.flowProducer().add({ ...flow({ good: {} }), opts: { attempts: 3 } });
    await end(1);
    expect((await top.get('completed'))[1]).toEqual({ [key('good')]: 1 });
    expect(top.names).toEqual(['failed', 'failed', 'completed']);
  });

  it('a parent that a child failed runs when both are retried', async () => {
    const top = new EventLog(
      stage.worker(async (job) => job.getDependenciesCount(), {}, 'top'),
      ['completed', 'failed'],
    );
    await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true } }));
    await end(1);
    const [parent] = await top.get<[Job]>('failed');
    await (await fetchJob(stage.queue(), 'bad')).retry();
    await end(1);
    await parent.retry();
    expect((await top.get('completed'))[1]).toEqual({ ...NONE, processed: 1 });
  });

  it('a child that is retried without a parent is an ordinary job', async () => {
    const { job } = await stage.flowProducer().add(flow({ bad: {} }));
    await end(1);
    await job.remove({ removeChildren: false });
    await (await fetchJob(stage.queue(), 'bad')).retry();
    await end(1);
    expect(await stage.queue().getJobState('bad')).toBe('completed');
  });

  it('a child that fails after its parent has completed fails the parent when that is tried again', async () => {
    const { job } = await stage.flowProducer().add(flow({ kid: { failParentOnFailure: true } }));
    const children = stage.worker(null);
    const parents = stage.worker(null, {}, 'top');
    await (await children.getNextJob('t')).moveToCompleted(1, 't', false);
    await (await parents.getNextJob('t')).moveToCompleted(2, 't', false);
    await (await fetchJob(stage.queue(), 'kid')).retry('completed');
    await (await children.getNextJob('t')).moveToFailed(new Error('late'), 't', false);
    const top = stage.queue({}, 'top');
    expect((await fetchJob(top, job.id)).deferredFailure).toBe(`child ${key('kid')} failed`);
    expect(await job.getState()).toBe('completed');
    await (await fetchJob(top, job.id)).retry('completed');
    let runs = 0;
    const log = new EventLog(
      stage.worker(async () => ++runs, {}, 'top'),
      ['failed'],
    );
    const [, error] = await log.get('failed');
    expect([(error as Error).message, runs]).toEqual([`child ${key('kid')} failed`, 0]);
  });
});
