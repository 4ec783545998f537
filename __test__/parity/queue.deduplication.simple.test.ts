// Pins deduplication without a time: which adds are discarded, what they return, what is told.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { by, deduplications, story } from '../support/deduplication.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: deduplication', ({ lib }) => {
  const stage = useStage(lib);

  describe('of adds', () => {
    it('discards a second add: the job it returns has the id of the first, and its own data', async () => {
      const queue = stage.queue();
      const first = await queue.add('first', { n: 1 }, by('d'));
      const second = await queue.add('second', { n: 2 }, by('d', {}, { attempts: 3 }));
      expect([first.id, second.id]).toEqual(['1', '1']);
      expect([second.name, second.data, second.opts.attempts]).toEqual(['second', { n: 2 }, 3]);
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
      const stored = await fetchJob(queue, '1');
      expect([stored.name, stored.data, stored.opts.attempts]).toEqual(['first', { n: 1 }, 0]);
    });

    it('tells of it in one event, and on the queue as a job that waits', async () => {
      const queue = stage.queue();
      const local = new EventLog(queue, ['waiting']);
      const log = stage.globalLog();
      await queue.add('first', {}, by('d'));
      await queue.add('second', {}, by('d'));
      await queue.add('last', {});
      await log.get('waiting', 2);
      expect(log.entries.map(({ event, args }) => [event, args[0]])).toEqual([
        ['added', { jobId: '1', name: 'first' }],
        ['waiting', { jobId: '1' }],
        ['deduplicated', { jobId: '1', deduplicationId: 'd', deduplicatedJobId: '2' }],
        ['added', { jobId: '3', name: 'last' }],
        ['waiting', { jobId: '3' }],
      ]);
      expect(local.all<[Job]>('waiting').map(([job]) => [job.id, job.name])).toEqual([
        ['1', 'first'],
        ['1', 'second'],
        ['3', 'last'],
      ]);
    });

    it('tells the listeners of the job that stays', async () => {
      const queue = stage.queue();
      const log = new EventLog(stage.events(), ['deduplicated:1']);
      await queue.add('first', {}, by('d'));
      await queue.add('second', {}, by('d'));
      const [args] = await log.get('deduplicated:1');
      expect(args).toEqual({ jobId: '1', deduplicationId: 'd', deduplicatedJobId: '2' });
    });

    it('uses up an id for each add', async () => {
      const queue = stage.queue();
      for (let i = 0; i < 3; i++) await queue.add('job', {}, by('d'));
      expect((await queue.add('next', {})).id).toBe('4');
    });

    it('tells ids apart, and plain jobs not at all', async () => {
      const queue = stage.queue();
      const ids = [];
      for (const opts of [by('a'), by('b'), {}, by('A'), {}]) ids.push((await queue.add('job', {}, opts)).id);
      expect(ids).toEqual(['1', '2', '3', '4', '5']);
    });

    it('is a matter of one queue', async () => {
      const [one, other] = [stage.queue({ prefix: 'alpha' }), stage.queue({ prefix: 'beta' })];
      await one.add('job', {}, by('d'));
      await other.add('job', { of: 'beta' }, by('d'));
      expect((await fetchJob(other, '1')).data).toEqual({ of: 'beta' });
    });

    it('is a matter of all Queue objects of one name', async () => {
      const [one, other] = [stage.queue(), stage.queue()];
      await one.add('job', {}, by('d'));
      expect((await other.add('job', {}, by('d'))).id).toBe('1');
    });

    it.each([
      ['waiting', {}],
      ['delayed', { delay: 60_000 }],
      ['with an id of its own', { jobId: 'mine' }],
      ['to be tried again', { attempts: 3, backoff: 10 }],
    ])('discards while the job is %s', async (_, opts) => {
      const queue = stage.queue();
      const first = await queue.add('job', {}, by('d', {}, opts));
      expect((await queue.add('job', {}, by('d'))).id).toBe(first.id);
    });

    it('discards while the job is active', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const active = new EventLog(
        stage.worker(() => gate.opened),
        ['active'],
      );
      await queue.add('job', {}, by('d'));
      await active.get('active');
      expect((await queue.add('job', {}, by('d'))).id).toBe('1');
    });

    it('discards while the queue is paused', async () => {
      const queue = stage.queue();
      await queue.pause();
      await queue.add('job', {}, by('d'));
      expect((await queue.add('job', {}, by('d'))).id).toBe('1');
    });

    it('goes by the options of each queue, too', async () => {
      const queue = stage.queue({ defaultJobOptions: by('d') });
      await queue.add('job', {});
      expect((await queue.add('job', {})).id).toBe('1');
      expect((await queue.add('job', {}, { deduplication: undefined })).id).toBe('3');
    });
  });

  describe('in one batch', () => {
    it('discards within addBulk', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const jobs = await queue.addBulk([
        { name: 'a', data: 1, opts: by('d') },
        { name: 'b', data: 2, opts: by('d') },
        { name: 'c', data: 3 },
        { name: 'd', data: 4, opts: by('e') },
      ]);
      expect(jobs.map((job) => job.id)).toEqual(['1', '1', '3', '4']);
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 3 });
      await log.get('waiting', 3);
      expect(story(log)).toEqual([
        'added 1',
        'waiting 1',
        'deduplicated 1',
        'added 3',
        'waiting 3',
        'added 4',
        'waiting 4',
      ]);
    });

    it('discards among adds of one tick, and keeps the order of the others', async () => {
      const queue = stage.queue();
      const jobs = await Promise.all([
        queue.add('a', {}),
        queue.add('b', {}, by('d')),
        queue.add('c', {}),
        queue.add('d', {}, by('d')),
        queue.add('e', {}),
      ]);
      expect(jobs.map((job) => job.id)).toEqual(['1', '2', '3', '2', '5']);
      const done = new EventLog(
        stage.worker(async () => undefined),
        ['completed'],
      );
      await done.get('completed', 4);
      expect(done.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['a', 'b', 'c', 'e']);
    });

    it('discards delayed jobs within addBulk', async () => {
      const queue = stage.queue();
      const delayed = by('d', {}, { delay: 60_000 });
      const jobs = await queue.addBulk([
        { name: 'a', data: {}, opts: delayed },
        { name: 'b', data: {}, opts: delayed },
      ]);
      expect(jobs.map((job) => job.id)).toEqual(['1', '1']);
      expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 1, waiting: 0 });
    });
  });

  describe('with custom ids', () => {
    it('gives back the id of the job that exists, and tells of the one that was discarded', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('a', {}, by('d', {}, { jobId: 'A' }));
      const second = await queue.add('b', {}, by('d', {}, { jobId: 'B' }));
      expect([second.id, second.opts.jobId]).toEqual(['A', 'B']);
      expect(await queue.getJob('B')).toBeUndefined();
      await log.get('deduplicated');
      expect(deduplications(log)).toEqual([['A', 'd', 'B']]);
    });

    it('looks at the custom id first: a duplicate owns nothing', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('a', {}, { jobId: 'A' });
      await queue.add('b', {}, by('d', {}, { jobId: 'A' }));
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
      await log.get('duplicated');
      expect(story(log)).toEqual(['added A', 'waiting A', 'duplicated A']);
    });

    it('works within addBulk', async () => {
      const queue = stage.queue();
      const jobs = await queue.addBulk([
        { name: 'a', data: {}, opts: by('d', {}, { jobId: 'A' }) },
        { name: 'b', data: {}, opts: by('d', {}, { jobId: 'B' }) },
        { name: 'c', data: {}, opts: by('e', {}, { jobId: 'A' }) },
        { name: 'd', data: {}, opts: by('e', {}, { jobId: 'D' }) },
      ]);
      expect(jobs.map((job) => job.id)).toEqual(['A', 'A', 'A', 'D']);
    });
  });

  describe('a job', () => {
    it('knows its deduplication id, when added and when read', async () => {
      const queue = stage.queue();
      const added = await queue.add('job', {}, by('d'));
      const read = await fetchJob(queue, '1');
      for (const job of [added, read]) {
        expect(job.deduplicationId).toBe('d');
        expect(job.toJSON().deduplicationId).toBe('d');
        expect(job.asJSON().deduplicationId).toBe('d');
        expect(job.opts.deduplication).toEqual({ id: 'd' });
        expect('debounceId' in job).toBe(false);
      }
      const [listed] = await queue.getJobs(['waiting']);
      expect(listed?.deduplicationId).toBe('d');
    });

    it('knows it in its processor, and when it has ended', async () => {
      const queue = stage.queue();
      const seen: unknown[] = [];
      const worker = stage.worker(async (job) => void seen.push(job.deduplicationId, job.opts.deduplication));
      const done = new EventLog(worker, ['completed']);
      await queue.add('job', {}, by('d', { ttl: 60_000 }));
      const [job] = await done.get<[Job]>('completed');
      expect(seen).toEqual(['d', { id: 'd', ttl: 60_000 }]);
      expect(job.deduplicationId).toBe('d');
      expect((await fetchJob(queue, '1')).deduplicationId).toBe('d');
    });

    it('has none unless it was given', async () => {
      const queue = stage.queue();
      await queue.add('job', {});
      const job = await fetchJob(queue, '1');
      expect(job.deduplicationId).toBeUndefined();
      expect('deduplicationId' in job.asJSON()).toBe(false);
    });

    it.each(['a:b', 'é🚀', ' ', '0', '12', 'x'.repeat(300)])('may have the id %j', async (id) => {
      const queue = stage.queue();
      await queue.add('job', {}, by(id));
      expect((await queue.add('job', {}, by(id))).id).toBe('1');
      expect(await queue.getDeduplicationJobId(id)).toBe('1');
      expect((await fetchJob(queue, '1')).deduplicationId).toBe(id);
    });

    it('may have a number for an id, which is read as a text', async () => {
      const queue = stage.queue();
      const added = await queue.add('job', {}, by(5 as unknown as string));
      expect(added.deduplicationId).toBe(5);
      expect((await queue.add('job', {}, by('5'))).id).toBe('1');
      expect((await fetchJob(queue, '1')).deduplicationId).toBe('5');
    });
  });

  describe('options', () => {
    it.each([
      ['no id', {}],
      ['an empty id', { id: '' }],
      ['the id null', { id: null }],
      ['the id 0', { id: 0 }],
      ['a text', 'd'],
    ])('with %s are refused', async (_, deduplication) => {
      const queue = stage.queue();
      const error = await rejection(queue.add('job', {}, { deduplication } as object));
      expect(error.message).toBe('Deduplication id must be provided');
      expect((await queue.add('next', {})).id).toBe('1');
    });

    it.each([
      ['the id true', { id: true }],
      ['an object for an id', { id: {} }],
      ['a ttl with a fraction', { id: 'd', ttl: 10.5 }],
      ['a text for a ttl', { id: 'd', ttl: '2000' }],
      ['the ttl true', { id: 'd', ttl: true }],
      ['the ttl NaN', { id: 'd', ttl: NaN }],
    ])('with %s reject', async (_, deduplication) => {
      const queue = stage.queue();
      await rejection(queue.add('job', {}, { deduplication } as object));
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
    });

    it.each([[{ id: 'd' }], [undefined]])('named debounce are refused: %j', async (debounce) => {
      const error = await rejection(stage.queue().add('job', {}, { debounce } as object));
      expect(error.message).toBe('Debounce option has been removed. Use deduplication option instead');
    });

    it('together with a parent are refused', async () => {
      const opts = { ...by('d'), parent: { id: '1', queue: 'bull:other' } };
      const error = await rejection(stage.queue().add('job', {}, opts));
      expect(error.message).toBe('Deduplication and parent options cannot be used together');
    });

    it.each([null, undefined, false])('that are %j say nothing', async (deduplication) => {
      const queue = stage.queue();
      for (let i = 0; i < 2; i++) await queue.add('job', {}, { deduplication } as object);
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 2 });
    });
  });
});
