// Pins where errors of failed calls say that they come from: the caller is in their stack, however the call was awaited.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';

const MISSING = '9999';

type Call = (job: Job, queue: Queue) => Promise<unknown>;

/** Calls on a job that is not there any more. */
const ON_JOB: Record<string, Call> = {
  updateData: (job) => job.updateData({}),
  updateProgress: (job) => job.updateProgress(1),
  log: (job) => job.log('row'),
  changePriority: (job) => job.changePriority({ priority: 1 }),
  changeDelay: (job) => job.changeDelay(1),
  promote: (job) => job.promote(),
  retry: (job) => job.retry(),
  moveToDelayed: (job) => job.moveToDelayed(Date.now() + 1000, 'token'),
  moveToWait: (job) => job.moveToWait('token'),
  moveToCompleted: (job) => job.moveToCompleted(1, 'token'),
  moveToFailed: (job) => job.moveToFailed(new Error('no'), 'token'),
  moveToWaitingChildren: (job) => job.moveToWaitingChildren('token'),
  'updateJobProgress of the queue': (_, queue) => queue.updateJobProgress(MISSING, 1),
};

describe.each(libraries)('$name: errors.stack', ({ lib }) => {
  const stage = useStage(lib);

  /** What one meets who awaits the call; its stack is to name this function. */
  async function whoAwaits(call: () => Promise<unknown>): Promise<Error> {
    try {
      await call();
    } catch (error) {
      return error as Error;
    }
    throw new Error('it did not fail');
  }

  async function expectCaller(call: () => Promise<unknown>): Promise<Error> {
    const error = await whoAwaits(call);
    expect(error).toBeInstanceOf(Error);
    expect(error.stack).toMatch(/\n +at (?:async )?whoAwaits \(.*errors\.stack\.test\.ts:\d+:\d+\)/);
    expect(error.stack?.split('\n')[0]).toBe(`${error.name}: ${error.message}`);
    return error;
  }

  /** Options of a job whose parent is not there. */
  const orphan = () => ({ parent: { id: MISSING, queue: `bull:${stage.queueName}` } });

  it.each(Object.entries(ON_JOB))('%s', async (_, call) => {
    const queue = stage.queue();
    const job = await queue.add('gone', {});
    await job.remove();
    await expectCaller(() => call(job, queue));
  });

  it('add', async () => {
    const queue = stage.queue();
    await expectCaller(() => queue.add('child', {}, orphan()));
  });

  it.each<[string, (queue: Queue) => Promise<unknown>]>([
    ['getJob', (queue) => queue.getJob('1')],
    ['getJobCounts', (queue) => queue.getJobCounts()],
  ])('%s after close, each call with an error of its own', async (_, call) => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    await queue.close();
    const errors = [await expectCaller(() => call(queue)), await expectCaller(() => call(queue))];
    expect(errors[0]).not.toBe(errors[1]);
  });

  it('add of a flow', async () => {
    const flows = stage.flowProducer();
    await expectCaller(() => flows.add({ name: 'child', queueName: stage.queueName, opts: orphan() }));
  });

  it('one of many at once', async () => {
    const queue = stage.queue();
    const all = () => Promise.all([queue.add('a', {}), queue.add('b', {}), queue.add('child', {}, orphan())]);
    await expectCaller(all);
  });

  it('with a then, a catch and a finally in between', async () => {
    const queue = stage.queue();
    await expectCaller(() =>
      queue
        .add('child', {}, orphan())
        .then((job) => job.id)
        .catch((error) => Promise.reject(error))
        .finally(() => {}),
    );
  });
});
