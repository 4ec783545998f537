// SIGTERM with a time limit (docs/production.md): running jobs end, or go back to the front; none waits for its lease to run out. And close() in
// every phase of a worker's connection: it resolves, and leaves no job active.
import { describe, expect, it } from 'vitest';
import type { Worker } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Program } from '../support/program.js';
import { closedPort } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const WAIT_MS = 300_000;

describe('worker.terminate', () => {
  const stage = useStage(chasquimq);

  it.each([
    ['that end in time are completed', ['soon', 'soon', 'soon'], 30_000, 'closed'],
    ['that do not end head the waiting list', ['never', 'soon', 'never'], 5_000, 'given'],
  ] as const)('at SIGTERM running jobs %s', { timeout: WAIT_MS }, async (_, names, limit, last) => {
    const queue = stage.queue();
    const env = { QUEUE: stage.queueName, LIMIT_MS: limit };
    const program = stage.keep(Program.start('terminates.mjs', { env }));
    const running = await queue.addBulk(names.map((name) => ({ name, data: {} })));
    await program.said('started', names.length, WAIT_MS);
    await queue.pause();
    const later = await queue.add('later', {});
    const ending = program.kill('SIGTERM');
    await program.said(last, 1, WAIT_MS);
    expect(await ending, program.errors).toEqual({ code: 0, signal: null });

    expect(await queue.getActiveCount()).toBe(0);
    const ids = (jobs: { id?: string }[]) => jobs.map(({ id }) => String(id)).sort();
    const done = running.filter(({ name }) => name === 'soon');
    expect(ids(await queue.getCompleted())).toEqual(ids(done));
    const back = running.filter(({ name }) => name === 'never');
    const log = new EventLog(
      stage.worker(async () => {}),
      ['completed'],
    );
    await queue.resume();
    const ended: string[] = [];
    for (let n = 1; n <= back.length + 1; n++) {
      const [job] = await log.get<[{ id: string }]>('completed', n, WAIT_MS);
      ended.push(job.id);
    }
    expect(ended.slice(0, -1).sort()).toEqual(ids(back));
    expect(ended.at(-1)).toBe(String(later.id));
  });

  describe('close()', () => {
    const opts = { concurrency: 2, drainDelay: 30, lockDuration: 600_000, skipStalledCheck: true };

    async function jobsAreFree(): Promise<void> {
      const queue = stage.queue();
      expect(await queue.getActiveCount()).toBe(0);
    }

    it('while it connects', { timeout: WAIT_MS }, async () => {
      await stage.queue().add('job', {});
      const worker = stage.worker(async () => {}, opts);
      await worker.close();
      await jobsAreFree();
    });

    // close-without-a-server: a wanted difference (docs/differences.md)
    it('while it tries to reach a server that is not there', { timeout: WAIT_MS }, async () => {
      const connection = { host: '127.0.0.1', port: await closedPort() };
      const worker = new chasquimq.Worker(stage.queueName, async () => {}, { ...opts, connection });
      const errors = new EventLog(worker, ['error']);
      await errors.get('error', 2, WAIT_MS);
      await worker.close();
    });

    it('in the tick in which a job arrives', { timeout: WAIT_MS }, async () => {
      const queue = stage.queue();
      const worker: Worker = stage.worker(async () => {}, opts);
      const arrived = new Promise<void>((resolve) => worker.once('active', () => resolve(worker.close())));
      await worker.waitUntilReady();
      await queue.addBulk(Array.from({ length: 50 }, (_, n) => ({ name: 'job', data: n })));
      await arrived;
      await jobsAreFree();
      const { completed = 0, waiting = 0 } = await queue.getJobCounts('completed', 'waiting');
      expect(completed + waiting).toBe(50);
    });

    it('while a failed job waits for its next try', { timeout: WAIT_MS }, async () => {
      const queue = stage.queue();
      const worker = stage.worker(() => Promise.reject(new Error('no')), opts);
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {}, { attempts: 3, backoff: 600_000 });
      await log.get('failed', 1, WAIT_MS);
      await worker.close();
      expect(await queue.getJobCounts('active', 'delayed')).toEqual({ active: 0, delayed: 1 });
    });

    it('while it connects again, with a job running', { timeout: WAIT_MS }, async () => {
      const own = await OwnServer.start('--appendonly', 'yes', '--appendfsync', 'always');
      const connection = own.connection;
      const queue = new chasquimq.Queue(stage.queueName, { connection });
      queue.on('error', () => {});
      const gate = stage.gate();
      const worker = new chasquimq.Worker(stage.queueName, () => gate.opened, { ...opts, connection });
      const log = new EventLog(worker, ['active', 'error']);
      const job = await queue.add('job', {});
      await log.get('active', 1, WAIT_MS);
      await own.kill();
      await log.get('error', 1, WAIT_MS);
      const closing = worker.close();
      await own.start();
      gate.open();
      await closing;
      // recorded when the server was back in time; else the job is active, for its lease alone
      await until('an answer', () => queue.getJobState(String(job.id)), WAIT_MS);
      expect(['completed', 'active']).toContain(await queue.getJobState(String(job.id)));
      await queue.close();
      await own.close();
    });
  });
});
