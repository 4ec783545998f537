// Pins that data and return values of many kilobytes, and of megabytes, are what they were, whatever becomes of the job.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

/** Repetitions of a text that make about three megabytes of JSON, one, and 36 kilobytes. */
const sizes = [
  { size: 'huge', times: 160_000 },
  { size: 'large', times: 60_000 },
  { size: 'long', times: 2_000 },
];
const cases = libraries.flatMap((library) => sizes.map((size) => ({ ...library, ...size })));
const LONG_MS = 100_000;

describe.each(cases)('$name: payload.$size', ({ lib, times }) => {
  const stage = useStage(lib);
  /** JSON that no other mark gives. */
  const large = (mark: unknown) => ({ mark, text: 'ñ\u{1f680}\\"\n\0'.repeat(times), end: [mark] });

  const kinds: [string, JobsOptions][] = [
    ['plain', {}],
    ['with an id', { jobId: 'own' }],
    ['delayed', { delay: 1 }],
    ['with a priority', { priority: 3 }],
    ['last in, first out', { lifo: true }],
    ['deduplicated', { deduplication: { id: 'd' } }],
  ];

  it.each(kinds)('a job is whole before, while and after it runs: %s', async (_, opts) => {
    const queue = stage.queue();
    const job = await queue.add('job', large(1), opts);
    expect((await fetchJob(queue, job.id)).data).toEqual(large(1));
    const seen: unknown[] = [];
    const log = new EventLog(
      stage.worker(async (job) => {
        seen.push(job.data, (await fetchJob(queue, job.id)).data);
        return large('result');
      }),
      ['completed'],
    );
    const [ended, result] = await log.get<[Job, unknown]>('completed', 1, LONG_MS);
    expect(seen).toEqual([large(1), large(1)]);
    expect([ended.data, ended.returnvalue, result]).toEqual([large(1), large('result'), large('result')]);
    const stored = await fetchJob(queue, job.id);
    expect([stored.data, stored.returnvalue]).toEqual([large(1), large('result')]);
    const [listed] = await queue.getCompleted();
    expect([listed.id, listed.data, listed.returnvalue]).toEqual([job.id, large(1), large('result')]);
  });

  it('jobs of a bulk keep their order and their data, the small ones between them too', async () => {
    const queue = stage.queue();
    const data = [1, large(2), 3, 4, large(5), large(6), 7];
    await queue.addBulk(data.map((data) => ({ name: 'job', data })));
    const waiting = await queue.getWaiting();
    expect(waiting.map((job) => job.data as unknown)).toEqual(data);
    const seen: unknown[] = [];
    const log = new EventLog(
      stage.worker(async (job) => {
        seen.push(job.data);
        return job.data as unknown;
      }),
      ['completed'],
    );
    await log.get('completed', data.length, LONG_MS);
    expect(seen).toEqual(data);
    const ended = await queue.getJobs(['completed'], 0, -1, true);
    expect(ended.map((job) => job.returnvalue as unknown)).toEqual(data);
  });

  it('a result reaches QueueEvents and waitUntilFinished, of small data too', async () => {
    const queue = stage.queue();
    const [events, log] = [stage.events(), stage.globalLog()];
    const job = await queue.add('job', 1, { delay: 1 });
    const waiting = job.waitUntilFinished(events);
    stage.worker(async () => large('result'));
    expect(await waiting).toEqual(large('result'));
    const [event] = await log.get<[{ jobId: string; returnvalue: unknown }]>('completed', 1, LONG_MS);
    expect([event.jobId, event.returnvalue]).toEqual([job.id, large('result')]);
    // it has ended: this asks for its state
    expect(await job.waitUntilFinished(events)).toEqual(large('result'));
  });

  it('a failed try leaves the data, and a retry of the completed job takes the result away', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.attemptsStarted === 1) throw new Error('first');
      return [large(job.attemptsStarted), job.data as unknown];
    });
    const log = new EventLog(worker, ['completed']);
    const job = await queue.add('job', large(1), { attempts: 2 });
    const [, result] = await log.get<[Job, unknown]>('completed', 1, LONG_MS);
    expect(result).toEqual([large(2), large(1)]);
    await worker.pause();
    await job.retry('completed');
    expect([(await fetchJob(queue, job.id)).returnvalue, await job.getState()]).toEqual([null, 'waiting']);
    void worker.resume();
    const [, again] = await log.get<[Job, unknown]>('completed', 2, LONG_MS);
    expect(again).toEqual([large(3), large(1)]);
  });

  it('updateData makes it large, small, and large again', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', 1);
    for (const data of [large(1), { small: true }, large(2)]) {
      await job.updateData(data);
      expect((await fetchJob(queue, job.id)).data).toEqual(data);
      expect((await queue.getWaiting())[0].data).toEqual(data);
    }
    const log = new EventLog(
      stage.worker(async (job) => {
        await job.updateData(large(3));
        return 1;
      }),
      ['completed'],
    );
    await log.get('completed', 1, LONG_MS);
    expect((await fetchJob(queue, job.id)).data).toEqual(large(3));
  });

  it('a parent gets its children with their results, and is large itself', async () => {
    const flows = stage.flowProducer();
    const [top, below] = [stage.name('top'), stage.name()];
    const { job } = await flows.add({
      name: 'parent',
      queueName: top,
      data: large('parent'),
      children: [1, 2].map((i) => ({ name: 'child', queueName: below, data: large(i), opts: { jobId: `c${i}` } })),
    });
    stage.worker(async (job) => ({ of: job.data as unknown }));
    const log = new EventLog(
      stage.worker(async (job) => [job.data as unknown, await job.getChildrenValues()], {}, 'top'),
      ['completed'],
    );
    const [, result] = await log.get<[Job, unknown]>('completed', 1, LONG_MS);
    const values = { [stage.childKey('c1')]: { of: large(1) }, [stage.childKey('c2')]: { of: large(2) } };
    expect(result).toEqual([large('parent'), values]);
    const tree = await flows.getFlow({ queueName: top, id: job.id ?? '' });
    expect(tree.job.data).toEqual(large('parent'));
    const children = (tree.children ?? []).map(({ job }) => job.data as unknown);
    expect(children).toEqual(expect.arrayContaining([large(1), large(2)]));
  });

  it('taken and ended by hand it is whole', async () => {
    const queue = stage.queue();
    const worker = stage.worker(null);
    const { id } = await queue.add('job', large(1));
    const job = await worker.getNextJob('token');
    expect([job.id, job.data]).toEqual([id, large(1)]);
    await job.moveToCompleted(large('result'), 'token', false);
    expect((await fetchJob(queue, id)).returnvalue).toEqual(large('result'));
  });

  it('what is removed, cleaned or obliterated leaves nothing', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => job.data as unknown),
      ['completed'],
    );
    await queue.addBulk([1, 2, 3].map((i) => ({ name: 'job', data: large(i), opts: { removeOnComplete: i === 1 } })));
    await log.get('completed', 3, LONG_MS);
    await queue.remove('2');
    await queue.clean(0, 10, 'completed');
    expect(await queue.getCompleted()).toEqual([]);
    await queue.add('job', large(4), { delay: 60_000 });
    await queue.obliterate();
    expect(await queue.getJob('4')).toBeUndefined();
  });
});

describe.each(libraries)('$name: payload of many lengths', ({ lib }) => {
  const stage = useStage(lib);
  /** Of no characters up to 70,000, in an order that is no order; every third is one byte a character. */
  const jobs = Array.from({ length: 200 }, (_, i) => ({
    name: i % 7 < 3 ? 'same' : `ñ${i}`,
    data: { i, text: (i % 3 === 0 ? 'x' : 'ñ\ud800').repeat(((i * 37) % 200) ** 2 * (i % 5 === 0 ? 1 : 0)) },
  }));
  const byNumber = (a: { data: { i: number } }, b: { data: { i: number } }) => a.data.i - b.data.i;

  it('jobs of a bulk, their results too', async () => {
    await stage.queue().addBulk(jobs);
    const seen: typeof jobs = [];
    const log = new EventLog(
      stage.worker(
        async ({ name, data }: Job) => {
          seen.push({ name, data: data as (typeof jobs)[0]['data'] });
          return [name, data as unknown];
        },
        { concurrency: 50 },
      ),
      ['completed'],
    );
    await log.get('completed', jobs.length, LONG_MS);
    expect(seen).toEqual(jobs);
    const ended = await stage.queue().getCompleted();
    expect(ended.map(({ name, data, returnvalue }) => ({ name, data, returnvalue }))).toEqual(
      expect.arrayContaining(jobs.map(({ name, data }) => ({ name, data, returnvalue: [name, data] }))),
    );
  });

  it('jobs of a bulk that fail at their first try', async () => {
    const queue = stage.queue();
    await queue.addBulk(jobs.map((job) => ({ ...job, opts: { attempts: 2 } })));
    const seen: unknown[] = [];
    const log = new EventLog(
      stage.worker(
        async ({ name, data, attemptsMade }: Job) => {
          if (attemptsMade === 0) throw new Error('first');
          seen.push({ name, data: data as unknown });
          return [name, data as unknown];
        },
        { concurrency: 50 },
      ),
      ['completed'],
    );
    await log.get('completed', jobs.length, LONG_MS);
    expect(seen).toHaveLength(jobs.length);
    expect(seen).toEqual(expect.arrayContaining(jobs));
    const ended = await queue.getCompleted();
    expect(ended.map(({ name, data, returnvalue }) => ({ name, data, returnvalue }))).toEqual(
      expect.arrayContaining(jobs.map(({ name, data }) => ({ name, data, returnvalue: [name, data] }))),
    );
    await queue.obliterate({ force: true });
    expect(await queue.getJobCounts()).toEqual(expect.objectContaining({ completed: 0, waiting: 0 }));
  });

  it('children of a flow', async () => {
    const [top, below] = [stage.name('top'), stage.name()];
    const children = jobs.map((job) => ({ ...job, queueName: below }));
    await stage.flowProducer().add({ name: 'parent', queueName: top, children });
    const seen: typeof jobs = [];
    const worker = stage.worker(async ({ name, data }: Job) => {
      seen.push({ name, data: data as (typeof jobs)[0]['data'] });
    });
    await new EventLog(worker, ['completed']).get('completed', jobs.length, LONG_MS);
    expect(seen.sort(byNumber)).toEqual(jobs);
  });
});
