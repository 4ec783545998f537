// `expireAfter` of a job, and deduplication until a job has started.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JobExpiredError } from '../../src/index.js';
import type { BatchOptions, FlowJob, Job, JobsOptions, Queue, WorkerOptions, Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const REASON = 'job expired before it started';
/** Looks soon and often for what nobody takes. */
const OFTEN: Partial<WorkerOptions> = { stalledInterval: 20 };
/** Finds only what it takes itself. */
const TAKES: Partial<WorkerOptions> = { skipStalledCheck: true };
const NEVER_MS = 3_600_000;

const late = (): Date => new Date(Date.now() - 1000);

describe('a job that has not started in time', () => {
  const stage = useStage(chasquimq);

  const queueOf = (part = ''): Queue => stage.queue({}, part) as unknown as Queue;

  /** A worker that tells which jobs it ran. */
  function runs(opts = TAKES, part = ''): { worker: Worker; log: EventLog; ran: string[] } {
    const ran: string[] = [];
    const worker = stage.worker((job) => Promise.resolve(void ran.push(job.name)), opts, part) as never;
    return { worker, ran, log: new EventLog(worker, ['completed', 'failed']) };
  }

  it('fails for good when a worker would start it, and the queue and its worker are told', async () => {
    const queue = queueOf();
    const events = stage.globalLog();
    const job = await queue.add('late', {}, { expireAfter: late(), attempts: 3 });
    await queue.add('timely', {}, { expireAfter: NEVER_MS });
    const { log, ran } = runs();
    await log.get('completed');
    const [failed, error] = log.all<[Job, Error]>('failed')[0];
    expect(error).toBeInstanceOf(JobExpiredError);
    expect(error).toMatchObject({ name: 'JobExpiredError', message: REASON, code: 'ERR_JOB_EXPIRED' });
    expect([failed.id, ran]).toEqual([job.id, ['timely']]);
    await events.get('completed');
    expect(events.all('failed')).toMatchObject([[{ jobId: job.id, failedReason: REASON }, expect.anything()]]);
    expect(await queue.getJobCounts('failed', 'completed')).toEqual({ failed: 1, completed: 1 });
  });

  it('expires some milliseconds after its add', async () => {
    const queue = queueOf();
    const job = await queue.add('late', {}, { expireAfter: 1 });
    await until('its time', () => Date.now() > job.timestamp + 1);
    const { log } = runs();
    expect((await log.get<[Job]>('failed'))[0].id).toBe(job.id);
  });

  it('fails where nobody takes it, whatever it waits for, also in a queue that is paused', async () => {
    const queue = queueOf();
    const events = stage.globalLog();
    await queue.pause();
    const expireAfter = late();
    await queue.addBulk([
      { name: 'waiting', data: {}, opts: { expireAfter } },
      { name: 'first', data: {}, opts: { expireAfter, lifo: true } },
      { name: 'delayed', data: {}, opts: { expireAfter, delay: NEVER_MS } },
      { name: 'prioritized', data: {}, opts: { expireAfter, priority: 2 } },
      { name: 'grouped', data: {}, opts: { expireAfter, group: { id: 'a' } } },
      { name: 'named', data: {}, opts: { expireAfter, jobId: 'own' } },
      { name: 'deduplicated', data: {}, opts: { expireAfter, deduplication: { id: 'd' } } },
      { name: 'large', data: 'x'.repeat(3_000_000), opts: { expireAfter } },
      { name: 'removed', data: {}, opts: { expireAfter, removeOnFail: true } },
      { name: 'other', data: {} },
    ]);
    const flow = { name: 'parent', queueName: stage.name(), opts: { expireAfter }, children: [leaf('child')] };
    await stage.flowProducer().add(flow as never);
    const { ran } = runs(OFTEN);
    await until('all to fail', async () => (await queue.getFailedCount()) === 9);
    const failed = await queue.getFailed();
    expect(failed.map(({ name }) => name).sort()).toEqual(
      ['deduplicated', 'delayed', 'first', 'grouped', 'large', 'named', 'parent', 'prioritized', 'waiting'].sort(),
    );
    expect(new Set(failed.map(({ failedReason }) => failedReason))).toEqual(new Set([REASON]));
    // what never started counts no try
    expect(new Set(failed.flatMap(({ attemptsMade, attemptsStarted }) => [attemptsMade, attemptsStarted]))).toEqual(
      new Set([0]),
    );
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
    expect(await queue.getJobCounts('waiting', 'delayed', 'prioritized', 'waiting-children')).toEqual({
      waiting: 2,
      delayed: 0,
      prioritized: 0,
      'waiting-children': 0,
    });
    expect(ran).toEqual([]);
    await queue.resume();
    await until('the others to run', () => ran.length === 2);
    expect(ran.sort()).toEqual(['child', 'other']);
    // behind all that the sweep told
    await events.get('completed', 2);
    const told = events.all<[{ jobId: string }]>('failed').map(([{ jobId }]) => jobId);
    expect([told.length, new Set(told).size]).toEqual([10, 10]);
  });

  const leaf = (name: string, opts: JobsOptions = {}): FlowJob => ({ name, queueName: stage.name(), data: {}, opts });

  it('tells its parent as any child that failed', async () => {
    const flow = stage.flowProducer();
    const expireAfter = late();
    const tree = (name: string, opts: JobsOptions): Promise<{ job: { id?: string } }> =>
      flow.add({ ...leaf(name), children: [leaf(`${name}-child`, { expireAfter, ...opts })] });
    const failing = await tree('fails', { failParentOnFailure: true });
    await tree('ignores', { ignoreDependencyOnFailure: true });
    const { log, ran } = runs();
    await log.get('completed');
    await log.when('the parent to fail', () => log.all('failed').length === 3);
    expect(ran).toEqual(['ignores']);
    expect((await fetchJob(stage.queue(), failing.job.id)).failedReason).toMatch(/^child .* failed$/);
  });

  it('lets its parent start, of which an idle worker is told', async () => {
    const { log, ran } = runs({ ...OFTEN, drainDelay: NEVER_MS });
    const opts = { expireAfter: 30, delay: NEVER_MS, ignoreDependencyOnFailure: true };
    await stage.flowProducer().add({ ...leaf('parent'), children: [leaf('child', opts)] });
    await log.get('completed');
    expect(ran).toEqual(['parent']);
  });

  it('may be tried again when it had started once', async () => {
    const queue = queueOf();
    const tries: number[] = [];
    const expireAfter = 50;
    const job = await queue.add('job', {}, { expireAfter, attempts: 2, backoff: 60 });
    const handler = (running: { attemptsStarted: number }): Promise<void> => {
      tries.push(running.attemptsStarted);
      return tries.length === 1 ? Promise.reject(new Error('once')) : Promise.resolve();
    };
    const log = new EventLog(stage.worker(handler as never, OFTEN), ['completed', 'failed']);
    await log.get('completed');
    expect(Date.now()).toBeGreaterThan(job.timestamp + expireAfter);
    expect(log.all<[Job, Error]>('failed').map(([, { message }]) => message)).toEqual(['once']);
  });

  it('runs when somebody has it tried again', async () => {
    const queue = queueOf();
    const job = await queue.add('job', {}, { expireAfter: late() });
    const { log, ran } = runs();
    await log.get('failed');
    const failed = (await queue.getJob(job.id!))!;
    expect(failed.stacktrace![0]).toContain(`JobExpiredError: ${REASON}`);
    await failed.retry();
    await log.get('completed');
    expect(ran).toEqual(['job']);
  });

  it('comes from defaults, flows and schedulers as well', async () => {
    const queue = stage.queue({ defaultJobOptions: { expireAfter: late() } as never }) as unknown as Queue;
    await queue.add('default', {});
    await queue.add('own', {}, { expireAfter: undefined });
    await stage.flowProducer().add(leaf('flow', { expireAfter: late() }));
    // its time counts from when it is due
    await queue.upsertJobScheduler('s', { every: NEVER_MS }, { name: 'scheduled', opts: { expireAfter: 1 } });
    const scheduled = (await queue.getWaiting()).find(({ name }) => name === 'scheduled')!;
    expect(scheduled.opts.expireAfter).toBe(1);
    await until('its time', () => Date.now() > scheduled.timestamp + 1);
    const { log, ran } = runs();
    await log.when('all to end', () => log.all('completed').length === 1 && log.all('failed').length === 3);
    expect(ran).toEqual(['own']);
    const failed = log.all<[Job]>('failed').map(([{ name }]) => name);
    expect(failed.sort()).toEqual(['default', 'flow', 'scheduled']);
    // the next one is there all the same
    expect((await queue.getDelayed()).map(({ name, opts }) => [name, opts.expireAfter])).toEqual([['scheduled', 1]]);
  });

  it('leaves a batch to the others', async () => {
    const queue = queueOf();
    await queue.addBulk(
      Array.from({ length: 6 }, (_, i) => ({ name: `${i}`, data: {}, opts: i % 2 ? {} : { expireAfter: late() } })),
    );
    const names: string[] = [];
    const batch: BatchOptions = { size: 6 };
    const handler = (job: { getBatch(): { name: string }[] }): Promise<void> =>
      Promise.resolve(void names.push(...job.getBatch().map(({ name }) => name)));
    const log = new EventLog(stage.worker(handler as never, { ...TAKES, batch } as never), ['completed', 'failed']);
    await log.when('all to end', () => log.names.length === 6);
    expect(names.sort()).toEqual(['1', '3', '5']);
  });

  it('expires in the queue that it is moved to, if it never started', async () => {
    const prefix = '{moves}';
    const [queue, other] = ['', 'other'].map((part) => stage.queue({ prefix }, part) as unknown as Queue);
    await queue.add('job', {}, { expireAfter: late() });
    await queue.moveJobs(other, { states: ['waiting'] });
    const { log } = runs({ ...TAKES, prefix }, 'other');
    expect((await log.get<[Job, Error]>('failed'))[1].message).toBe(REASON);
  });

  it('keeps the option as it was given', async () => {
    const queue = queueOf();
    const expireAfter = new Date(Date.now() + NEVER_MS);
    const job = await queue.add('job', {}, { expireAfter });
    expect(job.opts.expireAfter).toEqual(expireAfter);
    expect((await queue.getJob(job.id!))!.opts.expireAfter).toEqual(expireAfter);
  });

  it.each([0, -1, 0.5, NaN, Infinity, 2e11, '5', true, {}, new Date(NaN), new Date(0)])(
    'is refused with %s',
    async (expireAfter) => {
      const queue = queueOf();
      const opts = { expireAfter } as unknown as JobsOptions;
      await expect(queue.add('job', {}, opts)).rejects.toThrow(/^The job option expireAfter must be /);
      await expect(queue.upsertJobScheduler('s', { every: 1000 }, { opts })).rejects.toThrow(/expireAfter/);
    },
  );

  it('has no Date where jobs are made again and again', async () => {
    const scheduled = queueOf().upsertJobScheduler('s', { every: 1000 }, { opts: { expireAfter: late() } });
    await expect(scheduled).rejects.toThrow('a Date as the option "expireAfter"');
  });

  it('never runs, whoever dies', async () => {
    const queue = queueOf();
    const folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
    const ledger = join(folder, 'ledger');
    const start = (owner: number, dieAt: number): Program =>
      stage.keep(
        Program.start('ledger-worker.mjs', {
          env: { QUEUE: stage.queueName, LEDGER: ledger, OWNER: owner, REMOVE: 'false', TAKES: 40, DIE_AT: dieAt },
        }),
      );
    try {
      const jobs = await queue.addBulk(
        Array.from({ length: 4000 }, (_, i) => ({ name: 'job', data: i, opts: { expireAfter: 1 + (i % 40) * 100 } })),
      );
      const programs = [start(1, 60), start(2, 150), start(3, 300), start(4, -1)];
      // at one moment: what a dead worker held waits again
      const left = async (): Promise<number[]> => Object.values(await queue.getJobCounts('waiting', 'active'));
      await until('all to end', async () => (await left()).every((jobs) => jobs === 0), 60_000);
      // where all expired sooner, some still wait for the job at which they die
      await Promise.all(programs.map((program) => program.kill()));
      const failed = await queue.getFailed(0, -1);
      const ran = new Set(
        readFileSync(ledger, 'utf8')
          .split('\n')
          .map((line) => line.split(' ')[1]),
      );
      expect(failed.filter(({ id, failedReason }) => failedReason !== REASON || ran.has(id!))).toEqual([]);
      expect(failed.length).toBeGreaterThan(0);
      expect(failed.length + (await queue.getCompletedCount())).toBe(jobs.length);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 120_000);
});

describe('deduplication until a job has started', () => {
  const stage = useStage(chasquimq);
  const deduplication = { id: 'd', until: 'started' } as const;

  it('discards adds while the first one waits, and none while it runs', async () => {
    const queue = stage.queue() as unknown as Queue;
    const first = await queue.add('job', {}, { deduplication });
    expect((await queue.add('job', {}, { deduplication })).id).toBe(first.id);
    const gate = stage.gate();
    const ran: (string | undefined)[] = [];
    const handler = async (job: { id?: string }): Promise<void> => {
      ran.push(job.id);
      await gate.opened;
    };
    const log = new EventLog(stage.worker(handler as never), ['active', 'completed']);
    await log.get('active');
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
    const second = await queue.add('job', {}, { deduplication });
    expect((await queue.add('job', {}, { deduplication })).id).toBe(second.id);
    gate.open();
    await log.when('both to end', () => log.all('completed').length === 2);
    expect(ran).toEqual([first.id, second.id]);
  });

  it('refuses what it does not know, and what contradicts it', async () => {
    const queue = stage.queue() as unknown as Queue;
    const add = (more: object): Promise<unknown> => queue.add('job', {}, { deduplication: { id: 'd', ...more } });
    await expect(add({ until: 'ended' })).rejects.toThrow("deduplication.until must be 'started'");
    await expect(add({ until: 'started', keepLastIfActive: true })).rejects.toThrow('cannot be used together');
  });
});
