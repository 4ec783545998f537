// Pins who owns a deduplication id, and when it is free again.
import { describe, expect, it } from 'vitest';
import type { JobsOptions, Queue } from 'bullmq';
import { by } from '../support/deduplication.js';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: the owner of a deduplication id', ({ lib }) => {
  const stage = useStage(lib);

  it('is the job that was added; nobody owns an id that nobody used', async () => {
    const queue = stage.queue();
    await queue.add('job', {}, by('d', {}, { jobId: 'mine' }));
    expect(await queue.getDeduplicationJobId('d')).toBe('mine');
    expect(await queue.getDebounceJobId('d')).toBe('mine');
    expect(await queue.getDeduplicationJobId('e')).toBeNull();
    expect(await queue.getDebounceJobId('e')).toBeNull();
  });

  describe('is nobody', () => {
    it('after removeDeduplicationKey, which says whether there was one', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, by('d'));
      expect(await queue.removeDeduplicationKey('d')).toBe(1);
      expect(await queue.removeDeduplicationKey('d')).toBe(0);
      expect((await queue.add('job', {}, by('d'))).id).toBe('2');
      expect(await queue.removeDebounceKey('d')).toBe(1);
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it('after removeDeduplicationKey of the job that owns it', async () => {
      const queue = stage.queue();
      const owner = await queue.add('job', {}, by('d'));
      expect(await owner.removeDeduplicationKey()).toBe(true);
      expect(await owner.removeDeduplicationKey()).toBe(false);
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it.each<[string, JobsOptions]>([
      ['keeps it', {}],
      ['removes it', { removeOnComplete: true }],
      ['keeps some', { removeOnComplete: 1 }],
    ])('when the job has completed, and retention %s', async (_, opts) => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(async () => undefined);
      await queue.add('job', {}, by('d', {}, opts));
      await log.get('completed');
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
      expect((await queue.add('job', {}, by('d'))).id).toBe('2');
    });

    it.each<[string, JobsOptions]>([
      ['keeps it', {}],
      ['removes it', { removeOnFail: true }],
    ])('when the job has failed for good, and retention %s', async (_, opts) => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(() => Promise.reject(new Error('boom')));
      await queue.add('job', {}, by('d', {}, opts));
      await log.get('failed');
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it.each<[string, JobsOptions]>([
      ['waiting', {}],
      ['delayed', { delay: 60_000 }],
    ])('when the job is removed while it is %s', async (_, opts) => {
      const queue = stage.queue();
      const job = await queue.add('job', {}, by('d', {}, opts));
      await job.remove();
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
      expect((await queue.add('job', {}, by('d'))).id).toBe('2');
    });

    it('when the job is removed by its id', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, by('d', { ttl: 60_000 }));
      await queue.remove('1');
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it.each([
      ['drain', (queue: Queue) => queue.drain(true)],
      ['clean', (queue: Queue) => queue.clean(0, 10, 'delayed')],
    ])('after %s of the job that waits for its time', async (_, empty) => {
      const queue = stage.queue();
      await queue.add('job', {}, by('d', {}, { delay: 60_000 }));
      await empty(queue);
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it('after clean of a finished job whose id has time left', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => undefined);
      const completed = new EventLog(worker, ['completed']);
      await queue.add('job', {}, by('d', { ttl: 60_000 }));
      await completed.get('completed');
      expect(await queue.getDeduplicationJobId('d')).toBe('1');
      await queue.clean(0, 10, 'completed');
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it('after obliterate', async () => {
      const queue = stage.queue();
      await queue.add('a', {}, by('d', {}, { delay: 60_000 }));
      await queue.add('b', {}, by('e', { ttl: 60_000 }));
      await queue.obliterate();
      expect([await queue.getDeduplicationJobId('d'), await queue.getDeduplicationJobId('e')]).toEqual([null, null]);
      expect((await queue.add('job', {}, by('d'))).id).toBe('1');
    });
  });

  describe('stays the same', () => {
    it('when a job that does not own it asks for its removal', async () => {
      const queue = stage.queue();
      const first = await queue.add('job', {}, by('d'));
      await queue.removeDeduplicationKey('d');
      await queue.add('job', {}, by('d'));
      expect(await first.removeDeduplicationKey()).toBe(false);
      expect(await queue.getDeduplicationJobId('d')).toBe('2');
    });

    it('when a job without one asks', async () => {
      const queue = stage.queue();
      const job = await queue.add('job', {});
      expect(await job.removeDeduplicationKey()).toBe(false);
    });

    it('when a discarded job asks, which has the id of the owner, it goes', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, by('d'));
      const second = await queue.add('job', {}, by('d'));
      expect(await second.removeDeduplicationKey()).toBe(true);
    });

    it('when an earlier owner completes, or is removed', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const first = await queue.add('job', {}, by('d'));
      await queue.removeDeduplicationKey('d');
      await queue.add('job', {}, by('d', {}, { delay: 60_000 }));
      stage.worker(async () => undefined);
      await log.get('completed');
      expect(await queue.getDeduplicationJobId('d')).toBe('2');
      await first.remove();
      expect(await queue.getDeduplicationJobId('d')).toBe('2');
    });

    it('when its job is tried again at once', async () => {
      const queue = stage.queue();
      const owners: (string | null)[] = [];
      const worker = stage.worker(async () => {
        owners.push(await queue.getDeduplicationJobId('d'));
        throw new Error('boom');
      });
      const failed = new EventLog(worker, ['failed']);
      await queue.add('job', {}, by('d', {}, { attempts: 3 }));
      await failed.get('failed', 3);
      expect(owners).toEqual(['1', '1', '1']);
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it('when its job waits to be tried again', async () => {
      const queue = stage.queue();
      const worker = stage.worker(() => Promise.reject(new Error('boom')));
      const failed = new EventLog(worker, ['failed']);
      await queue.add('job', {}, by('d', {}, { attempts: 2, backoff: 60_000 }));
      await failed.get('failed');
      expect((await queue.add('job', {}, by('d'))).id).toBe('1');
    });

    it('when its job is promoted, or due at another time', async () => {
      const queue = stage.queue();
      const job = await queue.add('job', {}, by('d', {}, { delay: 60_000 }));
      await job.changeDelay(50_000);
      expect((await queue.add('job', {}, by('d'))).id).toBe('1');
      await job.promote();
      expect((await queue.add('job', {}, by('d'))).id).toBe('1');
    });

    it('when its job is moved from active to delayed, and only then completes', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      let moved = false;
      const owners: (string | null)[] = [];
      stage.worker(async (job, token) => {
        owners.push(await queue.getDeduplicationJobId('d'));
        if (moved) return;
        moved = true;
        await job.moveToDelayed(Date.now() + 10, token);
        throw new lib.DelayedError();
      });
      await queue.add('job', {}, by('d'));
      await log.get('completed');
      expect(owners).toEqual(['1', '1']);
      expect(await queue.getDeduplicationJobId('d')).toBeNull();
    });

    it('when a worker holds the job that is to be removed', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const active = new EventLog(
        stage.worker(() => gate.opened),
        ['active'],
      );
      const job = await queue.add('job', {}, by('d'));
      await active.get('active');
      await rejection(job.remove());
      expect(await queue.getDeduplicationJobId('d')).toBe('1');
    });
  });

  it('is not the job again when that is retried after its failure', async () => {
    const queue = stage.queue();
    const worker = stage.worker(() => Promise.reject(new Error('boom')));
    const failed = new EventLog(worker, ['failed']);
    const job = await queue.add('job', {}, by('d'));
    await failed.get('failed');
    await worker.pause();
    await job.retry();
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
    const next = await queue.add('job', {}, by('d', {}, { delay: 60_000 }));
    await worker.resume();
    await failed.get('failed', 2);
    expect(await queue.getDeduplicationJobId('d')).toBe(next.id);
  });
});
