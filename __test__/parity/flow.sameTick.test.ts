// Pins parents that end in the same tick as their children, beside them in one worker.
import type { Job, JobsOptions } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { Gate, until } from '../support/waiting.js';

describe.each(libraries)('$name: flow.sameTick', ({ lib }) => {
  const stage = useStage(lib);

  /** A job adds its child itself, and ends in the tick in which the child ends, behind it. Gives how that ended. */
  async function endTogether(opts: JobsOptions, childEnd: () => unknown, result: unknown = 'parent') {
    const queue = stage.queue();
    const log = stage.globalLog();
    const childEnded = new Gate();
    const worker = stage.worker(
      async (job: Job) => {
        if (job.name === 'child') {
          childEnded.open();
          return childEnd();
        }
        const parent = { id: job.id!, queue: job.queueQualifiedName };
        await queue.add('child', {}, { ...opts, parent });
        await childEnded.opened;
        // the child's end is told first
        await Promise.resolve();
        await Promise.resolve();
        return result;
      },
      { concurrency: 2 },
    );
    const parent = await queue.add('parent', {});
    await until('both ends', () => log.all('completed').length + log.all('failed').length >= 2);
    await worker.close();
    const job = await queue.getJob(parent.id!);
    return {
      state: await job!.getState(),
      reason: job!.failedReason,
      errors: stage.takeErrors().map(({ message }) => message),
    };
  }

  const fails = () => Promise.reject(new Error('child'));

  it('a parent completes behind its child', async () => {
    expect(await endTogether({}, () => 'child')).toMatchObject({ state: 'completed', errors: [] });
  });

  it('a parent with a large result completes behind its child', async () => {
    expect(await endTogether({}, () => 'child', 'x'.repeat(100_000))).toMatchObject({ state: 'completed', errors: [] });
  });

  it.each(['ignoreDependencyOnFailure', 'removeDependencyOnFailure', 'continueParentOnFailure'] as const)(
    'a parent completes behind a child that fails, with %s',
    async (policy) => {
      expect(await endTogether({ [policy]: true }, fails)).toMatchObject({ state: 'completed', errors: [] });
    },
  );

  it('a parent fails behind a child that fails it', async () => {
    const { state, reason, errors } = await endTogether({ failParentOnFailure: true }, fails);
    expect(state).toBe('failed');
    expect(reason).toMatch(/failed children|child/);
    expect(errors).toEqual([reason]);
  });

  it('a parent fails beside a child that failed, of which it waits for the end', async () => {
    const { state, reason, errors } = await endTogether({}, fails);
    expect(state).toBe('failed');
    expect(reason).toMatch(/has pending dependencies/);
    expect(errors).toEqual([reason]);
  });
});
