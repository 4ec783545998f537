// Pins that classes of jobs which users bring make their jobs, and say what is stored of them.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job, JobJson, JobsOptions, MinimalQueue, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

/** A class that inherits from `Job`. */
type JobClass = new (...args: never[]) => Job;

describe.each(libraries)('$name: job.classes', ({ lib }) => {
  const stage = useStage(lib);
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const hidden = (text: string): string => JSON.stringify(Buffer.from(text).toString('hex'));

  /** Data lie in the server as hexadecimal digits. */
  class Secret extends lib.Job {
    override asJSON(): JobJson {
      const json = super.asJSON();
      return { ...json, data: hidden(json.data) };
    }

    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's type
    static override fromJSON(queue: MinimalQueue, json: JobJson, id?: string): any {
      const data = Buffer.from(JSON.parse(json.data) as string, 'hex').toString();
      return super.fromJSON(queue, { ...json, data }, id);
    }
  }

  /** Keeps what its constructor was given. */
  class Noted extends lib.Job {
    readonly given: unknown[];
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- any data
    constructor(queue: MinimalQueue, name: string, data: any, opts?: JobsOptions, id?: string) {
      super(queue, name, data, opts, id);
      if (name === 'bad') throw new Error('not this one');
      this.given = [this.data, this.opts.attempts, this.priority, id];
    }
  }

  function queueOf(JobClass: JobClass): Queue {
    class Own extends lib.Queue {
      protected override get Job(): typeof Job {
        return JobClass as unknown as typeof Job;
      }
    }
    return stage.watch(new Own(stage.queueName, { connection: { ...connection } }));
  }

  function workerOf(JobClass: JobClass, process: (job: Job) => Promise<unknown>) {
    class Own extends lib.Worker {
      protected override get Job(): typeof Job {
        return JobClass as unknown as typeof Job;
      }
    }
    return stage.watch(new Own(stage.queueName, process, { connection: { ...connection } }));
  }

  it('asJSON says what is stored, and fromJSON reads it', async () => {
    const queue = queueOf(Secret);
    const plain = stage.queue();
    const one = await queue.add('one', { card: 4111 }, { delay: 60_000, attempts: 3 });
    const [two] = await queue.addBulk([{ name: 'two', data: 'text', opts: { priority: 2 } }]);
    const stored = await Promise.all([one, two].map(async ({ id }) => (await plain.getJob(id!))?.data as unknown));
    expect(stored).toEqual(['{"card":4111}', '"text"'].map((text) => JSON.parse(hidden(text)) as string));
    expect((await queue.getJob(one.id!))?.data).toEqual({ card: 4111 });
    expect((await queue.getJobs(['prioritized'])).map(({ data }) => data as unknown)).toEqual(['text']);

    const seen: unknown[] = [];
    const worker = workerOf(Secret, async (job) => {
      seen.push(job.data, job instanceof Secret, job.opts.attempts, job.attemptsStarted);
      return job.token;
    });
    const log = new EventLog(worker, ['completed']);
    await one.promote();
    await log.get('completed', 2);
    expect([seen.slice(0, 4), seen.slice(4)]).toEqual(
      expect.arrayContaining([
        [{ card: 4111 }, true, 3, 1],
        ['text', true, 0, 1],
      ]),
    );
    for (const [job, value] of log.all<[Job, unknown]>('completed')) expect(value).toBe(job.token);
  });

  it('members of Job that somebody has replaced do', async () => {
    const queue = stage.queue();
    const asJSON = lib.Job.prototype.asJSON;
    vi.spyOn(lib.Job.prototype, 'asJSON').mockImplementation(function (this: Job) {
      return { ...asJSON.call(this), data: '"replaced"' };
    });
    const { id } = await queue.add('job', 1);
    vi.restoreAllMocks();
    expect((await queue.getJob(id!))?.data).toBe('replaced');
  });

  it('the constructor is given the data and options, of jobs that are added, found and taken', async () => {
    const queue = queueOf(Noted);
    const given = (job: Job | undefined): unknown => (job as Noted).given;
    const opts = { attempts: 2, priority: 3, jobId: 'own', removeOnComplete: true };
    const all = [{ tenant: 'T' }, 2, 3, 'own'];
    expect(given(await queue.add('job', { tenant: 'T' }, opts))).toEqual(all);
    expect(given(await queue.getJob('own'))).toEqual(all);
    expect((await queue.getJobs()).map(given)).toEqual([all]);
    const worker = workerOf(Noted, async (job) => given(job));
    const log = new EventLog(worker, ['completed']);
    expect((await log.get('completed'))[1]).toEqual(all);
  });

  it('a constructor that throws in a worker is an error event: the job stays active, others run', async () => {
    const queue = stage.queue();
    const done: string[] = [];
    await queue.addBulk([
      { name: 'bad', data: 1 },
      { name: 'good', data: 1 },
    ]);
    const worker = workerOf(Noted, async ({ name }) => void done.push(name));
    await until('the good one to have run', () => done.length === 1);
    expect(done).toEqual(['good']);
    expect(stage.takeErrors().map(({ message }) => message)).toContain('not this one');
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 1, waiting: 0 });
    await worker.close();
  });

  it('a worker makes its jobs by createJob', async () => {
    const queue = stage.queue();
    class Own extends lib.Worker {
      protected override createJob(json: JobJson, id: string): Job {
        const job = super.createJob(json, id);
        return Object.assign(job, { made: [json.name, JSON.parse(json.data), id] });
      }
    }
    await queue.add('job', { x: 1 });
    const worker = stage.watch(
      new Own(stage.queueName, async (job) => (job as Job & { made: unknown }).made, {
        connection: { ...connection },
      }),
    );
    const log = new EventLog(worker, ['completed']);
    expect((await log.get('completed'))[1]).toEqual(['job', { x: 1 }, '1']);
  });
});
