// What BullMQ 5 has of jobs and 6 has dropped: `discard`, `debounce`, the last priority.
import { describe, expect, it } from 'vitest';
import { idiom, libraries, useStage5 } from './stage.js';
import { EventLog, rejection, sleep, until } from '../support/waiting.js';

describe.each(libraries)('$name: jobs', ({ name, lib }) => {
  const stage = useStage5(lib);
  const ours = name === 'chasquimq/v5';

  idiom('is-in-list', async () => {
    interface Places {
      isInList(list: string): Promise<boolean>;
      isInZSet(set: string): Promise<boolean>;
    }
    const queue = stage.queue();
    const job = (await queue.add('x', {})) as unknown as Places;
    const late = (await queue.add('late', {}, { delay: 60_000 })) as unknown as Places;
    const lists = () => Promise.all(['wait', 'paused', 'active'].map((list) => job.isInList(list)));
    expect(await lists()).toEqual([true, false, false]);
    await queue.pause();
    expect(await lists()).toEqual([false, true, false]);
    expect([await late.isInZSet('delayed'), await late.isInZSet('failed')]).toEqual([true, false]);
    expect(await late.isInList('wait')).toBe(false);
  });

  idiom('discard', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      job.discard();
      throw new Error(`try ${job.attemptsMade}`);
    });
    const log = new EventLog(worker, ['failed']);
    const job = await queue.add('once', {}, { attempts: 5, backoff: 1 });
    await log.get('failed');
    await until('the failure to be final', () => job.isFailed());
    const found = await queue.getJob(job.id!);
    expect([found?.attemptsMade, found?.failedReason, found?.opts.attempts]).toEqual([1, 'try 0', 5]);
  });

  idiom('discard-completed', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      job.discard();
      return 7;
    });
    const log = new EventLog(worker, ['completed']);
    const job = await queue.add('once', {}, { attempts: 5 });
    await log.get('completed');
    expect((await queue.getJob(job.id!))?.returnvalue).toBe(7);
    // who asks for the job again may have it tried as often as it may
    expect(await job.isCompleted()).toBe(true);
  });

  idiom('debounce-ttl', async () => {
    const queue = stage.queue();
    const first = await queue.add('mail', { x: 1 }, { debounce: { id: 'ana', ttl: 1_500 } });
    const second = await queue.add('mail', { x: 2 }, { debounce: { id: 'ana', ttl: 1_500 } });
    const other = await queue.add('mail', { x: 3 }, { debounce: { id: 'ben', ttl: 1_500 } });
    expect(second.id).toBe(first.id);
    expect(other.id).not.toBe(first.id);
    expect(await queue.getWaitingCount()).toBe(2);
    await sleep(1_550); // the time itself
    const later = await queue.add('mail', { x: 4 }, { debounce: { id: 'ana', ttl: 1_500 } });
    expect(later.id).not.toBe(first.id);
  });

  idiom('debounce', async () => {
    const queue = stage.queue();
    const debounce = { id: 'ana' };
    const first = await queue.add('mail', {}, { debounce });
    expect((await queue.add('mail', {}, { debounce })).id).toBe(first.id);
    const found = (await queue.getJob(first.id!))!;
    for (const plain of [found.toJSON(), found.asJSON(), JSON.parse(JSON.stringify(found))]) {
      expect(plain).toMatchObject({ debounceId: 'ana' });
    }
    const log = new EventLog(
      stage.worker(async () => {}),
      ['completed'],
    );
    await log.get('completed');
    expect((await queue.add('mail', {}, { debounce })).id).not.toBe(first.id);
    await log.get('completed', 2);
  });

  idiom('debounce-job', async () => {
    const queue = stage.queue();
    const job = await queue.add('mail', {}, { debounce: { id: 'ana', ttl: 60_000 } });
    expect(await queue.getDebounceJobId('ana')).toBe(job.id);
    expect(await queue.getDebounceJobId('nobody')).toBeNull();
    for (const each of [job, await queue.getJob(job.id!)]) {
      expect([each?.debounceId, each?.deduplicationId]).toEqual(['ana', 'ana']);
    }
  });

  idiom('debounce-remove', async () => {
    const queue = stage.queue();
    const debounce = { id: 'ana', ttl: 60_000 };
    const first = await queue.add('mail', {}, { debounce });
    expect(await queue.removeDebounceKey('ana')).toBe(1);
    expect(await queue.removeDebounceKey('ana')).toBe(0);
    expect((await queue.add('mail', {}, { debounce })).id).not.toBe(first.id);
  });

  idiom('debounce-no-id', async () => {
    const queue = stage.queue();
    const adding = queue.add('mail', {}, { debounce: {} as never });
    expect((await rejection(adding)).message).toBe('Debounce id must be provided');
    expect(await queue.count()).toBe(0);
  });

  idiom('debounced', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const log = new EventLog(events, ['debounced', 'deduplicated']);
    const job = await queue.add('mail', {}, { debounce: { id: 'ana', ttl: 60_000 } });
    await queue.add('mail', {}, { debounce: { id: 'ana', ttl: 60_000 } });
    await log.get('deduplicated');
    expect(log.names).toEqual(['debounced', 'deduplicated']);
    const [[told]] = log.all('debounced');
    expect(told).toEqual({ jobId: job.id, debounceId: 'ana' });
  });

  idiom('priority', async () => {
    const queue = stage.queue();
    expect(lib.PRIORITY_LIMIT).toBe(2_097_151);
    for (const priority of [2_097_151, 2_097_150, 1, 2_097_151]) await queue.add(String(priority), {}, { priority });
    const found = await queue.getPrioritized();
    expect(found.map((job) => job.name)).toEqual(['1', '2097150', '2097151', '2097151']);
    expect(found[3].priority).toBe(2_097_151);
  });

  idiom('priority-older', async () => {
    const queue = stage.queue();
    const adding = queue.add('late', {}, { priority: 2_097_152 });
    if (!ours) {
      expect((await rejection(adding)).message).toBe('Priority should be between 0 and 2097151');
      return;
    }
    await adding;
    const flow = await stage.flowProducer().add({
      name: 'flow',
      queueName: stage.base.name(),
      children: [{ name: 'child', queueName: stage.base.name(), opts: { priority: 2_097_152 } }],
    });
    const [bulk] = await queue.addBulk([{ name: 'bulk', data: {}, opts: { priority: 2_097_152 } }]);
    await bulk.changePriority({ priority: 1 });
    await bulk.changePriority({ priority: 2_097_152 });
    expect(flow.job.name).toBe('flow');
    const found = await queue.getPrioritized();
    expect(found.map((job) => [job.name, job.priority])).toEqual([
      ['late', 2_097_151],
      ['child', 2_097_151],
      ['bulk', 2_097_151],
    ]);
  });

  idiom('priority-beyond', async () => {
    const queue = stage.queue();
    const adding = queue.add('late', {}, { priority: 2_097_153 });
    expect((await rejection(adding)).message).toBe('Priority should be between 0 and 2097151');
    expect(await queue.count()).toBe(0);
  });

  it('rejects an addBulk of flows for a parent that is missing, and adds the others', async () => {
    const queue = stage.queue();
    const queueName = stage.base.name();
    const lost = { name: 'lost', queueName, opts: { parent: { id: 'none', queue: `bull:${queueName}` } } };
    const adding = stage.flowProducer().addBulk([lost, { name: 'there', queueName }]);
    expect(await rejection(adding)).toMatchObject({
      code: -5,
      message: `Missing key for parent job bull:${queueName}:none. addJob`,
    });
    expect((await queue.getJobs()).map(({ name }) => name)).toEqual(['there']);
  });
});
