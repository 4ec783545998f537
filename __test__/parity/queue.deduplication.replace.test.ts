// Pins what an add does to an owner that is still delayed: replace it, or move its time.
import { describe, expect, it } from 'vitest';
import type { DeduplicationOptions } from 'bullmq';
import { by, deduplications, story } from '../support/deduplication.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const LONG = 60_000;

/** BullMQ 6.7 knows the option; its types do not, everywhere. */
const RESCHEDULE = { reschedule: true } as Partial<DeduplicationOptions>;

describe.each(libraries)('$name: deduplication of delayed jobs', ({ lib }) => {
  const stage = useStage(lib);

  describe('that are replaced', () => {
    it('leaves the new job, with its own delay, as the owner', async () => {
      const queue = stage.queue();
      await queue.add('old', 1, by('d', { replace: true }, { delay: LONG }));
      const added = await queue.add('new', 2, by('d', { replace: true }, { delay: 2 * LONG }));
      expect(added.id).toBe('2');
      expect(await queue.getJob('1')).toBeUndefined();
      const job = await fetchJob(queue, '2');
      expect([job.name, job.data, job.delay, job.deduplicationId]).toEqual(['new', 2, 2 * LONG, 'd']);
      expect(await queue.getDeduplicationJobId('d')).toBe('2');
      expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 1, waiting: 0 });
    });

    it('tells of it', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const timestamp = Date.now();
      for (const delay of [LONG, 2 * LONG])
        await queue.add('job', {}, by('d', { replace: true }, { delay, timestamp }));
      await log.get('delayed', 2);
      expect(log.entries.map(({ event, args }) => [event, args[0]])).toEqual([
        ['added', { jobId: '1', name: 'job' }],
        ['delayed', { jobId: '1', delay: timestamp + LONG }],
        ['removed', { jobId: '1', prev: 'delayed' }],
        ['deduplicated', { jobId: '2', deduplicationId: 'd', deduplicatedJobId: '1' }],
        ['added', { jobId: '2', name: 'job' }],
        ['delayed', { jobId: '2', delay: timestamp + 2 * LONG }],
      ]);
    });

    it('goes by the new job: neither the old one nor its state must ask for it', async () => {
      const queue = stage.queue();
      await queue.add('old', {}, by('d', {}, { delay: LONG }));
      const added = await queue.add('new', {}, by('d', { replace: true }));
      expect(added.id).toBe('2');
      expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 0, waiting: 1 });
    });

    it('takes the log of the old one along', async () => {
      const queue = stage.queue();
      const old = await queue.add('old', {}, by('d', {}, { delay: LONG, jobId: 'old' }));
      await old.log('row');
      await queue.add('new', {}, by('d', { replace: true }, { delay: LONG, jobId: 'new' }));
      expect(await queue.getJobLogs('old')).toEqual({ logs: [], count: 0 });
      expect((await queue.add('again', {}, { jobId: 'old' })).id).toBe('old');
      expect(await (await fetchJob(queue, 'old')).getState()).toBe('waiting');
    });

    it('replaces a job that waits to be tried again', async () => {
      const queue = stage.queue();
      const worker = stage.worker(() => Promise.reject(new Error('boom')));
      const failed = new EventLog(worker, ['failed']);
      await queue.add('old', {}, by('d', {}, { attempts: 2, backoff: LONG }));
      await failed.get('failed');
      await worker.pause();
      expect((await queue.add('new', {}, by('d', { replace: true }))).id).toBe('2');
      expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 0, waiting: 1 });
    });

    it('replaces within one addBulk', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const opts = by('d', { replace: true }, { delay: LONG });
      const jobs = await queue.addBulk([1, 2, 3].map((n) => ({ name: 'job', data: n, opts })));
      expect(jobs.map((job) => job.id)).toEqual(['1', '2', '3']);
      expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 1 });
      expect((await fetchJob(queue, '3')).data).toBe(3);
      await log.get('delayed', 3);
      expect(story(log).slice(2, 6)).toEqual(['removed 1', 'deduplicated 2', 'added 2', 'delayed 2']);
    });

    it('discards, and tells nobody, when the owner is not delayed any more', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('old', {}, by('d', { replace: true }));
      expect((await queue.add('new', {}, by('d', { replace: true }, { delay: LONG }))).id).toBe('1');
      await queue.add('last', {});
      await log.get('waiting', 2);
      expect(story(log)).toEqual(['added 1', 'waiting 1', 'added 3', 'waiting 3']);
    });

    it('discards while the owner is active', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const worker = stage.worker(() => gate.opened);
      const log = new EventLog(worker, ['active', 'completed']);
      await queue.add('old', {}, by('d', { replace: true }));
      await log.get('active');
      expect((await queue.add('new', {}, by('d', { replace: true }, { delay: LONG }))).id).toBe('1');
      gate.open();
      await log.get('completed');
      expect(await queue.getJobCounts('delayed', 'completed')).toEqual({ delayed: 0, completed: 1 });
    });

    it('keeps the time that the id has left', async () => {
      const queue = stage.queue();
      await queue.add('old', {}, by('d', { ttl: 1_000, replace: true }, { delay: LONG }));
      await queue.add('new', {}, by('d', { ttl: LONG, replace: true }, { delay: LONG }));
      await until('the end of the id', async () => (await queue.getDeduplicationJobId('d')) === null);
      expect((await queue.add('next', {}, by('d', { replace: true }, { delay: LONG }))).id).toBe('3');
      expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 2 });
    });

    it('takes the time from the id when the new job names none', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('old', {}, by('d', { ttl: LONG, replace: true }, { delay: LONG }));
      await queue.add('new', {}, by('d', { replace: true }));
      stage.worker(async () => undefined);
      await log.get('completed');
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it('starts the time anew when told to extend it', async () => {
      const queue = stage.queue();
      const opts = { ttl: LONG, extend: true, replace: true };
      await queue.add('old', {}, by('d', opts, { delay: LONG }));
      await queue.add('new', {}, by('d', { ...opts, ttl: 50 }, { delay: LONG }));
      await until('the end of the id', async () => (await queue.getDeduplicationJobId('d')) === null);
    });

    it('frees the id when the job that replaced another has completed', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('old', {}, by('d', { replace: true }, { delay: LONG }));
      await queue.add('new', {}, by('d', { replace: true }));
      stage.worker(async () => undefined);
      await log.get('completed');
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });
  });

  describe('that are rescheduled', () => {
    it('moves the time of the owner, and changes nothing else of it', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const timestamp = Date.now();
      await queue.add('old', 1, by('d', {}, { delay: LONG, timestamp }));
      const second = await queue.add('new', 2, by('d', RESCHEDULE, { delay: 2 * LONG, timestamp: timestamp + 5 }));
      expect(second.id).toBe('1');
      const job = await fetchJob(queue, '1');
      expect([job.name, job.data, job.delay, job.opts.delay, job.timestamp]).toEqual([
        'old',
        1,
        2 * LONG,
        LONG,
        timestamp,
      ]);
      await log.get('delayed', 2);
      expect(log.entries.slice(2).map(({ event, args }) => [event, args[0]])).toEqual([
        ['deduplicated', { jobId: '1', deduplicationId: 'd', deduplicatedJobId: '2' }],
        ['delayed', { jobId: '1', delay: timestamp + 5 + 2 * LONG }],
      ]);
    });

    it('makes the owner due at once when there is no new delay', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => undefined);
      const log = new EventLog(worker, ['completed']);
      await queue.add('old', {}, by('d', {}, { delay: LONG }));
      await worker.waitUntilReady();
      expect((await queue.add('new', {}, by('d', RESCHEDULE))).id).toBe('1');
      await log.get('completed');
    });

    it('moves a job within one addBulk', async () => {
      const queue = stage.queue();
      await queue.addBulk([
        { name: 'old', data: 1, opts: by('d', {}, { delay: LONG }) },
        { name: 'new', data: 2, opts: by('d', RESCHEDULE, { delay: 2 * LONG }) },
      ]);
      const job = await fetchJob(queue, '1');
      expect([job.name, job.delay]).toEqual(['old', 2 * LONG]);
    });

    it('moves a job that waits to be tried again', async () => {
      const queue = stage.queue();
      const worker = stage.worker(() => Promise.reject(new Error('boom')));
      const failed = new EventLog(worker, ['failed']);
      await queue.add('old', {}, by('d', {}, { attempts: 2, backoff: LONG }));
      await failed.get('failed');
      await queue.add('new', {}, by('d', RESCHEDULE, { delay: 2 * LONG }));
      expect((await fetchJob(queue, '1')).delay).toBe(2 * LONG);
    });

    it('only discards when the owner is not delayed', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('old', {}, by('d'));
      expect((await queue.add('new', {}, by('d', RESCHEDULE, { delay: LONG }))).id).toBe('1');
      await log.get('deduplicated');
      expect(deduplications(log)).toEqual([['1', 'd', '2']]);
      expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 0, waiting: 1 });
    });

    it('is not done when the owner is replaced', async () => {
      const queue = stage.queue();
      await queue.add('old', {}, by('d', {}, { delay: LONG }));
      const both = { ...RESCHEDULE, replace: true };
      expect((await queue.add('new', {}, by('d', both, { delay: 2 * LONG }))).id).toBe('2');
    });
  });
});
