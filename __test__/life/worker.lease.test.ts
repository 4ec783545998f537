// A worker keeps its jobs as long as its process lives, whatever its handlers do to the event loop.
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { connection } from '../support/redis.js';
import { ROOT } from '../support/registry.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

/** Longer than a machine under load keeps a thread waiting for a core. */
const LOCK_MS = 1_000;

/** Looks for lost workers more often than a lease lasts. */
const RECOVERER = { lockDuration: LOCK_MS, stalledInterval: 100, drainDelay: 1 };

/** A lease and two scans take 1.2 s; the rest is for slow machines. */
const RECOVERY_MS = 25_000;

/** Another process, until its worker has completed a job. */
const OTHER = `
  const { Worker } = await import('chasquimq');
  const worker = new Worker(process.env.QUEUE, async () => 'other', { connection: JSON.parse(process.env.CONNECTION) });
  worker.on('completed', () => worker.close());`;

describe('worker.lease', () => {
  const stage = useStage(chasquimq);

  function otherProcess(how: 'sleep' | 'spin' | 'await' | 'run'): Program {
    const env = { QUEUE: stage.queueName, LOCK_DURATION: LOCK_MS, BLOCK_MS: 3 * LOCK_MS, HOW: how };
    return stage.keep(Program.start('blocking-worker.mjs', { env }));
  }

  /** A second worker, in this process, that takes over what a lost one leaves. */
  function recoverer(): EventLog {
    const worker = stage.worker(async () => 'second', RECOVERER);
    return new EventLog(worker, ['active', 'stalled', 'completed', 'failed']);
  }

  it.each([
    ['asleep', 'sleep'],
    ['busy', 'spin'],
  ] as const)('a handler that blocks the event loop (%s) for three lease times completes once', async (_, how) => {
    const queue = stage.queue();
    const global = stage.globalLog();
    const program = otherProcess(how);
    await queue.add('blocking', {});
    await program.said('running');
    const second = recoverer();
    await program.said('completed');
    program.tell('close');
    expect(await program.end()).toEqual({ code: 0, signal: null });

    expect(program.lines).toEqual(['running 1', 'ended 1', 'completed 1']);
    expect(second.names).toEqual([]);
    await global.get('drained');
    expect(global.names).toEqual(['added', 'waiting', 'active', 'completed', 'drained']);
    const job = await fetchJob(queue, '1');
    expect([job.returnvalue, job.attemptsStarted, job.attemptsMade, job.stalledCounter]).toEqual(['first', 1, 1, 0]);
  });

  it.each([
    ['is its own again', false],
    ['goes to another worker that is idle', true],
  ])(
    'a job that comes to an idle worker whose event loop is blocked for three lease times runs once: it %s',
    async (_, another) => {
      const queue = stage.queue();
      const global = stage.globalLog();
      const program = otherProcess('run');
      for (const nth of [1, 2, 3]) {
        await queue.add('quick', {});
        await program.said('completed', nth);
      }
      program.tell('block');
      await program.said('blocking');
      await queue.add('blocked', {});
      // it waits, or was taken before anybody could see that the event loop is blocked: then it is given up
      const second = another ? recoverer() : undefined;
      if (second) await second.get('completed');
      else await program.said('completed', 4);
      program.tell('close');
      expect(await program.end()).toEqual({ code: 0, signal: null });

      const ran = ['running 4', 'ended 4', 'completed 4'];
      expect(program.lines.slice(program.lines.indexOf('blocking') + 1)).toEqual(second ? [] : ran);
      expect(second?.names ?? []).toEqual(second ? ['active', 'completed'] : []);
      const taken = global.all<[{ jobId: string }]>('active').filter(([{ jobId }]) => jobId === '4');
      expect(taken.length).toBeOneOf(second ? [1, 2] : [1]);
      expect((await fetchJob(queue, '4')).attemptsStarted).toBe(1);
    },
  );

  it('what an event loop that is blocked behind an add has not read goes to another worker that is idle', async () => {
    const queue = stage.queue();
    // neither the end of a lease nor that of a wait is near
    const worker = stage.worker(async () => 'own', { lockDuration: 10 * RECOVERY_MS, drainDelay: 60 });
    const log = new EventLog(worker, ['completed']);
    for (const nth of [1, 2, 3]) {
      await queue.add('own', {});
      await log.get('completed', nth);
    }
    const added = queue.add('left', {});
    // by then it is sent, and the worker's step with it
    await new Promise((resolve) => process.nextTick(resolve));
    const env = { ...process.env, QUEUE: stage.queueName, CONNECTION: JSON.stringify(connection) };
    const args = ['--input-type=module', '--eval', OTHER];
    execFileSync(process.execPath, args, { cwd: ROOT, env, timeout: RECOVERY_MS });
    const { id } = await added;
    expect((await fetchJob(queue, id)).returnvalue).toBe('other');
  });

  // The same scan does find a process that stands still with its engine, so the tests above prove something.
  // stalled-in-one-scan: a wanted difference (docs/differences.md)
  it('a process that stands still loses its job, and its outcome is refused afterwards', async () => {
    const queue = stage.queue();
    const global = stage.globalLog();
    const program = otherProcess('await');
    await queue.add('held', {});
    await program.said('running');
    process.kill(program.pid, 'SIGSTOP');
    const second = recoverer();
    await second.get('completed', 1, RECOVERY_MS);
    expect(second.names).toEqual(['stalled', 'active', 'completed']);

    process.kill(program.pid, 'SIGCONT');
    program.tell('go');
    await program.said('ended');
    program.tell('close');
    expect(await program.end()).toEqual({ code: 0, signal: null });
    expect(program.lines.filter((line) => !line.startsWith('error'))).toEqual(['running 1', 'ended 1']);
    expect(program.lines).toContain('error Missing lock for job 1. moveToFinished');
    const job = await fetchJob(queue, '1');
    expect([job.returnvalue, job.attemptsStarted, job.attemptsMade, job.stalledCounter]).toEqual(['second', 2, 1, 1]);
    expect(global.all('completed')).toHaveLength(1);
  });

  it('a process that stood still starts nothing that it had taken in advance', async () => {
    const queue = stage.queue();
    const env = { QUEUE: stage.queueName, LOCK_DURATION: LOCK_MS };
    const program = stage.keep(Program.start('surplus-worker.mjs', { env }));
    await queue.addBulk(Array.from({ length: 3_000 }, () => ({ name: 'brief', data: {} })));
    await program.said('ran', 200);
    // until it is met with some in advance
    do {
      process.kill(program.pid, 'SIGCONT');
      await program.said('ran', program.lines.length + 5);
      process.kill(program.pid, 'SIGSTOP');
    } while ((await queue.getActiveCount()) < 5);
    const others = new Set<string>();
    stage.worker(async (job) => void others.add(String(job.id)), { ...RECOVERER, concurrency: 10 });
    await until('all jobs to be run', async () => (await queue.getCompletedCount()) === 3_000, RECOVERY_MS);

    const before = program.lines.length;
    process.kill(program.pid, 'SIGCONT');
    program.tell('close');
    expect(await program.end()).toEqual({ code: 0, signal: null });
    const started = program.lines.slice(before).filter((line) => line.startsWith('ran '));
    // it may have stood still on the way into a handler
    expect(started.length, started.join()).toBeLessThanOrEqual(1);
    expect(others.size).toBeGreaterThan(0);
  });
});
