// Pins Job#moveToWaitingChildren and the steps built on it: children added at run time.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

describe.each(libraries)('$name: flow.waitingChildren', ({ lib }) => {
  const stage = useStage(lib);

  const addChild = (job: Job, jobId: string, opts: JobsOptions = {}) =>
    stage
      .queue({}, 'kids')
      .add(jobId, {}, { jobId, ...opts, parent: { id: job.id as string, queue: job.queueQualifiedName } });

  const key = (id: string) => stage.childKey(id, 'kids');

  /** Parks the job if it has pending children. */
  async function park(job: Job, token: string | undefined): Promise<void> {
    if (await job.moveToWaitingChildren(token as string)) throw new lib.WaitingChildrenError();
  }

  /** Works off the children: what is called `bad...` fails. */
  function kids() {
    const worker = stage.worker(
      async (job) => {
        if (job.name.startsWith('bad')) throw new Error('bad');
        return job.name;
      },
      {},
      'kids',
    );
    return new EventLog(worker, ['completed', 'failed']);
  }

  it('a job waits for children added while it ran, then starts again', async () => {
    const parked = stage.globalLog();
    const worker = stage.worker(async (job, token) => {
      if (job.attemptsStarted === 1) {
        await addChild(job, 'a');
        await addChild(job, 'b');
      }
      await park(job, token);
      return job.getChildrenValues();
    });
    const log = new EventLog(worker, ['active', 'completed', 'failed']);
    const job = await stage.queue().add('parent', {}, { attempts: 2 });
    await parked.get('waiting-children');
    expect(await job.getState()).toBe('waiting-children');
    expect((await job.getDependencies()).unprocessed?.sort()).toEqual([key('a'), key('b')]);
    kids();
    const [ended, value] = await log.get<[Job, unknown]>('completed');
    expect(value).toEqual({ [key('a')]: 'a', [key('b')]: 'b' });
    expect([ended.attemptsMade, ended.attemptsStarted]).toEqual([1, 2]);
    expect(log.names).toEqual(['active', 'active', 'completed']);
  });

  it('steps are kept by updateData', async () => {
    kids();
    const steps: string[] = [];
    const worker = stage.worker(async (job, token) => {
      let { step } = job.data;
      while (step !== 'finish') {
        steps.push(step);
        if (step === 'first') {
          await addChild(job, 'a');
          step = 'second';
        } else {
          await addChild(job, 'b');
          step = 'finish';
        }
        await job.updateData({ step });
        await park(job, token);
      }
      return job.getChildrenValues();
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await stage.queue().add('parent', { step: 'first' });
    expect((await log.get('completed'))[1]).toEqual({ [key('a')]: 'a', [key('b')]: 'b' });
    expect(steps).toEqual(['first', 'second']);
  });

  it('is false when there are no children', async () => {
    const worker = stage.worker(async (job, token) => job.moveToWaitingChildren(token as string));
    const log = new EventLog(worker, ['completed', 'failed']);
    await stage.queue().add('alone', {});
    expect((await log.get('completed'))[1]).toBe(false);
  });

  it('is false when all children have ended', async () => {
    const log = kids();
    const worker = stage.worker(async (job, token) => {
      await addChild(job, 'a');
      await log.get('completed');
      return job.moveToWaitingChildren(token as string);
    });
    const top = new EventLog(worker, ['completed', 'failed']);
    await stage.queue().add('parent', {});
    expect((await top.get('completed'))[1]).toBe(false);
  });

  it('is about one child when one is named', async () => {
    const log = kids();
    const hand = stage.worker(null);
    const queue = stage.queue();
    await queue.add('parent', {});
    const job = await hand.getNextJob('token');
    await addChild(job, 'later', { delay: 60_000 });
    await addChild(job, 'a');
    await log.get('completed');
    const child = (id: string) => ({ child: { id, queue: `bull:${stage.name('kids')}` } });
    expect(await job.moveToWaitingChildren('token', child('a'))).toBe(false);
    expect(await job.getState()).toBe('active');
    expect(await job.moveToWaitingChildren('token', child('later'))).toBe(true);
    expect(await job.getState()).toBe('waiting-children');
  });

  it('is refused when a child that fails its parent has failed', async () => {
    const log = kids();
    const worker = stage.worker(async (job, token) => {
      await addChild(job, 'bad', { failParentOnFailure: true });
      await log.get('failed');
      await park(job, token);
    });
    const top = new EventLog(worker, ['completed', 'failed']);
    const job = await stage.queue().add('parent', {}, { attempts: 3 });
    const [failed, error] = await top.get<[Job, Error & { code?: number }]>('failed');
    expect(error.message).toBe(
      `Cannot complete job ${job.id} because it has at least one failed child. moveToWaitingChildren`,
    );
    expect(error.code).toBe(-9);
    expect(error).toBeInstanceOf(lib.UnrecoverableError);
    expect(await failed.getState()).toBe('failed');
  });

  it('a parked job fails when a child does that fails its parent', async () => {
    const parked = stage.globalLog();
    const worker = stage.worker(async (job, token) => {
      await addChild(job, 'bad', { failParentOnFailure: true });
      await park(job, token);
    });
    const top = new EventLog(worker, ['completed', 'failed']);
    const job = await stage.queue().add('parent', {});
    await parked.get('waiting-children');
    kids();
    const [, error] = await top.get<[Job, Error]>('failed');
    expect(error.message).toBe(`child ${key('bad')} failed`);
    expect(await job.getState()).toBe('failed');
  });

  it('a parked job that ignores a child goes on', async () => {
    kids();
    const worker = stage.worker(async (job, token) => {
      if (job.attemptsStarted === 1) await addChild(job, 'bad', { ignoreDependencyOnFailure: true });
      await park(job, token);
      return job.getIgnoredChildrenFailures();
    });
    const top = new EventLog(worker, ['completed', 'failed']);
    await stage.queue().add('parent', {});
    expect((await top.get('completed'))[1]).toEqual({ [key('bad')]: 'bad' });
  });

  it('children of a flow and children added at run time count together', async () => {
    const values = new EventLog(
      stage.worker(async (job, token) => {
        if (job.attemptsStarted === 1) await addChild(job, 'late');
        await park(job, token);
        return job.getChildrenValues();
      }),
      ['completed', 'failed'],
    );
    kids();
    await stage.flowProducer().add({
      name: 'parent',
      queueName: stage.name(),
      children: [{ name: 'early', queueName: stage.name('kids'), opts: { jobId: 'early' } }],
    });
    expect((await values.get('completed'))[1]).toEqual({ [key('early')]: 'early', [key('late')]: 'late' });
  });

  it('a whole flow hangs under an active job', async () => {
    kids();
    const mid = stage.worker(async (job) => Object.values(await job.getChildrenValues()), {}, 'mid');
    const top = new EventLog(
      stage.worker(async (job, token) => {
        if (job.attemptsStarted === 1) {
          await stage.flowProducer().add({
            name: 'mid',
            queueName: stage.name('mid'),
            opts: { jobId: 'm', parent: { id: job.id as string, queue: job.queueQualifiedName } },
            children: [{ name: 'leaf', queueName: stage.name('kids') }],
          });
        }
        await park(job, token);
        return job.getChildrenValues();
      }),
      ['completed', 'failed'],
    );
    await stage.queue().add('root', {});
    expect((await top.get('completed'))[1]).toEqual({ [stage.childKey('m', 'mid')]: ['leaf'] });
    expect(mid.isRunning()).toBe(true);
  });

  it.each([0, 20, 10_000])(
    'a job that completes with pending children fails, whatever it returns: %i characters',
    async (n) => {
      const worker = stage.worker(async (job) => {
        await addChild(job, 'pending');
        return 'x'.repeat(n);
      });
      const top = new EventLog(worker, ['completed', 'failed']);
      const job = await stage.queue().add('parent', {});
      const [, error] = await top.get<[Job, Error & { code?: number }]>('failed');
      expect([error.message, error.code]).toEqual([`Job ${job.id} has pending dependencies. moveToFinished`, -4]);
      expect(stage.takeErrors()).toHaveLength(1);
      expect(await job.getState()).toBe('failed');
    },
  );

  it('a job that completes with pending children has failed before the next one starts', async () => {
    const queue = stage.queue();
    await queue.addBulk(['parent', 'next'].map((name) => ({ name, data: {} })));
    const worker = stage.worker(async (job) => {
      if (job.name === 'parent') await addChild(job, 'pending');
    });
    const log = new EventLog(worker, ['active', 'completed', 'failed', 'error']);
    const told = stage.globalLog();
    await log.get('completed');
    expect(log.names).toEqual(['active', 'error', 'failed', 'active', 'completed']);
    await told.get('drained');
    expect(told.names.slice(-6)).toEqual(['active', 'failed', 'retries-exhausted', 'active', 'completed', 'drained']);
    expect(stage.takeErrors()).toHaveLength(1);
  });

  it('a job that completes with pending children fails, though another one fails in the same tick', async () => {
    const gate = stage.gate();
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'parent') await addChild(job, 'pending');
        await gate.opened;
        if (job.name !== 'parent') throw new Error('on purpose');
      },
      { concurrency: 2 },
    );
    const log = new EventLog(worker, ['active', 'failed']);
    const queue = stage.queue();
    const jobs = await queue.addBulk(['parent', 'other'].map((name) => ({ name, data: {} })));
    await log.get('active', 2);
    const parent = await fetchJob(queue, jobs[0]?.id);
    await until('the child to be known', async () => (await parent.getDependenciesCount()).unprocessed === 1);
    gate.open();
    await log.get('failed', 2);
    for (const { id } of jobs) expect(await (await fetchJob(queue, id)).getState()).toBe('failed');
    expect(await queue.getActiveCount()).toBe(0);
    expect(stage.takeErrors()).toHaveLength(1);
  });

  it('a job that completes with pending children is tried again', async () => {
    const log = kids();
    const worker = stage.worker(async (job) => {
      if (job.attemptsStarted === 1) await addChild(job, 'a');
      else await log.get('completed');
      return job.getChildrenValues();
    });
    const top = new EventLog(worker, ['completed', 'failed']);
    const added = stage.queue();
    await stage.queue({}, 'kids').pause();
    await added.add('parent', {}, { attempts: 2 });
    await top.get('failed');
    expect(stage.takeErrors()).toHaveLength(1);
    await stage.queue({}, 'kids').resume();
    expect((await top.get('completed'))[1]).toEqual({ [key('a')]: 'a' });
  });

  describe('by hand', () => {
    async function held(): Promise<Job> {
      const hand = stage.worker(null);
      await stage.queue().add('parent', {});
      return await hand.getNextJob('token');
    }

    it('parks a job that has pending children', async () => {
      const job = await held();
      await addChild(job, 'a');
      expect(await job.moveToWaitingChildren('token')).toBe(true);
      expect(await job.getState()).toBe('waiting-children');
      expect(await stage.queue().getJobCounts()).toMatchObject({ active: 0, 'waiting-children': 1 });
      expect((await stage.queue().getWaitingChildren()).map(({ id }) => id)).toEqual([job.id]);
    });

    it('needs the right token', async () => {
      const job = await held();
      await addChild(job, 'a');
      const error = await rejection(job.moveToWaitingChildren('other'));
      expect([error.message, error.code]).toEqual([
        `Lock mismatch for job ${job.id}. Cmd moveToWaitingChildren from active`,
        -6,
      ]);
      expect(await job.getState()).toBe('active');
    });

    it('needs a lock', async () => {
      const job = await stage.queue().add('waits', {});
      await addChild(job, 'a');
      const error = await rejection(job.moveToWaitingChildren('token'));
      expect([error.message, error.code]).toEqual([`Missing lock for job ${job.id}. moveToWaitingChildren`, -2]);
    });

    it('needs an active job', async () => {
      const job = await stage.queue().add('waits', {});
      await addChild(job, 'a');
      const error = await rejection(job.moveToWaitingChildren('0'));
      expect([error.message, error.code]).toEqual([
        `Job ${job.id} is not in the active state. moveToWaitingChildren`,
        -3,
      ]);
      expect(await job.getState()).toBe('waiting');
    });

    it('needs a job', async () => {
      const job = await stage.queue().add('gone', {});
      await job.remove();
      const error = await rejection(job.moveToWaitingChildren('token'));
      expect([error.message, error.code]).toEqual([`Missing key for job ${job.id}. moveToWaitingChildren`, -1]);
    });

    it('completing with pending children is refused', async () => {
      const job = await held();
      await addChild(job, 'a');
      const error = await rejection(job.moveToCompleted('value', 'token', false));
      expect([error.message, error.code]).toEqual([`Job ${job.id} has pending dependencies. moveToFinished`, -4]);
      expect(await job.getState()).toBe('active');
    });

    it('completing with pending children is refused before the token is looked at', async () => {
      const job = await held();
      await addChild(job, 'a');
      const text = `Job ${job.id} has pending dependencies. moveToFinished`;
      const byAnother = await rejection(job.moveToCompleted('value', 'other', false));
      expect([byAnother.message, byAnother.code]).toEqual([text, -4]);
      await job.moveToFailed(new Error('no more'), 'token');
      const again = await rejection(job.moveToCompleted('value', 'token', false));
      expect([again.message, again.code]).toEqual([text, -4]);
      expect(await job.getState()).toBe('failed');
    });

    it('failing with pending children is not', async () => {
      const job = await held();
      await addChild(job, 'a');
      await job.moveToFailed(new Error('no more'), 'token');
      expect(await job.getState()).toBe('failed');
      expect((await job.getDependencies()).unprocessed).toEqual([key('a')]);
    });
  });

  describe('a child added with opts.parent', () => {
    it('needs a parent that exists', async () => {
      const queue = stage.queue();
      const error = await rejection(queue.add('child', {}, { parent: { id: 'nobody', queue: queue.qualifiedName } }));
      const parentKey = stage.childKey('nobody');
      expect([error.message, error.code]).toEqual([`Missing key for parent job ${parentKey}. addJob`, -5]);
      expect(await queue.getJobCountByTypes()).toBe(0);
    });

    it('is pending for a parent that waits, is delayed or has ended', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async () => 'done'),
        ['completed'],
      );
      const ended = await queue.add('ended', {});
      await log.get('completed');
      const parents = [ended, await queue.add('delayed', {}, { delay: 60_000 })];
      for (const [i, parent] of parents.entries()) {
        await addChild(parent, `c${i}`);
        expect((await parent.getDependencies()).unprocessed).toEqual([key(`c${i}`)]);
      }
      expect(await ended.getState()).toBe('completed');
      expect(await parents[1].getState()).toBe('delayed');
    });

    it('gives its value to a parent that had ended', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async () => 'done'),
        ['completed'],
      );
      const parent = await queue.add('ended', {});
      await log.get('completed');
      const done = kids();
      await addChild(parent, 'c');
      await done.get('completed');
      expect(await parent.getChildrenValues()).toEqual({ [key('c')]: 'c' });
      expect(await parent.getState()).toBe('completed');
    });

    it('with an id that is taken is linked, if its parent is', async () => {
      const kidsQueue = stage.queue({}, 'kids');
      const [first, second] = [await stage.queue().add('first', {}), await stage.queue().add('second', {})];
      await kidsQueue.add('c', {}, { jobId: 'c' });
      await addChild(first, 'c');
      expect((await fetchJob(kidsQueue, 'c')).parentKey).toBe(stage.childKey(first.id));
      await addChild(first, 'c');
      const error = await rejection(addChild(second, 'c'));
      expect([error.message, error.code]).toEqual([
        `The parent job ${stage.childKey(second.id)} cannot be replaced. addJob`,
        -7,
      ]);
      expect((await fetchJob(kidsQueue, 'c')).parentKey).toBe(stage.childKey(first.id));
      expect(await second.getDependenciesCount()).toMatchObject({ unprocessed: 0 });
    });

    it('may be added in bulk', async () => {
      const parent = await stage.queue().add('parent', {});
      const link = { id: parent.id as string, queue: parent.queueQualifiedName };
      const added = await stage
        .queue({}, 'kids')
        .addBulk([1, 2, 3].map((i) => ({ name: 'child', data: { i }, opts: { parent: link } })));
      expect((await parent.getDependencies()).unprocessed?.sort()).toEqual(
        added.map(({ id }) => key(id as string)).sort(),
      );
      expect(added.map(({ parentKey }) => parentKey)).toEqual([1, 2, 3].map(() => stage.childKey(parent.id)));
    });
  });
});
