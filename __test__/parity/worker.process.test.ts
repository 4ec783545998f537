// Pins how a Worker takes, runs and finishes jobs: order, concurrency, counts seen on the way.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

describe.each(libraries)('$name: worker.process', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `n${i + 1}`, data: { i: i + 1 } }));
  const idle = async () => undefined;

  describe('order', () => {
    it('is that of the adds, one by one', async () => {
      const queue = stage.queue();
      for (const { name, data } of jobs(10)) await queue.add(name, data);
      const order: unknown[] = [];
      const worker = stage.worker(async (job) => order.push(job.id));
      await new EventLog(worker, ['completed']).get('completed', 10);
      expect(order).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']);
    });

    it('is that of the ids for a large bulk', async () => {
      const queue = stage.queue();
      await queue.addBulk(jobs(300));
      const order: unknown[] = [];
      const worker = stage.worker(async (job) => order.push(Number(job.id)));
      await new EventLog(worker, ['completed']).get('completed', 300);
      expect(order).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
    });

    it('is kept when single adds, bulks and custom ids mix', async () => {
      const queue = stage.queue();
      await queue.add('a', {});
      await queue.addBulk(['b', 'c'].map((name) => ({ name, data: {} })));
      await queue.add('d', {}, { jobId: 'mine' });
      await queue.addBulk([
        { name: 'e', data: {}, opts: { jobId: 'too' } },
        { name: 'f', data: {} },
      ]);
      const order: string[] = [];
      const worker = stage.worker(async (job) => order.push(job.name));
      await new EventLog(worker, ['completed']).get('completed', 6);
      expect(order.join('')).toBe('abcdef');
    });

    it('of starting is kept at a concurrency above 1', async () => {
      const queue = stage.queue();
      await queue.addBulk(jobs(20));
      const order: unknown[] = [];
      const worker = stage.worker(async (job) => order.push(Number(job.id)), { concurrency: 5 });
      await new EventLog(worker, ['completed']).get('completed', 20);
      expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    });
  });

  describe('the processor', () => {
    it('gets the job as it was added', async () => {
      const queue = stage.queue();
      let seen: Job | undefined;
      const worker = stage.worker(async (job) => {
        seen = job;
      });
      const log = new EventLog(worker, ['completed']);
      const added = await queue.add('paint', { colour: 'red' }, { attempts: 2 });
      const [completed] = await log.get<[Job]>('completed');
      expect(seen).toBeInstanceOf(lib.Job);
      expect(seen).toBe(completed);
      expect(seen).not.toBe(added);
      expect([seen?.id, seen?.name, seen?.data, seen?.opts]).toEqual([
        '1',
        'paint',
        { colour: 'red' },
        { attempts: 2 },
      ]);
      expect([seen?.timestamp, seen?.queueName]).toEqual([added.timestamp, stage.queueName]);
    });

    it('sees an active job that was started once and not yet made', async () => {
      const queue = stage.queue();
      const before = Date.now();
      const worker = stage.worker(async (job) => ({
        state: await job.getState(),
        started: job.attemptsStarted,
        made: job.attemptsMade,
        processedOn: job.processedOn,
        finishedOn: job.finishedOn,
      }));
      const log = new EventLog(worker, ['completed']);
      await queue.add('look', {});
      const [, seen] = await log.get<[Job, { processedOn: number }]>('completed');
      expect(seen).toMatchObject({ state: 'active', started: 1, made: 0, finishedOn: undefined });
      expect(seen.processedOn).toBeGreaterThanOrEqual(before);
      expect(seen.processedOn).toBeLessThanOrEqual(Date.now());
    });

    it('gets a token, which is the token of the job', async () => {
      const queue = stage.queue();
      const seen: [string | undefined, string | undefined][] = [];
      const worker = stage.worker(async (job, token) => seen.push([token, job.token]));
      const ended = new EventLog(worker, ['completed']);
      await queue.addBulk(jobs(3));
      await ended.get('completed', 3);
      for (const [token, own] of seen) {
        expect(token).toMatch(/./);
        expect(token).toBe(own);
      }
    });

    it('may change job.data for the listeners without changing what is stored', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async (job) => {
        (job.data as { step: number }).step = 2;
      });
      const log = new EventLog(worker, ['completed']);
      await queue.add('edit', { step: 1 });
      const [job] = await log.get<[Job]>('completed');
      expect([job.data, (await fetchJob(queue, '1')).data]).toEqual([{ step: 2 }, { step: 1 }]);
    });

    it('that throws synchronously fails the job like one that rejects', async () => {
      const queue = stage.queue();
      const worker = stage.worker(() => {
        throw new Error('at once');
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {});
      const [job, error] = await log.get<[Job, Error]>('failed');
      expect([error.message, job.failedReason, await job.getState()]).toEqual(['at once', 'at once', 'failed']);
    });

    it('that throws a string fails the job, and the worker goes on', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async (job) => {
        // eslint-disable-next-line @typescript-eslint/only-throw-error -- what is thrown is the point
        if (job.name === 'bad') throw 'text';
      });
      const log = new EventLog(worker, ['failed', 'completed']);
      const bad = await queue.add('bad', {});
      await queue.add('good', {});
      await log.get('completed');
      expect(await bad.getState()).toBe('failed');
    });
  });

  describe('the completed event', () => {
    it('brings job, result and the state it left', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async (job) => ({ sum: (job.data as { a: number }).a + 1 })),
        ['completed'],
      );
      await queue.add('sum', { a: 1 });
      const args = await log.get<[Job, unknown, string]>('completed');
      expect(args).toHaveLength(3);
      expect([args[0].id, args[1], args[2]]).toEqual(['1', { sum: 2 }, 'active']);
    });

    it('comes after the result is stored: getState and getJob show it', async () => {
      const queue = stage.queue();
      const seen: unknown[] = [];
      const worker = stage.worker(async () => 'done');
      worker.on('completed', (job) => {
        void (async () => seen.push(await job.getState(), (await fetchJob(queue, job.id)).returnvalue))();
      });
      await queue.add('job', {});
      await until('both look-ups', () => seen.length === 2);
      expect(seen).toEqual(['completed', 'done']);
    });

    it('finds finishedOn, attemptsMade and returnvalue on the job, equal to the stored ones', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async () => 'done'),
        ['completed'],
      );
      await queue.add('job', {});
      const [job] = await log.get<[Job]>('completed');
      const stored = await fetchJob(queue, '1');
      expect([job.attemptsMade, job.attemptsStarted, job.returnvalue]).toEqual([1, 1, 'done']);
      expect(job.finishedOn).toBeGreaterThanOrEqual(job.processedOn ?? Infinity);
      expect([stored.finishedOn, stored.processedOn]).toEqual([job.finishedOn, job.processedOn]);
      expect([stored.attemptsMade, stored.attemptsStarted, stored.returnvalue]).toEqual([1, 1, 'done']);
    });
  });

  describe('counts', () => {
    it('seen by the handler include its own job as active and nothing taken ahead', async () => {
      const queue = stage.queue();
      await queue.addBulk(jobs(4));
      const worker = stage.worker(() => queue.getJobCounts('waiting', 'active', 'completed'));
      const log = new EventLog(worker, ['completed']);
      await log.get('completed', 4);
      expect(log.all<[Job, unknown]>('completed').map(([, seen]) => seen)).toEqual([
        { waiting: 3, active: 1, completed: 0 },
        { waiting: 2, active: 1, completed: 1 },
        { waiting: 1, active: 1, completed: 2 },
        { waiting: 0, active: 1, completed: 3 },
      ]);
    });

    it('seen when completed fires show the next job active already', async () => {
      const queue = stage.queue();
      await queue.addBulk(jobs(3));
      const gate = stage.gate();
      const worker = stage.worker(async (job) => (job.id === '2' ? gate.opened : undefined));
      const seen = new Promise((resolve) => {
        worker.once('completed', () => resolve(queue.getJobCounts('waiting', 'active', 'completed')));
      });
      expect(await seen).toEqual({ waiting: 1, active: 1, completed: 1 });
      gate.open();
    });

    it('seen when failed fires show the next job active already', async () => {
      const queue = stage.queue();
      await queue.addBulk(jobs(3));
      const gate = stage.gate();
      const worker = stage.worker(async (job) => {
        if (job.id === '1') throw new Error('no');
        if (job.id === '2') await gate.opened;
      });
      const seen = new Promise((resolve) => {
        worker.once('failed', () => resolve(queue.getJobCounts('waiting', 'active', 'failed')));
      });
      expect(await seen).toEqual({ waiting: 1, active: 1, failed: 1 });
      gate.open();
    });

    it('show as many active jobs as the worker runs, and the rest waiting', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const log = new EventLog(
        stage.worker(() => gate.opened, { concurrency: 3 }),
        ['active'],
      );
      await queue.addBulk(jobs(10));
      await log.get('active', 3);
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 7, active: 3 });
    });

    it('show each of two workers its own share only', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const one = new EventLog(
        stage.worker(() => gate.opened, { concurrency: 2 }),
        ['active'],
      );
      const two = new EventLog(
        stage.worker(() => gate.opened, { concurrency: 3 }),
        ['active'],
      );
      await queue.addBulk(jobs(10));
      await Promise.all([one.get('active', 2), two.get('active', 3)]);
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 5, active: 5 });
    });
  });

  describe('concurrency', () => {
    it.each([1, 2, 7])('of %d is used in full and never exceeded', async (concurrency) => {
      const queue = stage.queue();
      await queue.addBulk(jobs(30));
      const all = stage.gate();
      let running = 0;
      let most = 0;
      const worker = stage.worker(
        async () => {
          most = Math.max(most, ++running);
          // none ends before the worker has started all it may
          if (running === concurrency) all.open();
          await all.opened;
          // long enough for one too many to start
          await new Promise((resolve) => setTimeout(resolve, 20));
          running--;
        },
        { concurrency },
      );
      await new EventLog(worker, ['completed']).get('completed', 30);
      expect(most).toBe(concurrency);
    });

    it('lets a slow job stand while others pass', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const worker = stage.worker(async (job) => (job.id === '1' ? gate.opened : undefined), { concurrency: 2 });
      const log = new EventLog(worker, ['completed']);
      await queue.addBulk(jobs(6));
      await log.get('completed', 5);
      gate.open();
      await log.get('completed', 6);
      expect(log.all<[Job]>('completed').map(([job]) => job.id)).toEqual(['2', '3', '4', '5', '6', '1']);
    });

    it('of 1 each gives ten workers a job each of one bulk', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const logs = Array.from(
        { length: 10 },
        () =>
          new EventLog(
            stage.worker(() => gate.opened),
            ['active'],
          ),
      );
      await queue.addBulk(jobs(20));
      await Promise.all(logs.map((log) => log.get('active')));
      expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 10, waiting: 10 });
    });
  });

  describe('run', () => {
    it('is not called for a worker with autorun false', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => 'ran', { autorun: false });
      const log = new EventLog(worker, ['active', 'completed']);
      await worker.waitUntilReady();
      await queue.add('job', {});
      expect(worker.isRunning()).toBe(false);
      const running = worker.run();
      expect(worker.isRunning()).toBe(true);
      await log.get('completed');
      expect(log.names).toEqual(['active', 'completed']);
      await worker.close();
      expect(await running).toBeUndefined();
    });

    it.each([null, undefined])('rejects when the processor is %s', async (processor) => {
      const worker = stage.worker(processor as null);
      expect((await rejection(worker.run())).message).toBe('No process function is defined.');
      expect(worker.isRunning()).toBe(false);
    });

    it('rejects when the worker runs already', async () => {
      const worker = stage.worker(idle);
      await worker.waitUntilReady();
      expect(worker.isRunning()).toBe(true);
      expect((await rejection(worker.run())).message).toBe('Worker is already running.');
    });

    it('resolves at once when the worker was closed', async () => {
      const worker = stage.worker(idle, { autorun: false });
      await worker.close();
      await worker.run();
      expect(worker.isRunning()).toBe(false);
    });
  });

  it('gives each job of one bulk its own fate', async () => {
    const queue = stage.queue();
    const worker = stage.worker(
      async (job) => {
        const { i } = job.data as { i: number };
        if (i % 3 === 0) throw new Error(`never ${i}`);
        if (i % 3 === 1 && job.attemptsStarted === 1) throw new Error(`not yet ${i}`);
        return i;
      },
      { concurrency: 10 },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    const added = await queue.addBulk(jobs(90).map((job) => ({ ...job, opts: { attempts: 2 } })));
    // Thirty jobs fail twice, thirty once.
    await log.when('all to end', () => log.all('completed').length === 60 && log.all('failed').length === 90);
    const stored = await Promise.all(added.map((job) => fetchJob(queue, job.id)));
    for (const job of stored) {
      const { i } = job.data as { i: number };
      const fate = [job.returnvalue, job.failedReason, job.attemptsMade, await job.getState()];
      if (i % 3 === 0) expect(fate).toEqual([null, `never ${i}`, 2, 'failed']);
      else if (i % 3 === 1) expect(fate).toEqual([i, `not yet ${i}`, 2, 'completed']);
      else expect(fate).toEqual([i, undefined, 1, 'completed']);
    }
  });

  it('starts a job that was added before the worker existed, and one added while it idles', async () => {
    const queue = stage.queue();
    await queue.add('before', {});
    const log = new EventLog(
      stage.worker(async (job) => job.name),
      ['completed', 'drained'],
    );
    await log.get('drained');
    await queue.add('while idle', {});
    expect((await log.get('completed', 2))[1]).toBe('while idle');
  });

  it('records the name of the worker as processedBy', async () => {
    const queue = stage.queue();
    const log = new EventLog(stage.worker(idle, { name: 'painter' }), ['completed']);
    await queue.add('job', {});
    const [job] = await log.get<[Job]>('completed');
    expect([job.processedBy, (await fetchJob(queue, '1')).processedBy]).toEqual(['painter', 'painter']);
  });

  describe('keeps the name of the worker', () => {
    it.each<[string, (job: Job, token: string) => Promise<unknown>]>([
      ['was moved to wait', (job, token) => job.moveToWait(token)],
      ['was delayed', (job, token) => job.moveToDelayed(Date.now() + 3_600_000, token)],
      ['waits for children', (job, token) => job.moveToWaitingChildren(token)],
      ['is to be tried again', (job, token) => job.moveToFailed(new Error('once'), token)],
      ['was taken by a worker without a name', (job, token) => job.moveToWait(token).then(() => taken(token))],
    ])('of a job that %s', async (_, move) => {
      const queue = stage.queue();
      const { id = '' } = await queue.add('job', {}, { attempts: 2 });
      await queue.add('child', {}, { parent: { id, queue: queue.qualifiedName }, delay: 3_600_000 });
      await move(await taken('t', 'painter'), 't');
      expect((await fetchJob(queue, id)).processedBy).toBe('painter');
    });

    it('of a job that a worker without a name tries again', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, { attempts: 3 });
      const first = stage.worker(() => Promise.reject(new Error('once')), { name: 'painter' });
      await new EventLog(first, ['failed']).get('failed');
      await first.close();
      const log = new EventLog(stage.worker(idle), ['active', 'completed']);
      const [completed] = await log.get<[Job]>('completed');
      const [active] = await log.get<[Job]>('active');
      expect([active.processedBy, completed.processedBy]).toEqual(['painter', 'painter']);
    });

    it('not of a job that another one has', async () => {
      const queue = stage.queue();
      const { id = '' } = await queue.add('job', {});
      await (await taken('t', 'painter')).moveToWait('t');
      const log = new EventLog(stage.worker(idle, { name: 'plumber' }), ['active', 'completed']);
      const [active] = await log.get<[Job]>('active');
      await log.get('completed');
      expect([active.processedBy, (await fetchJob(queue, id)).processedBy]).toEqual(['plumber', 'plumber']);
    });

    async function taken(token: string, name?: string): Promise<Job> {
      const job = await stage.worker(null, name === undefined ? {} : { name }).getNextJob(token);
      if (!job) throw new Error('there is no next job');
      return job;
    }

    it('of a job that stalled', async () => {
      const queue = stage.queue();
      const { id } = await queue.add('job', {});
      const quick = { name: 'painter', lockDuration: 50, stalledInterval: 50 };
      const lost = stage.worker(null, { ...quick, skipLockRenewal: true });
      const stalled = new EventLog(lost, ['stalled']);
      await lost.getNextJob('t');
      await lost.startStalledCheckTimer();
      await stalled.get('stalled');
      expect((await fetchJob(queue, id)).processedBy).toBe('painter');
    });
  });
});
