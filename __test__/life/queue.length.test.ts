// A queue with a maximum length stays as long, and tells those who add (docs/guides/length-limits.md).
import { describe, expect, it } from 'vitest';
import type { FlowProducer, JobsOptions, Queue } from 'bullmq';
import type { Queue as OurQueue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { rejection, until } from '../support/waiting.js';

const LIMIT_MS = 300_000;

describe('maximum length', () => {
  const stage = useStage(chasquimq);

  const limited = (queue: Queue) => queue as unknown as OurQueue;

  async function open(max: number): Promise<Queue> {
    const queue = stage.queue();
    expect(await limited(queue).setMaxLength(max)).toBe(1);
    return queue;
  }

  const jobs = (count: number) => Array.from({ length: count }, (_, n) => ({ name: 'job', data: n }));

  it.each<[string, JobsOptions]>([
    ['plain', {}],
    ['delayed', { delay: 60_000 }],
    ['prioritized', { priority: 3 }],
    ['named', { jobId: 'own' }],
    ['deduplicated', { deduplication: { id: 'x' } }],
  ])('a job past it is refused: %s', async (_, opts) => {
    const queue = await open(3);
    await queue.addBulk([
      { name: 'waits', data: 1 },
      { name: 'delayed', data: 1, opts: { delay: 60_000 } },
      { name: 'prioritized', data: 1, opts: { priority: 1 } },
    ]);
    expect(await rejection(queue.add('job', 1, opts))).toMatchObject({
      message: `Queue ${queue.qualifiedName} is full: 3 of at most 3 jobs wait there, and 1 more were to be added`,
      code: 'ERR_QUEUE_FULL',
    });
    expect(await queue.count()).toBe(3);
    await limited(queue).setMaxLength(4);
    // nothing of what was refused is left, not even a number
    const { id } = await queue.add('job', 1, opts);
    expect(id).toBe(opts.jobId ?? '4');
  });

  it('the error of each who adds is an own one, and tells of who awaits it', async () => {
    const queue = await open(1);
    await queue.add('first', 1);
    async function whoAdds(add: () => Promise<unknown>): Promise<Error> {
      try {
        await add();
      } catch (error) {
        return error as Error;
      }
      throw new Error('it was added');
    }
    const calls = [
      () => whoAdds(() => queue.add('alone', 1)),
      () => whoAdds(() => queue.addBulk(jobs(2))),
      () => whoAdds(() => queue.addBulk(jobs(5000))),
    ];
    const errors = [];
    for (const call of calls) errors.push(await call());
    errors.push(...(await Promise.all([calls[0](), calls[0]()])));
    expect(new Set(errors).size).toBe(5);
    for (const { stack } of errors) expect(stack).toMatch(/\n +at (?:async )?whoAdds \(.*queue\.length\.test\.ts:/);
  });

  it('holds for all who add, and for each batch as a whole', async () => {
    const queue = await open(50);
    const others = [stage.queue(), stage.queue()];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) => others[i % 2].addBulk(jobs(3)).then((added) => added.length)),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(16);
    expect(await queue.count()).toBe(48);
    // calls of one tick travel together, unless the clock ticks between them
    const tick = await Promise.allSettled([queue.add('job', 1), queue.add('job', 2), queue.add('job', 3)]);
    const added = tick.filter(({ status }) => status === 'fulfilled').length;
    expect(added).toBeLessThan(3);
    expect(await queue.count()).toBe(48 + added);
  });

  it('a flow is refused as a whole', async () => {
    const queue = await open(3);
    const flows: FlowProducer = stage.flowProducer();
    const child = { name: 'child', queueName: queue.name };
    const flow = (children: number) => ({
      name: 'parent',
      queueName: queue.name,
      children: Array.from({ length: children }, () => child),
    });
    expect(await rejection(flows.add(flow(3)))).toMatchObject({
      message: `Queue ${queue.qualifiedName} is full: 0 of at most 3 jobs wait there, and 4 more were to be added`,
      code: 'ERR_QUEUE_FULL',
    });
    expect(await queue.count()).toBe(0);
    await flows.add(flow(2));
    expect(await queue.getJobCounts('waiting', 'waiting-children')).toEqual({ waiting: 2, 'waiting-children': 1 });
    const { id } = (await queue.getWaitingChildren())[0];
    const parent = { id: String(id), queue: queue.qualifiedName };
    expect(await rejection(queue.add('child', 1, { parent }))).toMatchObject({ code: 'ERR_QUEUE_FULL' });
  });

  it('what is there runs, is retried, promoted and repeated, whatever the length', { timeout: LIMIT_MS }, async () => {
    const queue = await open(4);
    await queue.upsertJobScheduler('often', { every: 50 }, { name: 'repeated' });
    await queue.addBulk([
      { name: 'twice', data: 1, opts: { attempts: 2 } },
      { name: 'delayed', data: 1, opts: { delay: 60_000 } },
      { name: 'job', data: 1 },
    ]);
    await limited(queue).setMaxLength(1);
    await (await queue.getDelayed()).find(({ name }) => name === 'delayed')?.promote();
    const ran: string[] = [];
    stage.worker(async (job) => {
      ran.push(job.name);
      if (job.name === 'twice' && job.attemptsMade === 0) throw new Error('again');
    });
    const times = (name: string) => ran.filter((other) => other === name).length;
    await until('all to run', () => times('twice') === 2 && times('delayed') === 1 && times('repeated') > 2, LIMIT_MS);
    expect(times('job')).toBe(1);
    await queue.removeJobScheduler('often');
  });

  it('a producer that waits for room keeps the queue short', { timeout: LIMIT_MS }, async () => {
    const queue = await open(100);
    const seen = new Set<unknown>();
    stage.worker(async (job) => void seen.add(job.data), { concurrency: 10 });
    let longest = 0;
    for (let n = 0; n < 2_000; n += 20) {
      const batch = jobs(20).map(({ name, data }) => ({ name, data: n + data }));
      await until('room', () =>
        queue.addBulk(batch).then(Boolean, (error: { code?: string }) => {
          expect(error.code).toBe('ERR_QUEUE_FULL');
          return false;
        }),
      );
      longest = Math.max(longest, await queue.count());
    }
    await until('all to run', () => seen.size === 2_000, LIMIT_MS);
    expect(longest).toBeLessThanOrEqual(100);
  });

  it('is kept, shown, lifted, and goes with the queue', async () => {
    const queue = await open(2);
    expect(await limited(queue).setMaxLength(5)).toBe(0);
    expect(await limited(queue).getMaxLength()).toBe(5);
    expect(await queue.getMeta()).toMatchObject({ maxLength: 5 });
    expect(await limited(queue).removeMaxLength()).toBe(1);
    expect(await limited(queue).removeMaxLength()).toBe(0);
    expect(await limited(queue).getMaxLength()).toBeNull();
    await queue.addBulk(jobs(10));
    await limited(queue).setMaxLength(5);
    await queue.obliterate();
    expect(await limited(queue).getMaxLength()).toBeNull();
    await queue.addBulk(jobs(10));
  });

  it.each([0, -1, 1.5, NaN, Infinity, '5', undefined])('%s is refused', async (max) => {
    const error = await rejection(limited(stage.queue()).setMaxLength(max as number));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({
      message: `The maximum length must be a whole number of at least 1, not ${String(max)}`,
    });
  });
});
