import { describe, expect, it, vi } from 'vitest';
import type { Queue } from 'bullmq';
import { failed } from '../../src/tools/cli/commands/failed.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli } from '../support/cli.js';
import { person } from '../support/person.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog } from '../support/waiting.js';

describe('failed', () => {
  const stage = useStage(chasquimq);

  /** A queue whose jobs have failed: ids 1 to 4, the fifth one waits. */
  async function queueOfFailures(): Promise<Queue> {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.log(`about to ${job.name}`);
      throw new Error(job.data.reason);
    });
    const log = new EventLog(worker, ['failed']);
    await queue.addBulk([
      { name: 'mail', data: { reason: 'connect ECONNREFUSED', to: 'Ana' } },
      { name: 'mail', data: { reason: 'no such mailbox', to: 'Bo' } },
      { name: 'report', data: { reason: 'connect ECONNREFUSED', to: 'Cy' } },
      { name: 'report', data: { reason: 'out of \x1b[31mpaper\n', to: 'Di' } },
    ]);
    await log.get('failed', 4);
    await worker.close();
    await queue.add('mail', { to: 'Ana' });
    return queue;
  }

  async function found(queue: Queue, ...args: string[]): Promise<string[]> {
    const { code, stdout, stderr } = await cli(['failed', queue.name, ...args, '--json']);
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout).map(({ id }: { id: string }) => id);
  }

  it('finds jobs by name, reason, age and text, the latest first', async () => {
    const queue = await queueOfFailures();
    expect(await found(queue)).toEqual(['4', '3', '2', '1']);
    expect(await found(queue, '--name', 'mail')).toEqual(['2', '1']);
    expect(await found(queue, '--name', 'mail', '--name', 'report', '--limit', '3')).toEqual(['4', '3', '2']);
    expect(await found(queue, '--reason', 'ECONNREFUSED')).toEqual(['3', '1']);
    expect(await found(queue, '--reason', 'econnrefused')).toEqual([]);
    expect(await found(queue, '--text', 'ANA')).toEqual(['1']);
    expect(await found(queue, '--text', 'refused', '--name', 'report')).toEqual(['3']);
    expect(await found(queue, '--newer-than', '1h')).toHaveLength(4);
    expect(await found(queue, '--older-than', '1h')).toEqual([]);
    expect((await cli(['failed', queue.name, 'count', '--name', 'mail'])).stdout).toBe('2\n');
    expect((await cli(['failed', queue.name, '--older-than', '1h'])).stdout).toBe('No failed jobs match.\n');
    // what users' texts hold does not reach the terminal as it is
    const { stdout } = await cli(['failed', queue.name]);
    expect(stdout.split('\n')[1]).toMatch(/^4 +report +\d+m?s +1 +out of \\u001b\[31mpaper\\n$/);
  });

  it('looks for a text in each job once, however many there are, and however many failed at a time', async () => {
    const queue = stage.queue();
    const worker = stage.worker(
      async () => {
        throw new Error('on purpose');
      },
      { concurrency: 200 },
    );
    const log = new EventLog(worker, ['failed']);
    await queue.addBulk(
      Array.from({ length: 1_700 }, (_, i) => ({ name: 'many', data: { part: i % 2 ? 'odd' : 'even' } })),
    );
    await log.get('failed', 1_700, 60_000);
    await worker.close();
    const odd = await found(queue, '--text', 'odd', '--limit', '5000');
    expect([odd.length, new Set(odd).size]).toEqual([850, 850]);
    expect((await cli(['failed', queue.name, 'count', '--text', 'EVEN'])).stdout).toBe('850\n');
    const removed = await cli(['failed', queue.name, 'remove', '--text', 'odd', '--yes', '--json']);
    expect(JSON.parse(removed.stdout)).toMatchObject({ matched: 850, done: 850, skipped: 0 });
  });

  it('shows jobs with data, options, stack traces and logs', async () => {
    const queue = await queueOfFailures();
    const { code, stdout } = await cli(['failed', queue.name, 'show', '2', '--json']);
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      [
        expect.objectContaining({
          id: '2',
          name: 'mail',
          data: { reason: 'no such mailbox', to: 'Bo' },
          opts: expect.objectContaining({ attempts: 0 }),
          failedReason: 'no such mailbox',
          attemptsMade: 1,
          finishedOn: expect.any(Number),
          stacktrace: [expect.stringContaining('no such mailbox')],
          logs: ['about to mail'],
        }),
      ],
    ]);
    const shown = await cli(['failed', queue.name, 'show', '2', '5', 'gone']);
    expect([shown.code, shown.stderr]).toEqual([1, `chasquimq: No failed job of ${queue.name} has the id 5, gone.\n`]);
    expect(shown.stdout).toMatch(/^ {2}reason {4}no such mailbox$/m);
    expect(shown.stdout).toMatch(/^ {4}about to mail$/m);
  });

  it('replays those that match, and tells how many', async () => {
    const queue = await queueOfFailures();
    const replayed = await cli([
      'failed',
      queue.name,
      'replay',
      '--name',
      'mail',
      '--reset-attempts',
      '--yes',
      '--json',
    ]);
    expect([replayed.code, JSON.parse(replayed.stdout)]).toEqual([
      0,
      { queue: queue.name, action: 'replay', matched: 2, done: 2, skipped: 0 },
    ]);
    expect((await queue.getJob('1'))?.attemptsMade).toBe(0);
    const byText = await cli(['failed', queue.name, 'replay', '--text', 'cy', '-y']);
    expect(byText.stdout).toBe(`Replayed 1 of 1 failed job of ${queue.name}.\n`);
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 4, failed: 1 });
    const none = await cli(['failed', queue.name, 'replay', '--name', 'mail', '--yes']);
    expect([none.code, none.stdout]).toEqual([0, `Replayed 0 of 0 failed jobs of ${queue.name}.\n`]);
  });

  it('removes failed jobs, and no others', async () => {
    const queue = await queueOfFailures();
    const byId = await cli(['failed', queue.name, 'remove', '1', '5', '--yes', '--json']);
    expect(JSON.parse(byId.stdout)).toEqual({ queue: queue.name, action: 'remove', matched: 1, done: 1, skipped: 0 });
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 3 });
    const some = await cli(['failed', queue.name, 'remove', '--all', '--limit', '2', '--yes']);
    expect(some.stdout).toBe(`Removed 2 of 2 failed jobs of ${queue.name}.\n`);
    expect(await found(queue)).toEqual(['4']);
  });

  it.each([
    ['y\n', 0, `Removed 4 of 4 failed jobs of `, 0],
    ['n\n', 'Nothing was done.', '', 4],
    ['\n', 'Nothing was done.', '', 4],
  ])('asks somebody at a terminal, who answers %j', async (answer, outcome, told, left) => {
    const queue = await queueOfFailures();
    const { io, asked, shown } = person(answer);
    const run = failed.run([queue.name, 'remove', '--all'], io).catch((error: Error) => error.message);
    expect(await run).toBe(outcome);
    expect(asked()).toBe(`Remove 4 failed jobs of ${queue.name}? [y/N] `);
    expect(shown().startsWith(told)).toBe(true);
    expect(await queue.getFailedCount()).toBe(left);
  });

  /** The job that waits fails. */
  async function failAnother(): Promise<void> {
    const worker = stage.worker(async () => {
      throw new Error('later');
    });
    await new EventLog(worker, ['failed']).get('failed');
    await worker.close();
  }

  it.each([
    ['all of them', ['--all'], 4],
    ['those that hold a text', ['--text', 'mail'], 2],
  ])('removes no job that failed while somebody thought about the answer: %s', async (_, args, matched) => {
    const queue = await queueOfFailures();
    const { io, shown } = person('y\n', failAnother);
    expect(await failed.run([queue.name, 'remove', ...args], io)).toBe(0);
    expect(shown()).toBe(`Removed ${matched} of ${matched} failed jobs of ${queue.name}.\n`);
    expect((await queue.getJob('5'))?.failedReason).toBe('later');
    expect(await queue.getFailedCount()).toBe(5 - matched);
  });

  it('puts no job that failed later in the place of one that has left meanwhile', async () => {
    const queue = await queueOfFailures();
    const { io, shown } = person('y\n', async () => {
      await queue.remove('1');
      await failAnother();
    });
    expect(await failed.run([queue.name, 'remove', '--all'], io)).toBe(0);
    expect(shown()).toContain(`Removed 3 of 4 failed jobs of ${queue.name}; 1 had left the failed ones`);
    expect((await queue.getFailed()).map(({ id }) => id)).toEqual(['5']);
  });

  it('means the same ages after the answer as before the question', async () => {
    const queue = await queueOfFailures();
    const { io, shown } = person('y\n', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 7_200_000 });
    });
    try {
      expect(await failed.run([queue.name, 'replay', '--newer-than', '1h'], io)).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    expect(shown()).toBe(`Replayed 4 of 4 failed jobs of ${queue.name}.\n`);
  });

  it('takes those that failed first, whatever it looks for', async () => {
    const queue = await queueOfFailures();
    const removed = async (...args: string[]): Promise<string[]> => {
      const before = await found(queue);
      expect((await cli(['failed', queue.name, 'remove', ...args, '--limit', '1', '--yes'])).code).toBe(0);
      const left = new Set(await found(queue));
      return before.filter((id) => !left.has(id));
    };
    expect(await removed('--text', 'mail')).toEqual(['1']);
    expect(await removed('--name', 'mail', '--name', 'report')).toEqual(['2']);
    expect(await removed('--text', 'report')).toEqual(['3']);
  });

  it.each([
    ['replay', 'Replayed'],
    ['remove', 'Removed'],
  ])('%s does what it can of the ids, and names those that no failed job has', async (action, done) => {
    const queue = await queueOfFailures();
    const one = await cli(['failed', queue.name, action, '999', '1', '--yes']);
    expect(one).toEqual({
      code: 1,
      stdout: `${done} 1 of 1 failed job of ${queue.name}.\n`,
      stderr: `chasquimq: No failed job of ${queue.name} has the id 999.\n`,
    });
    const some = await cli(['failed', queue.name, action, '5', '2', '3', '--limit', '1', '--yes', '--json']);
    expect([some.code, JSON.parse(some.stdout)]).toMatchObject([1, { matched: 1, done: 1, skipped: 0 }]);
    expect(await found(queue)).toEqual(['4', '3']);
  });

  it.each([['id'], ['text'], ['name']])('removes a parent by its %s, and not its children', async (by) => {
    const queue = stage.queue();
    const worker = stage.worker(async ({ name }) => {
      if (name === 'parent') throw new Error('on purpose');
    });
    const log = new EventLog(worker, ['failed']);
    const { job } = await stage.flowProducer().add({
      ...{ name: 'parent', queueName: queue.name },
      children: [{ name: 'child', queueName: queue.name }],
    });
    await log.get('failed');
    const which = { id: [job.id ?? ''], text: ['--text', 'purpose'], name: ['--name', 'parent'] }[by] ?? [];
    expect((await cli(['failed', queue.name, 'remove', ...which, '--yes'])).code).toBe(0);
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 1, failed: 0 });
  });

  it.each([['replay'], ['remove']])('%s skips a job that somebody has replayed meanwhile', async (action) => {
    const queue = await queueOfFailures();
    const { io, shown } = person('y\n', async () => (await queue.getJob('1'))?.retry());
    expect(await failed.run([queue.name, action, '--text', 'mail'], io)).toBe(0);
    expect(shown()).toContain(`d 1 of 2 failed jobs of ${queue.name}; 1 had left the failed ones`);
    expect(await queue.getJobState('1')).toBe('waiting');
  });
});

describe('failed, where the server refuses', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();

  it.each([['replay'], ['remove']])('says so, and does not %s on as if the jobs had left', async (action) => {
    const queue = stage.queue({ connection: own.connection });
    const worker = stage.worker(
      async () => {
        throw new Error('on purpose');
      },
      { connection: own.connection },
    );
    await queue.add('fails', 1);
    await new EventLog(worker, ['failed']).get('failed');
    await worker.close();
    const env = { REDIS_URL: `redis://127.0.0.1:${own.server.port}` };
    const args = ['failed', queue.name, action, '1', '--yes'];
    await own.redis.config('SET', 'min-replicas-to-write', '1');
    try {
      const refused = await cli(args, { env });
      expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('NOREPLICAS') });
    } finally {
      await own.redis.config('SET', 'min-replicas-to-write', '0');
    }
    expect((await cli(args, { env })).code).toBe(0);
  });
});
