// Pins what a processor brings about that changes the options of its job: they count for this try's end, and are not stored.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: worker.changedOptions', ({ lib }) => {
  const stage = useStage(lib);

  /** Runs jobs with these options, all but the first of which change them. Gives what was told of each, by number. */
  async function run(opts: JobsOptions, change: (job: Job) => void, fails: boolean, jobs = 3): Promise<EventLog> {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: jobs }, (_, i) => ({ name: 'job', data: i, opts })));
    const worker = stage.worker(async (job) => {
      if (job.data > 0) change(job);
      if (fails) throw new Error('boom');
      return job.data === 1 ? 'done' : undefined;
    });
    const log = new EventLog(worker, ['completed', 'failed', 'drained']);
    await log.get('drained');
    await worker.close();
    return log;
  }

  it('removeOnComplete counts', async () => {
    await run({ attempts: 1 }, (job) => (job.opts.removeOnComplete = true), false);
    expect((await stage.queue().getCompleted()).map(({ id }) => id)).toEqual(['1']);
  });

  it('removeOnComplete counts, of options that are replaced', async () => {
    await run({ removeOnComplete: true, priority: 3 }, (job) => (job.opts = {}), false);
    const kept = await stage.queue().getCompleted(0, -1);
    expect(kept.map(({ id, returnvalue }) => [id, returnvalue]).sort()).toEqual([
      ['2', 'done'],
      ['3', null],
    ]);
  });

  it('QueueEvents tell the results', async () => {
    const log = stage.globalLog();
    await run({}, (job) => (job.opts.removeOnComplete = true), false);
    await log.when('all to complete', () => log.all('completed').length === 3);
    const told = log.all<[{ jobId: string; returnvalue: unknown }]>('completed').map(([event]) => event);
    expect(told.map(({ jobId, returnvalue }) => [jobId, returnvalue])).toEqual([
      ['1', null],
      ['2', 'done'],
      ['3', null],
    ]);
  });

  it('a parent gets null of a child without a result', async () => {
    const queueName = stage.queueName;
    const child = { name: 'child', queueName };
    const { job: parent } = await stage.flowProducer().add({ name: 'parent', queueName, children: [child, child] });
    const values = await new Promise((resolve) => {
      stage.worker(async (job) => {
        if (job.id === parent.id) return resolve(Object.values(await job.getChildrenValues()));
        job.opts.removeOnComplete = true;
      });
    });
    expect(values).toEqual([null, null]);
  });

  it('removeOnFail counts', async () => {
    await run({}, (job) => (job.opts.removeOnFail = true), true);
    expect((await stage.queue().getFailed()).map(({ id }) => id)).toEqual(['1']);
  });

  it('fewer attempts count', async () => {
    await run({ attempts: 2, backoff: 3_600_000 }, (job) => (job.opts.attempts = 1), true);
    const states = await Promise.all(['1', '2', '3'].map((id) => stage.queue().getJobState(id)));
    expect(states).toEqual(['delayed', 'failed', 'failed']);
  });

  it('more attempts count, for this try', async () => {
    const log = await run({}, (job) => (job.opts.attempts = 2), true);
    expect(log.all<[Job]>('failed').map(([{ id, attemptsMade }]) => [id, attemptsMade])).toEqual([
      ['1', 1],
      ['2', 1],
      ['3', 1],
      ['2', 2],
      ['3', 2],
    ]);
    expect((await fetchJob(stage.queue(), '2')).opts.attempts).toBe(0);
  });

  it('another backoff counts, also one that is changed in place', async () => {
    const opts = { attempts: 2, backoff: { type: 'fixed', delay: 5_000 } };
    const change = (job: Job): void => {
      if (job.data === 1) job.opts.backoff = { type: 'fixed', delay: 7_000 };
      else (job.opts.backoff as { delay: number }).delay = 9_000;
    };
    const log = await run(opts, change, true);
    expect(log.all<[Job]>('failed').map(([{ delay }]) => delay)).toEqual([5_000, 7_000, 9_000]);
  });

  it('what was read, and not changed, changes nothing', async () => {
    await run({ removeOnComplete: { count: 2 } }, (job) => void job.opts.removeOnComplete, false, 4);
    expect((await stage.queue().getCompleted()).map(({ id }) => id)).toEqual(['4', '3']);
  });
});
