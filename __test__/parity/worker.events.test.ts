// Pins the events of a Worker object and their order.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const LIFE = ['active', 'completed', 'failed', 'drained', 'closing', 'closed', 'paused', 'resumed', 'stalled'];

describe.each(libraries)('$name: worker.events', ({ lib }) => {
  const stage = useStage(lib);

  it('run from drained over active and completed to closed', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => 'done');
    const log = new EventLog(worker, LIFE);
    await log.get('drained');
    await queue.add('job', {});
    await log.get('drained', 2);
    await worker.close();
    expect(log.names).toEqual(['drained', 'active', 'completed', 'drained', 'closing', 'closed']);
  });

  it('ready comes once, when the worker is connected', async () => {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['ready']);
    expect(await log.get('ready')).toEqual([]);
    await worker.waitUntilReady();
    await worker.pause();
    await worker.resume();
    await worker.close();
    expect(log.names).toEqual(['ready']);
  });

  it('active brings the job and the state it left', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['active'],
    );
    await queue.add('job', {});
    const args = await log.get<[Job, string]>('active');
    expect([args.length, args[0].id, args[1]]).toEqual([2, '1', 'waiting']);
  });

  it('active comes before the processor is called, with the same Job', async () => {
    const queue = stage.queue();
    const order: [string, Job][] = [];
    const worker = stage.worker(async (job) => order.push(['processor', job]));
    worker.on('active', (job) => order.push(['active', job]));
    const completed = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    await completed.get('completed');
    expect(order.map(([what]) => what)).toEqual(['active', 'processor']);
    expect(order[0]?.[1]).toBe(order[1]?.[1]);
  });

  it('alternate between active and completed, job by job, at a concurrency of 1', async () => {
    const queue = stage.queue();
    await queue.addBulk([1, 2, 3, 4].map(() => ({ name: 'job', data: {} })));
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['active', 'completed'],
    );
    await log.get('completed', 4);
    expect(log.entries.map(({ event, args }) => `${event} ${String((args[0] as Job).id)}`)).toEqual([
      'active 1',
      'completed 1',
      'active 2',
      'completed 2',
      'active 3',
      'completed 3',
      'active 4',
      'completed 4',
    ]);
  });

  it('failed takes the place of completed, and brings job, error and the state it left', async () => {
    const queue = stage.queue();
    const thrown = new Error('no paint');
    const worker = stage.worker(async (job) => {
      if (job.id === '1') throw thrown;
    });
    const log = new EventLog(worker, LIFE);
    await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {} })));
    await log.get('completed');
    const args = await log.get<[Job, Error, string]>('failed');
    expect([args.length, args[0].id, args[2]]).toEqual([3, '1', 'active']);
    expect(args[1]).toBe(thrown);
    expect(log.names.filter((name) => name !== 'drained')).toEqual(['active', 'failed', 'active', 'completed']);
  });

  it('drained comes once on an empty queue, and once each time the queue ran dry', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { drainDelay: 0.05 });
    const log = new EventLog(worker, ['completed', 'drained']);
    expect(await log.get('drained')).toEqual([]);
    await queue.addBulk([1, 2, 3].map(() => ({ name: 'job', data: {} })));
    await log.get('drained', 2);
    await queue.add('job', {});
    await log.get('drained', 3);
    // Several drain delays pass here; an idle worker that looks again and finds nothing says nothing.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(log.names).toEqual(['drained', 'completed', 'completed', 'completed', 'drained', 'completed', 'drained']);
  });

  it('progress brings the job of the processor and the progress', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.updateProgress(50);
      await job.updateProgress({ done: true });
    });
    const log = new EventLog(worker, ['active', 'progress', 'completed']);
    await queue.add('job', {});
    const [job] = await log.get<[Job]>('completed');
    expect(log.names).toEqual(['active', 'progress', 'progress', 'completed']);
    const [first, second] = log.all<[Job, unknown]>('progress');
    expect(first?.[0]).toBe(job);
    expect([first?.[1], second?.[1]]).toEqual([50, { done: true }]);
  });

  it('closing says what is closing, synchronously, and closed comes last', async () => {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['closing', 'closed']);
    await worker.waitUntilReady();
    const closing = worker.close();
    expect(log.entries).toEqual([{ event: 'closing', args: ['closing queue'] }]);
    await closing;
    expect(log.entries.slice(1)).toEqual([{ event: 'closed', args: [] }]);
  });

  it('are not disturbed by listeners that throw, whose errors become error events', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => 'done');
    const log = new EventLog(worker, ['active', 'completed', 'error']);
    worker.on('active', () => {
      throw new Error('from active');
    });
    worker.on('completed', () => {
      throw new Error('from completed');
    });
    const jobs = await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {} })));
    await log.get('completed', 2);
    await until('the last error', () => log.all('error').length === 4);
    expect(log.names).toEqual(['active', 'error', 'completed', 'error', 'active', 'error', 'completed', 'error']);
    expect(stage.takeErrors().map((error) => error.message)).toEqual([
      'from active',
      'from completed',
      'from active',
      'from completed',
    ]);
    expect(await Promise.all(jobs.map((job) => job.getState()))).toEqual(['completed', 'completed']);
  });

  it('of one worker do not tell of the jobs of another', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const one = new EventLog(
      stage.worker(() => gate.opened),
      ['active'],
    );
    await queue.add('job', {});
    await one.get('active');
    const two = new EventLog(
      stage.worker(async () => undefined),
      ['active', 'completed'],
    );
    await queue.add('job', {});
    await two.get('completed');
    expect([one.names, two.names]).toEqual([['active'], ['active', 'completed']]);
  });
});
