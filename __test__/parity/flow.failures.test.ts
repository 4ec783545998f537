// Pins what becomes of a parent whose child fails, by the child's option.
import { describe, expect, it } from 'vitest';
import type { FlowJob, Job, JobsOptions } from 'bullmq';
import { endChildren, familyOf } from '../support/flows.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

type Failed = [job: Job, error: Error, prev: string];

const NOTHING = { processed: 0, unprocessed: 0, ignored: 0, failed: 0 };

describe.each(libraries)('$name: flow.failures', ({ lib }) => {
  const stage = useStage(lib);

  /** A worker of the children: what is called `bad` fails, what is called `held` waits for the gate, the rest gives its name. */
  function children(gate = stage.gate()) {
    const worker = stage.worker(
      async (job) => {
        if (job.name.startsWith('bad')) throw new Error(`${job.name} is bad`);
        if (job.name.startsWith('held')) await gate.opened;
        return job.name;
      },
      { concurrency: 10 },
    );
    return Object.assign(new EventLog(worker, ['active', 'completed', 'failed']), { gate });
  }

  function parents(processor = async (job: Job): Promise<unknown> => job.getChildrenValues()) {
    return new EventLog(stage.worker(processor, {}, 'top'), ['active', 'completed', 'failed']);
  }

  const flow = (kids: Record<string, JobsOptions>, opts: JobsOptions = {}) => familyOf(stage, kids, opts);

  const key = (name: string) => stage.childKey(name);

  describe('without an option', () => {
    it('the parent waits for ever', async () => {
      const log = children();
      const { job } = await stage.flowProducer().add(flow({ bad: {}, good: {} }));
      await log.get('failed');
      await log.get('completed');
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, processed: 1, unprocessed: 1 });
      expect(await job.getDependencies()).toEqual({
        processed: { [key('good')]: 'good' },
        unprocessed: [key('bad')],
        ignored: {},
        failed: [],
      });
      expect(await job.getIgnoredChildrenFailures()).toEqual({});
    });

    it('a failing try that is followed by another changes nothing', async () => {
      const queue = stage.queue();
      let tries = 0;
      stage.worker(async () => {
        if (++tries < 3) throw new Error('not yet');
        return tries;
      });
      const log = parents();
      await stage.flowProducer().add(flow({ child: { attempts: 3, failParentOnFailure: true } }));
      expect((await log.get('completed'))[1]).toEqual({ [key('child')]: 3 });
      expect((await fetchJob(queue, 'child')).attemptsMade).toBe(3);
    });

    it('a failed child that is not kept is waited for no more', async () => {
      children();
      const log = parents();
      const { job } = await stage.flowProducer().add(flow({ bad: { removeOnFail: true }, good: {} }));
      expect((await log.get('completed'))[1]).toEqual({ [key('good')]: 'good' });
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, processed: 1 });
    });

    it('nor is one that is kept no longer', async () => {
      const { job } = await stage.flowProducer().add(flow({ bad: {}, good: {} }));
      await endChildren(stage, 2);
      expect(await job.getState()).toBe('waiting-children');
      const global = stage.globalLog({}, 'top');
      await stage.queue().add('bad other', {}, { removeOnFail: 1 });
      await endChildren(stage, 1);
      expect((await global.get('waiting'))[0]).toEqual({ jobId: job.id, prev: 'waiting-children' });
      expect(await job.getState()).toBe('waiting');
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, processed: 1 });
    });

    it('nor is one that is kept no longer, by a parent in the same queue', async () => {
      const { job } = await stage.flowProducer().add(familyOf(stage, { bad: {}, good: {} }, {}, ''));
      await endChildren(stage, 2);
      await stage.queue().add('bad other', {}, { removeOnFail: { age: 3600, count: 1 } });
      await endChildren(stage, 2);
      expect(await job.getState()).toBe('completed');
      expect(await job.getDependencies()).toMatchObject({ processed: { [key('good')]: 'good' }, unprocessed: [] });
    });
  });

  describe('removeDependencyOnFailure', () => {
    it('drops the child and releases the parent when it was the last', async () => {
      children();
      const log = parents();
      const { job } = await stage.flowProducer().add(flow({ bad: { removeDependencyOnFailure: true } }));
      expect((await log.get('completed'))[1]).toEqual({});
      expect(await job.getDependencies()).toEqual({ processed: {}, unprocessed: [], ignored: {}, failed: [] });
      expect(await stage.queue().getJobState('bad')).toBe('failed');
    });

    it('waits for the others', async () => {
      const log = children();
      const { job } = await stage.flowProducer().add(flow({ bad: { removeDependencyOnFailure: true }, held: {} }));
      await log.get('failed');
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependencies()).toMatchObject({ unprocessed: [key('held')] });
      const top = parents();
      log.gate.open();
      expect((await top.get('completed'))[1]).toEqual({ [key('held')]: 'held' });
    });
  });

  describe('ignoreDependencyOnFailure', () => {
    it('keeps the reason and releases the parent when it was the last', async () => {
      children();
      const log = parents(async (job) => [await job.getChildrenValues(), await job.getIgnoredChildrenFailures()]);
      const { job } = await stage.flowProducer().add(flow({ bad: { ignoreDependencyOnFailure: true }, good: {} }));
      const ignored = { [key('bad')]: 'bad is bad' };
      expect((await log.get('completed'))[1]).toEqual([{ [key('good')]: 'good' }, ignored]);
      expect(await job.getIgnoredChildrenFailures()).toEqual(ignored);
      expect(await job.getFailedChildrenValues()).toEqual(ignored);
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, processed: 1, ignored: 1 });
      expect(await job.getDependencies()).toEqual({
        processed: { [key('good')]: 'good' },
        unprocessed: [],
        ignored,
        failed: [],
      });
    });

    it('waits for the others', async () => {
      const log = children();
      const { job } = await stage.flowProducer().add(flow({ bad: { ignoreDependencyOnFailure: true }, held: {} }));
      await log.get('failed');
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, unprocessed: 1, ignored: 1 });
      const top = parents();
      log.gate.open();
      await top.get('completed');
    });

    it('keeps the reason of a child that is not kept', async () => {
      children();
      const log = parents(async (job) => job.getIgnoredChildrenFailures());
      await stage.flowProducer().add(flow({ bad: { ignoreDependencyOnFailure: true, removeOnFail: true } }));
      expect((await log.get('completed'))[1]).toEqual({ [key('bad')]: 'bad is bad' });
      expect(await stage.queue().getJob('bad')).toBeUndefined();
    });
  });

  describe('continueParentOnFailure', () => {
    it('releases the parent at once, and the others go on', async () => {
      const log = children();
      const gate = stage.gate();
      const top = parents(async (job) => {
        await gate.opened;
        return [await job.getIgnoredChildrenFailures(), await job.getChildrenValues()];
      });
      const { job } = await stage.flowProducer().add(flow({ bad: { continueParentOnFailure: true }, held: {} }));
      await top.get('active');
      expect(await job.getDependencies()).toEqual({
        processed: {},
        unprocessed: [key('held')],
        ignored: { [key('bad')]: 'bad is bad' },
        failed: [],
      });
      log.gate.open();
      await log.get('completed');
      gate.open();
      expect((await top.get('completed'))[1]).toEqual([{ [key('bad')]: 'bad is bad' }, { [key('held')]: 'held' }]);
    });

    it('a parent that ends too early fails', async () => {
      const log = children();
      const top = parents(async () => 'early');
      const { job } = await stage.flowProducer().add(flow({ bad: { continueParentOnFailure: true }, held: {} }));
      const [, error] = await top.get<Failed>('failed');
      const text = `Job ${job.id} has pending dependencies. moveToFinished`;
      expect(error.message).toBe(text);
      expect((error as Error & { code?: number }).code).toBe(-4);
      expect((await fetchJob(stage.queue({}, 'top'), job.id)).failedReason).toBe(text);
      expect(stage.takeErrors().map(({ message }) => message)).toEqual([text]);
      log.gate.open();
    });
  });

  describe('failParentOnFailure', () => {
    it('fails the parent, whatever else is pending', async () => {
      const log = children();
      const top = parents();
      const { job } = await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true }, held: {} }));
      const [failed, error, prev] = await top.get<Failed>('failed');
      const reason = `child ${key('bad')} failed`;
      expect([failed.id, error.message, prev]).toEqual([job.id, reason, 'active']);
      expect(error.name).toBe('UnrecoverableError');
      expect(await job.getState()).toBe('failed');
      const stored = await fetchJob(stage.queue({}, 'top'), job.id);
      expect(stored.failedReason).toBe(reason);
      expect([stored.attemptsMade, stored.attemptsStarted]).toEqual([1, 1]);
      expect(stored.stacktrace?.[0]).toContain(reason);
      expect(await job.getDependencies()).toEqual({
        processed: {},
        unprocessed: [key('held')],
        ignored: {},
        failed: [key('bad')],
      });
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, unprocessed: 1, failed: 1 });
      expect(await job.getFailedChildrenValues()).toEqual({});
      log.gate.open();
      await log.get('completed');
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, processed: 1, failed: 1 });
      expect(await job.getState()).toBe('failed');
    });

    it('does not run the parent’s processor, nor try it again', async () => {
      children();
      let runs = 0;
      const top = parents(async () => {
        runs++;
      });
      await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true } }, { attempts: 5 }));
      await top.get('failed');
      expect(runs).toBe(0);
      expect(top.names).toEqual(['active', 'failed']);
    });

    it('without a worker of its queue the parent waits, with what it will fail for', async () => {
      const log = children();
      const { job } = await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true } }));
      await log.get('failed');
      expect(await job.getState()).toBe('waiting');
      expect((await fetchJob(stage.queue({}, 'top'), job.id)).deferredFailure).toBe(`child ${key('bad')} failed`);
      const top = parents();
      expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('bad')} failed`);
    });

    it('a parent with a delay of its own fails after it', async () => {
      const log = children();
      const top = parents();
      const { job } = await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true } }, { delay: 60_000 }));
      await log.get('failed');
      expect(await job.getState()).toBe('delayed');
      expect((await fetchJob(stage.queue({}, 'top'), job.id)).deferredFailure).toBe(`child ${key('bad')} failed`);
      await job.promote();
      expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('bad')} failed`);
    });

    it('a parent with a priority fails in its turn', async () => {
      const log = children();
      const { job } = await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true } }, { priority: 3 }));
      await log.get('failed');
      expect(await job.getState()).toBe('prioritized');
      const top = parents();
      expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('bad')} failed`);
    });

    it('a parent that failed is no longer to fail', async () => {
      children();
      const top = parents();
      const { job } = await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true } }));
      await top.get<Failed>('failed');
      expect((await fetchJob(stage.queue({}, 'top'), job.id)).deferredFailure).toBeUndefined();
    });

    it('a parent that is delayed again fails at once', async () => {
      const log = children();
      const parked = stage.gate();
      const top = parents(async (job) => {
        if (job.attemptsStarted > 1) return;
        await stage.flowProducer().add({
          name: 'bad',
          queueName: stage.name(),
          opts: {
            jobId: 'bad',
            delay: 50,
            failParentOnFailure: true,
            parent: { id: job.id as string, queue: job.queueQualifiedName },
          },
        });
        await job.moveToDelayed(Date.now() + 60_000, job.token);
        parked.open();
        throw new lib.DelayedError();
      });
      const job = await stage.queue({}, 'top').add('parent', {});
      await parked.opened;
      await log.get('failed');
      expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('bad')} failed`);
      expect(await job.getState()).toBe('failed');
    });

    it('a parent that is active cannot complete', async () => {
      const log = children();
      const top = parents(async (job) => {
        await stage.queue().add(
          'bad',
          {},
          {
            jobId: 'bad',
            failParentOnFailure: true,
            parent: { id: job.id as string, queue: job.queueQualifiedName },
          },
        );
        await log.get('failed');
        return 'unseen';
      });
      const job = await stage.queue({}, 'top').add('parent', {}, { attempts: 3 });
      const text = `Cannot complete job ${job.id} because it has at least one failed child. moveToFinished`;
      const [, error] = await top.get<Failed>('failed');
      expect(error.message).toBe(text);
      expect(error.name).toBe('UnrecoverableError');
      expect(await job.getState()).toBe('failed');
      const stored = await fetchJob(stage.queue({}, 'top'), job.id);
      expect(stored.failedReason).toBe(text);
      expect(stage.takeErrors().map(({ message }) => message)).toEqual([text]);
    });

    it('two that fail are both kept, and the parent fails for the latest', async () => {
      const hand = stage.worker(null);
      const { job } = await stage
        .flowProducer()
        .add(flow({ bad1: { failParentOnFailure: true }, bad2: { failParentOnFailure: true } }));
      for (const bad of ['bad1', 'bad2']) {
        const child = await hand.getNextJob('token');
        expect(child?.id).toBe(bad);
        await child?.moveToFailed(new Error('bad'), 'token');
        const stored = await fetchJob(stage.queue({}, 'top'), job.id);
        expect(stored.deferredFailure).toBe(`child ${key(bad)} failed`);
      }
      expect([...((await job.getDependencies()).failed ?? [])].sort()).toEqual([key('bad1'), key('bad2')]);
      expect(await stage.queue({}, 'top').getWaitingCount()).toBe(1);
      expect(await stage.queue({}, 'top').getWaitingChildrenCount()).toBe(0);
    });

    it('a parent whose own try fails meanwhile has no other one', async () => {
      const log = children();
      const top = parents(async (job) => {
        await stage.queue().add(
          'bad',
          {},
          {
            jobId: 'bad',
            failParentOnFailure: true,
            parent: { id: job.id as string, queue: job.queueQualifiedName },
          },
        );
        await log.get('failed');
        throw new Error('of its own');
      });
      const job = await stage.queue({}, 'top').add('parent', {}, { attempts: 5 });
      await top.get('failed', 2);
      const reasons = top.all<Failed>('failed').map(([, error]) => error.message);
      expect(reasons).toEqual(['of its own', `child ${key('bad')} failed`]);
      expect(top.names).toEqual(['active', 'failed', 'active', 'failed']);
      expect(await job.getState()).toBe('failed');
    });

    it('a child that is not kept fails its parent as well', async () => {
      children();
      const top = parents();
      const { job } = await stage.flowProducer().add(flow({ bad: { failParentOnFailure: true, removeOnFail: true } }));
      expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('bad')} failed`);
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, failed: 1 });
    });
  });

  describe('several children with different options', () => {
    it('each counts by its own', async () => {
      const log = children();
      const top = parents(async (job) => job.getDependencies());
      await stage.flowProducer().add(
        flow({
          bad1: { ignoreDependencyOnFailure: true },
          bad2: { removeDependencyOnFailure: true },
          good: {},
        }),
      );
      await log.get('failed', 2);
      expect((await top.get('completed'))[1]).toEqual({
        processed: { [key('good')]: 'good' },
        unprocessed: [],
        ignored: { [key('bad1')]: 'bad1 is bad' },
        failed: [],
      });
    });

    it('one that is ignored does not release a parent that another holds', async () => {
      const log = children();
      const { job } = await stage
        .flowProducer()
        .add(flow({ bad1: { ignoreDependencyOnFailure: true }, bad2: { removeDependencyOnFailure: true }, bad3: {} }));
      await log.get('failed', 3);
      expect(await job.getState()).toBe('waiting-children');
      expect(await job.getDependencies()).toEqual({
        processed: {},
        unprocessed: [key('bad3')],
        ignored: { [key('bad1')]: 'bad1 is bad' },
        failed: [],
      });
    });

    it('failing comes before ignoring', async () => {
      const log = children();
      const { job } = await stage
        .flowProducer()
        .add(flow({ bad1: { ignoreDependencyOnFailure: true }, bad2: { failParentOnFailure: true } }));
      await log.get('failed', 2);
      const top = parents();
      expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('bad2')} failed`);
      expect(await job.getDependenciesCount()).toEqual({ ...NOTHING, ignored: 1, failed: 1 });
    });
  });

  describe('a child that is kept until its sibling ends', () => {
    const policies = ['ignoreDependencyOnFailure', 'removeDependencyOnFailure', 'continueParentOnFailure'] as const;
    const cases = policies.flatMap((policy) =>
      [1, 10].map((concurrency) => [policy, concurrency, { [policy]: true, removeOnFail: 1 }] as const),
    );

    it.each(cases)('does not send its parent before others: %s, %i at once', async (_, concurrency, opts) => {
      const waiting = await stage.queue({}, 'top').add('before', {});
      const { job } = await stage.flowProducer().add(flow({ bad: opts, badToo: opts }, { priority: 2 }));
      const { job: late } = await stage.flowProducer().add(flow({ worse: opts, worst: opts }, { delay: 60_000 }));
      const failing = stage.worker(() => Promise.reject(new Error('bad')), { concurrency });
      await new EventLog(failing, ['failed']).get('failed', 4);
      expect(await Promise.all([waiting, job, late].map((job) => job.getState()))).toEqual([
        'waiting',
        'prioritized',
        'delayed',
      ]);
    });
  });

  it('parents of children that go together start in the order in which these failed', async () => {
    for (const jobId of ['a', 'b', 'c']) await stage.flowProducer().add(flow({ [`child-${jobId}`]: {} }, { jobId }));
    const failing = new EventLog(
      stage.worker(() => Promise.reject(new Error('bad'))),
      ['failed'],
    );
    await failing.get('failed', 3);
    // of what ends in one millisecond neither is the older
    const now = Date.now();
    await until('the next millisecond', () => Date.now() > now);
    await stage.queue().add('last', {}, { removeOnFail: 1 });
    await failing.get('failed', 4);
    const waiting = await stage.queue({}, 'top').getWaiting();
    expect(waiting.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  });

  describe('over several levels', () => {
    function tower(opts: JobsOptions[]): FlowJob {
      const levels = opts.map((own, i) => ({
        name: i === opts.length - 1 ? 'bad' : `level${i}`,
        opts: { jobId: `l${i}`, ...own },
      }));
      return levels.reduceRight<FlowJob | undefined>(
        (below, level) => ({ ...level, queueName: stage.name(), ...(below && { children: [below] }) }),
        undefined,
      ) as FlowJob;
    }

    it('failParentOnFailure on each level fails all of them, each for its child', async () => {
      const log = children();
      await stage
        .flowProducer()
        .add(tower([{}, { failParentOnFailure: true }, { failParentOnFailure: true }, { failParentOnFailure: true }]));
      await log.get('failed', 4);
      const reasons = log.all<Failed>('failed').map(([job, error]) => [job.id, error.message]);
      expect(reasons).toEqual([
        ['l3', 'bad is bad'],
        ['l2', `child ${key('l3')} failed`],
        ['l1', `child ${key('l2')} failed`],
        ['l0', `child ${key('l1')} failed`],
      ]);
    });

    it('stops at a level that does not pass it on', async () => {
      const log = children();
      await stage.flowProducer().add(tower([{}, {}, { failParentOnFailure: true }, { failParentOnFailure: true }]));
      await log.get('failed', 3);
      const queue = stage.queue();
      expect(await queue.getJobState('l0')).toBe('waiting-children');
      expect(await queue.getJobState('l1')).toBe('failed');
      expect(await (await fetchJob(queue, 'l0')).getDependenciesCount()).toEqual({ ...NOTHING, unprocessed: 1 });
    });

    it('each level by its own option', async () => {
      const log = children();
      await stage.flowProducer().add(tower([{}, { ignoreDependencyOnFailure: true }, { failParentOnFailure: true }]));
      await log.get('completed');
      expect(log.all<[Job]>('completed').map(([job]) => job.id)).toEqual(['l0']);
      const root = await fetchJob(stage.queue(), 'l0');
      expect(await root.getIgnoredChildrenFailures()).toEqual({ [key('l1')]: `child ${key('l2')} failed` });
    });

    it('a grandchild that is ignored releases level after level', async () => {
      const log = children();
      await stage.flowProducer().add(tower([{}, {}, { ignoreDependencyOnFailure: true }]));
      await log.get('completed', 2);
      expect(log.all<[Job]>('completed').map(([job]) => job.id)).toEqual(['l1', 'l0']);
    });
  });

  it('a child that is started too often fails its parent', async () => {
    const top = parents();
    const log = new EventLog(
      stage.worker(
        async (job) => {
          await job.moveToDelayed(Date.now(), job.token);
          throw new lib.DelayedError();
        },
        { maxStartedAttempts: 2 },
      ),
      ['failed'],
    );
    await stage.flowProducer().add(flow({ child: { failParentOnFailure: true } }));
    expect((await log.get<Failed>('failed'))[1].message).toBe('job started more than allowable limit');
    expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('child')} failed`);
  });

  it('a child that stalls too often fails its parent', async () => {
    const top = parents();
    const stuck = stage.worker(null, { lockDuration: 50, skipStalledCheck: true });
    await stage.flowProducer().add(flow({ child: { failParentOnFailure: true } }));
    expect((await stuck.getNextJob('token'))?.id).toBe('child');
    const log = new EventLog(
      stage.worker(async () => {}, { stalledInterval: 60, maxStalledCount: 0 }),
      ['failed'],
    );
    expect((await log.get<Failed>('failed'))[1].message).toBe('job stalled more than allowable limit');
    expect((await top.get<Failed>('failed'))[1].message).toBe(`child ${key('child')} failed`);
  });

  it('a child that fails by hand tells its parent', async () => {
    const hand = stage.worker(null);
    const { job } = await stage.flowProducer().add(flow({ one: { ignoreDependencyOnFailure: true }, two: {} }));
    const one = await hand.getNextJob('token');
    await one?.moveToFailed(new Error('by hand'), 'token');
    expect(await job.getIgnoredChildrenFailures()).toEqual({ [key('one')]: 'by hand' });
    const two = await hand.getNextJob('token');
    await two?.moveToCompleted('by hand as well', 'token');
    expect(await job.getChildrenValues()).toEqual({ [key('two')]: 'by hand as well' });
    expect(await job.getState()).toBe('waiting');
  });
});
