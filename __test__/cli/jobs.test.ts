import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Queue } from 'bullmq';
import { Queue as OwnQueue } from '../../src/index.js';
import { cancel } from '../../src/tools/cli/commands/cancel.js';
import { jobs } from '../../src/tools/cli/commands/jobs.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli } from '../support/cli.js';
import { person } from '../support/person.js';
import { useStage } from '../support/stage.js';
import { EventLog, Gate, rejection, until } from '../support/waiting.js';

describe('jobs', () => {
  const stage = useStage(chasquimq);

  /** 1 has completed and 2 failed; 3 and 4 wait, `later` is delayed, `of-a` is in a group, `top` has a priority. */
  async function queueOfMany(): Promise<Queue> {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.name === 'bad') throw new Error('connect ECONNREFUSED');
      return { sent: true };
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk([
      { name: 'mail', data: { to: 'Ana' } },
      { name: 'bad', data: { to: 'Bo' } },
    ]);
    await log.get('completed');
    await log.get('failed');
    await worker.close();
    await queue.addBulk([
      { name: 'mail', data: { to: 'Ana', n: 3 } },
      { name: 'call', data: { to: 'Bo', n: 4 } },
    ]);
    await queue.add('mail', { to: 'Cy' }, { jobId: 'later', delay: 3_600_000 });
    await queue.add('mail', { to: 'Di' }, { jobId: 'of-a', group: { id: 'a' } } as object);
    await queue.add('mail', { to: 'Ed' }, { jobId: 'top', priority: 1 });
    return queue;
  }

  async function found(queue: Queue, ...args: string[]): Promise<string[]> {
    const { code, stdout, stderr } = await cli(['jobs', 'find', queue.name, ...args, '--json']);
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout).map(({ id }: { id: string }) => id);
  }

  it('finds jobs in every state', async () => {
    const queue = await queueOfMany();
    expect(await found(queue)).toEqual(['later', 'top', '3', '4', 'of-a', '1', '2']);
    expect(await found(queue, '--state', 'waiting', '--limit', '2')).toEqual(['3', '4']);
    expect(await found(queue, '--state', 'failed', '--state', 'completed')).toEqual(['2', '1']);
    expect(await found(queue, '--name', 'mail', '--state', 'waiting')).toEqual(['3', 'of-a']);
    expect(await found(queue, '--data', '{"to":"Ana"}')).toEqual(['3', '1']);
    expect(await found(queue, '--data', 'Bo')).toEqual(['4', '2']);
    expect(await found(queue, '--group', 'a')).toEqual(['of-a']);
    expect(await found(queue, '--parent', 'nobody')).toEqual([]);
    expect(await found(queue, '--reason', 'ECONNREFUSED')).toEqual(['2']);
    expect(await found(queue, '--text', 'ANA')).toEqual(['3', '1']);
    expect(await found(queue, '--older-than', '1h')).toEqual([]);
    expect((await cli(['jobs', 'count', queue.name, '--name', 'mail'])).stdout).toBe('5\n');
    expect((await cli(['jobs', 'find', queue.name, '--name', 'none'])).stdout).toBe('No jobs match.\n');
    const { stdout } = await cli(['jobs', 'find', queue.name, '--state', 'failed']);
    expect(stdout.split('\n')[1]).toMatch(/^failed +2 +bad +\d+m?s +1 +connect ECONNREFUSED$/);
  });

  it('shows jobs with their state', async () => {
    const queue = await queueOfMany();
    const { code, stdout } = await cli(['jobs', 'show', queue.name, '1', 'later', '--json']);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      [
        { id: '1', state: 'completed', returnvalue: { sent: true }, logs: [] },
        { id: 'later', state: 'delayed', data: { to: 'Cy' } },
      ],
    ]);
    const shown = await cli(['jobs', 'show', queue.name, '1', 'gone']);
    expect([shown.code, shown.stderr]).toEqual([1, `chasquimq: No job of ${queue.name} has the id gone.\n`]);
    expect(shown.stdout).toMatch(/^ {2}state {5}completed$/m);
    expect(shown.stdout).toMatch(/^ {2}returned {2}\{"sent":true\}$/m);
  });

  it('removes, retries, promotes and moves them', async () => {
    const queue = await queueOfMany();
    const run = async (...args: string[]): Promise<object> => {
      const { code, stdout, stderr } = await cli(['jobs', ...args, '--yes', '--json']);
      expect([code, stderr]).toEqual([0, '']);
      return JSON.parse(stdout);
    };
    const of = { queue: queue.name, skipped: 0 };
    expect(await run('remove', queue.name, '--data', '{"n":4}')).toEqual({
      ...of,
      action: 'remove',
      matched: 1,
      done: 1,
    });
    expect(await run('retry', queue.name, '--all', '--reset-attempts')).toMatchObject({ action: 'retry', done: 1 });
    expect((await queue.getJob('2'))?.attemptsMade).toBe(0);
    expect(await run('retry', queue.name, '1', '--state', 'completed')).toMatchObject({ matched: 1, done: 1 });
    expect(await run('promote', queue.name, 'later')).toMatchObject({ action: 'promote', done: 1 });
    expect(await run('remove', queue.name, '--state', 'waiting', '--text', 'bad')).toMatchObject({ done: 1 });
    expect(await found(queue)).toEqual(['top', '3', '1', 'later', 'of-a']);
  });

  it('cancels jobs that have not ended, by what they have or by their ids', async () => {
    const queue = await queueOfMany();
    const { stdout } = await cli(['jobs', 'cancel', queue.name, '--name', 'mail', '--why', 'late', '--yes', '--json']);
    expect(JSON.parse(stdout)).toEqual({ queue: queue.name, action: 'cancel', matched: 4, done: 4, skipped: 0 });
    expect((await queue.getJob('top'))?.failedReason).toBe('The job was cancelled: late');
    const byId = await cli(['jobs', 'cancel', queue.name, '4', '--yes']);
    expect([byId.code, byId.stdout]).toEqual([0, `Cancelled 1 of 1 job of ${queue.name}.\n`]);
    expect(await found(queue, '--state', 'waiting', '--state', 'delayed')).toEqual([]);
  });

  it('cancel says of each job what became of it', async () => {
    const queue = await queueOfMany();
    const { code, stdout, stderr } = await cli(['cancel', queue.name, '3', '1', '9', '--why', 'late', '--json']);
    const jobs = [
      { id: '3', became: 'cancelled' },
      { id: '1', became: 'ended' },
      { id: '9', became: 'missing' },
    ];
    expect([code, JSON.parse(stdout)]).toEqual([1, { queue: queue.name, jobs }]);
    expect(stderr).toBe(`chasquimq: No job of ${queue.name} has the id 9.\n`);
    expect((await queue.getJob('3'))?.failedReason).toBe('The job was cancelled: late');
    const removed = await cli(['cancel', queue.name, 'top', '--remove', '--cascade', '--wait', '1s']);
    expect([removed.code, removed.stdout]).toEqual([0, 'ID   BECAME\ntop  cancelled\n']);
    expect(await queue.getJob('top')).toBeUndefined();
    expect((await cli(['cancel', queue.name])).code).toBe(2);
  });

  /** A flow whose child runs until it is cancelled or, deaf to that, until the gate opens; `p` waits for it. */
  async function running(gate?: Gate): Promise<EventLog> {
    const log = new EventLog(
      stage.worker(async ({ id }, _, signal) => {
        if (id === 'p') return;
        await (gate?.opened ?? new Promise<void>((resolve) => signal!.addEventListener('abort', () => resolve())));
        return 'ended';
      }),
      ['active', 'completed'],
    );
    const at = { name: 'report', queueName: stage.queueName };
    await stage.flowProducer().add({ ...at, opts: { jobId: 'p' }, children: [{ ...at, opts: { jobId: 'c' } }] });
    await log.get('active');
    return log;
  }

  it.each([
    ['a filter', ['--name', 'report', '--state', 'active', '--wait']],
    ['ids', ['c', '--wait', '1m']],
  ])('cancels by %s, and waits until what runs has ended', async (_, args) => {
    await running();
    const { code, stdout, stderr } = await cli(['jobs', 'cancel', stage.queueName, '--yes', '--json', ...args]);
    expect([code, JSON.parse(stdout), stderr]).toMatchObject([0, { matched: 1, done: 1 }, '']);
    expect(await stage.queue().getJobState('c')).toBe('completed');
  });

  it.each([
    ['a filter', ['--state', 'waiting-children', '--all']],
    ['ids', ['p']],
  ])('cancels by %s, and with cascade children that are not named', async (_, args) => {
    const log = await running();
    const { stdout } = await cli(['jobs', 'cancel', stage.queueName, ...args, '--cascade', '--yes']);
    expect(stdout).toBe(`Cancelled 1 of 1 job of ${stage.queueName}.\n`);
    await log.get('completed');
    expect(await stage.queue().getJobState('p')).toBe('failed');
  });

  it.each([
    ['a filter', ['jobs', 'cancel'], ['--name', 'report', '--yes']],
    ['ids', ['jobs', 'cancel'], ['p', 'c', '--yes']],
    ['ids alone', ['cancel'], ['p', 'c']],
  ])('by %s it names a job that runs for longer than it waits', async (_, command, args) => {
    const gate = new Gate();
    const log = await running(gate);
    const { code, stdout, stderr } = await cli([...command, stage.queueName, ...args, '--wait', '100ms']);
    gate.open();
    await log.get('completed');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(`chasquimq: Job c still runs 100 ms after it was cancelled; 2 jobs were cancelled.\n`);
  });

  it.each([
    ['a filter', jobs, ['cancel'], ['--name', 'report', '--yes']],
    ['ids', jobs, ['cancel'], ['p', 'c', '--yes']],
    ['ids alone', cancel, [], ['p', 'c']],
  ])('by %s it ends where it is told to while it waits', async (_, command, action, args) => {
    const gate = new Gate();
    const log = await running(gate);
    const ending = new AbortController();
    const io = { ...person('').io, signal: ending.signal };
    const run = command.run([...action, stage.queueName, ...args, '--wait'], io);
    await until('the first to be cancelled', async () => (await stage.queue().getJobState('p')) === 'failed');
    ending.abort();
    const { message } = await rejection(run);
    gate.open();
    await log.get('completed');
    expect(message).toMatch(/^Stopped when [12] jobs were cancelled\.$/);
  });

  /** Somebody who types Ctrl-C once the first of these calls of a queue has ended, or the first 500 of them. */
  function stopping(method: 'findJobs' | 'getJobState' | 'remove' | 'cancelJob') {
    vi.restoreAllMocks();
    const ending = new AbortController();
    const call = OwnQueue.prototype[method] as (...args: unknown[]) => Promise<unknown>;
    vi.spyOn(OwnQueue.prototype, method).mockImplementation(async function (this: unknown, ...args: unknown[]) {
      const answer = await Reflect.apply(call, this, args);
      ending.abort();
      return answer as never;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const { io, shown } = person('');
    return { io: { ...io, signal: ending.signal }, shown };
  }

  const IDS = Array.from({ length: 1_100 }, (_, i) => `j${i}`);

  /** A queue of 1,100 jobs that wait, of which every second one says `odd`. */
  async function queueOfHundreds(): Promise<Queue> {
    const queue = stage.queue();
    await queue.addBulk(IDS.map((jobId, i) => ({ name: 'job', data: i % 2 ? 'odd' : 'even', opts: { jobId } })));
    return queue;
  }

  it('shows what it has found when it is told to end, and says that there may be more', async () => {
    const queue = await queueOfHundreds();
    const args = [queue.name, '--state', 'waiting', '--limit', '2000', '--json'];
    const text = stopping('findJobs');
    const stopped = await rejection(jobs.run(['find', ...args, '--text', 'odd'], text.io));
    expect(stopped).toMatchObject({ name: 'Failure', message: 'Stopped when 250 jobs were found.' });
    expect(JSON.parse(text.shown()).map(({ id }: { id: string }) => id)).toEqual(
      IDS.slice(0, 500).filter((_, i) => i % 2),
    );
    const byId = stopping('getJobState');
    expect(await rejection(jobs.run(['show', queue.name, ...IDS, 'gone', '--json'], byId.io))).toMatchObject({
      message: 'Stopped when 500 jobs were found.',
    });
    expect(JSON.parse(byId.shown())).toHaveLength(500);
    const count = await rejection(jobs.run(['count', ...args.slice(0, 3), '--text', 'odd'], stopping('findJobs').io));
    expect(count.message).toBe('Stopped when 250 jobs were found.');
  });

  it('changes no more jobs when it is told to end, and says how many it has changed', async () => {
    const queue = await queueOfHundreds();
    const args = ['remove', queue.name, '--yes'];
    const finding = await rejection(jobs.run([...args, '--text', 'odd'], stopping('findJobs').io));
    expect([finding.message, await queue.getWaitingCount()]).toEqual(['Stopped when 0 jobs were removed.', 1_100]);
    const removing = await rejection(jobs.run([...args, '--text', 'odd', '--limit', '501'], stopping('remove').io));
    expect([removing.message, await queue.getWaitingCount()]).toEqual(['Stopped when 500 jobs were removed.', 600]);
    const cancelling = await rejection(cancel.run([queue.name, ...IDS], stopping('cancelJob').io));
    // every second one of these 500 was removed
    expect([cancelling.message, await queue.getFailedCount()]).toEqual(['Stopped when 250 jobs were cancelled.', 250]);
  });

  it('moves jobs to another queue', async () => {
    const queue = await queueOfMany();
    const other = stage.queue({}, 'other');
    const args = ['jobs', 'move', queue.name, '--to', other.name, '--name', 'mail', '--state', 'waiting', '--yes'];
    const { code, stdout } = await cli(args);
    expect([code, stdout]).toEqual([0, `Moved 2 of 2 jobs of ${queue.name}.\n`]);
    expect((await other.getWaiting()).map(({ data }) => data)).toEqual([{ to: 'Ana', n: 3 }, { to: 'Di' }]);
    expect(await found(queue, '--state', 'waiting')).toEqual(['4']);
  });

  it('asks somebody at a terminal', async () => {
    const queue = await queueOfMany();
    const { io, asked, shown } = person('y\n');
    expect(await jobs.run(['promote', queue.name, '--all'], io)).toBe(0);
    expect(asked()).toBe(`Promote 1 job of ${queue.name}? [y/N] `);
    expect(shown()).toBe(`Promoted 1 of 1 job of ${queue.name}.\n`);
    expect(await queue.getJobState('later')).toBe('waiting');
  });

  it.each([
    [[], 'Say what to do: chasquimq jobs <action> <queue>.'],
    [['find'], 'Name a queue: chasquimq jobs find <queue>.'],
    [['fnd', 'q'], 'There is no action fnd. Did you mean find?'],
    [['find', 'q', '--state', 'done'], 'find is about jobs that are waiting-children, delayed,'],
    [['promote', 'q', '--state', 'failed', '--yes'], 'promote is about jobs that are delayed, not "failed".'],
    [['remove', 'q', '--yes'], 'remove wants ids, something to look for, or --all.'],
    [['remove', 'q', '--all'], 'remove changes jobs, and there is nobody to ask: say --yes.'],
    [
      ['remove', 'q', '--all', '--name', 'x', '--yes'],
      '--all means every job of these states: leave out the rest, or --all.',
    ],
    [['move', 'q', '--all', '--yes'], 'move wants a queue to move jobs to: --to <queue>.'],
    [['move', 'q', '5', '--to', 'p', '--yes'], 'move takes what the server finds: leave out ids and --text.'],
    [['find', 'q', '--why', 'p'], '--why belongs to cancel.'],
    [['find', 'q', '--cascade'], '--cascade belongs to cancel.'],
    [['find', 'q', '--wait'], '--wait belongs to cancel.'],
    [['find', 'q', '--wait', '5s'], '--wait belongs to cancel.'],
    [['cancel', 'q', '5', '--wait', '0s', '--yes'], '--wait must be longer than 0.'],
    [['cancel', 'q', '5', '--wait', '6', '--yes'], '--wait must be a time such as 30s, 5m, 2h or 7d, not "6".'],
    [['cancel', 'q', '5', '--wait=', '--yes'], '--wait is empty.'],
    [['find', 'q', '--to', 'p'], '--to belongs to move.'],
    [['find', 'q', '--reset-attempts'], '--reset-attempts belongs to retry.'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await cli(['jobs', ...args]);
    expect([code, stderr.startsWith(`chasquimq jobs: ${message}`)]).toEqual([2, true]);
  });
});
