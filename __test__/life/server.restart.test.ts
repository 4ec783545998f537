// A server that is killed and comes back: what it had acknowledged is there and is processed, what it had not is sent
// again, once.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const RESTARTS = 3;

/** Connections are tried again twice a second at least; the rest is for slow machines. */
const RECOVERY_MS = 25_000;

describe('server.restart', () => {
  const stage = useStage(chasquimq);

  /** Every write is on disk before it is acknowledged. */
  async function durableServer(): Promise<OwnServer> {
    return stage.keep(await OwnServer.start('--appendonly', 'yes', '--appendfsync', 'always'));
  }

  it('all jobs are there and run once, whenever the server dies', async () => {
    const own = await durableServer();
    const { connection } = own;
    const random = new Random(9);
    const queue = stage.queue({ connection });
    const failures = new EventLog(queue, ['error']);
    const runs: number[] = [];
    const worker = stage.worker(async (job) => runs.push(job.data as number), { connection, concurrency: 10 });
    const completed = new Set<string>();
    stage.events({ connection }).on('completed', ({ jobId }) => completed.add(jobId));

    let made = 0;
    let adding = true;
    const ids: string[] = [];
    const note = (job: Job) => ids.push(String(job.id));
    const singly = async () => {
      while (adding) note(await queue.add('job', made++));
    };
    const inBulk = async () => {
      while (adding)
        (await queue.addBulk(Array.from({ length: 7 }, () => ({ name: 'job', data: made++ })))).forEach(note);
    };
    const adders = [singly(), singly(), singly(), inBulk()];

    for (let restart = 0; restart < RESTARTS; restart++) {
      const acknowledged = ids.length + 50 + random.next(200);
      await until('some jobs to be added', () => ids.length >= acknowledged);
      const failed = failures.entries.length;
      await own.kill();
      const [before, ranBefore] = [ids.length, runs.length];
      // It stays away until the queue has tried to connect several times in vain.
      await failures.get('error', failed + 2 + 2 * restart);
      await own.start();
      await until('adds to go on', () => ids.length > before + 10, RECOVERY_MS);
      await until('jobs to run', () => runs.length > ranBefore + 10, RECOVERY_MS);
    }
    adding = false;
    await Promise.all(adders);
    await until('all jobs to complete', async () => (await queue.getCompletedCount()) === made, RECOVERY_MS);

    expect([ids.length, new Set(ids).size]).toEqual([made, made]);
    const numbers = Array.from({ length: made }, (_, i) => i);
    expect(runs.sort((a, b) => a - b)).toEqual(numbers);
    expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({ waiting: 0, active: 0, failed: 0 });
    await until('all events', () => completed.size === made, RECOVERY_MS);
    await worker.close();
    expectConnectionErrors(stage.takeErrors(), connection);
  });

  it('a job that ran meanwhile completes, and an idle worker hears of the next', async () => {
    const own = await durableServer();
    const { connection } = own;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const worker = stage.worker((job) => (job.name === 'held' ? gate.opened : Promise.resolve()), { connection });
    const log = new EventLog(worker, ['active', 'completed', 'failed', 'stalled', 'drained']);
    await queue.add('held', {});
    await log.get('active');
    await own.kill();
    gate.open();
    const adding = queue.add('meanwhile', {});
    await own.start();
    expect((await adding).id).toBe('2');
    await log.get('completed', 2, RECOVERY_MS);
    await log.get('drained', 1, RECOVERY_MS);

    // Now both sides wait for news, and notice only by themselves that the connections are gone.
    await own.kill();
    await own.start();
    await queue.add('afterwards', {});
    await log.get('completed', 3, RECOVERY_MS);
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['held', 'meanwhile', 'afterwards']);
    expect(log.names).not.toContain('stalled');
    expectConnectionErrors(stage.takeErrors(), connection);
  });

  it('delayed jobs and retries that fell due meanwhile run when it is back', async () => {
    const own = await durableServer();
    const { connection } = own;
    const queue = stage.queue({ connection });
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'retried' && job.attemptsMade === 0) throw new Error('first');
      },
      { connection },
    );
    const log = new EventLog(worker, ['failed', 'completed']);
    await queue.add('delayed', {}, { delay: 300 });
    await queue.add('retried', {}, { attempts: 2, backoff: 300 });
    await log.get('failed');
    await own.kill();
    await own.start();
    await log.get('completed', 2, RECOVERY_MS);
    expect(log.names).toEqual(['failed', 'completed', 'completed']);
    expectConnectionErrors(stage.takeErrors(), connection);
  });
});

/** Errors that say no more than that the server at that place was away, or went away. */
function expectConnectionErrors(errors: Error[], { host, port }: { host: string; port: number }): void {
  const away = [`${host}:${port}`, 'read ECONNRESET', 'write EPIPE'];
  const messages = errors.map(({ message }) => message);
  expect(messages.filter((message) => !away.some((text) => message.includes(text)))).toEqual([]);
}
