// Job schedulers go with the job that waits for its time, and go on from there.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { until } from '../support/waiting.js';
import { MAJORS, useBench } from './bench.js';

const HOUR = 3_600_000;

describe.each(MAJORS)('moving job schedulers from $name', (major) => {
  const bench = useBench(major);

  async function schedulersOf(queue: Queue): Promise<unknown[]> {
    const found = await queue.getJobSchedulers(0, -1, true);
    return found.map(({ key, name, next, pattern, every, tz, limit, template }) => ({
      ...{ key, name, next, pattern, every: every === undefined ? undefined : Number(every), tz },
      ...{ limit: limit === undefined ? undefined : Number(limit), template },
    }));
  }

  it('keeps what they make, and when', async () => {
    const queue = bench.queue();
    await queue.upsertJobScheduler('hourly', { every: HOUR }, { name: 'tick', data: { a: 1 }, opts: { attempts: 3 } });
    await queue.upsertJobScheduler(
      'daily',
      { pattern: '0 3 * * *', tz: 'Europe/Madrid', limit: 9 },
      { name: 'report' },
    );
    await queue.upsertJobScheduler('bare', { pattern: '0 0 1 1 *' });
    const before = await schedulersOf(queue);
    const shown = ({ id, delay, opts: { attempts: _, ...opts } }: Job): unknown => [id, delay, opts];
    const jobs = (await queue.getDelayed()).map(shown);

    const { accounts } = await bench.move();
    const target = bench.target();
    expect(await schedulersOf(target)).toEqual(before);
    // the first job of one that runs at intervals waits for no time
    expect((await target.getDelayed()).map(shown)).toEqual(jobs);
    expect(accounts[0]?.schedulers).toBe(3);
    expect(await bench.jobKeys()).toEqual([]);
    expect(await target.removeJobScheduler('daily')).toBe(true);
  });

  it('go on here', async () => {
    const queue = bench.queue();
    await queue.upsertJobScheduler('often', { every: 200 }, { name: 'tick', data: { a: 1 } });
    await bench.move();
    const ran: string[] = [];
    bench.ownWorker(async (job) => ran.push(`${job.name} ${JSON.stringify(job.data)} ${job.repeatJobKey}`));
    await until('three to run', () => ran.length >= 3);
    expect(new Set(ran)).toEqual(new Set(['tick {"a":1} often']));
  });

  it('wait while a worker of BullMQ makes what follows', async () => {
    const queue = bench.queue();
    await queue.upsertJobScheduler('hourly', { every: HOUR }, { name: 'tick' });
    const worker = bench.worker(async () => {});
    await until('the first to end', async () => (await queue.getCompletedCount()) === 1);
    await worker.close();
    await bench.move();
    const target = bench.target();
    expect((await target.getJobSchedulers()).map(({ key }) => key)).toEqual(['hourly']);
    expect(await target.getDelayedCount()).toBe(1);
    expect(await target.getCompletedCount()).toBe(1);
  });

  it('stay where one of the same id is here', async () => {
    const target = bench.target();
    await target.upsertJobScheduler('same', { every: 2 * HOUR }, { name: 'ours' });
    const queue = bench.queue();
    await queue.upsertJobScheduler('same', { pattern: '0 3 * * *' }, { name: 'theirs' });
    const { accounts } = await bench.move();
    expect([...(accounts[0]?.stays.keys() ?? [])]).toEqual(['scheduler']);
    expect((await target.getJobSchedulers()).map(({ name }) => name)).toEqual(['ours']);
    expect((await queue.getJobSchedulers()).map(({ name }) => name)).toEqual(['theirs']);
  });
});

describe('moving repeatable jobs of BullMQ 5', () => {
  const bench = useBench(MAJORS[1]);

  it('makes schedulers of them', async () => {
    const queue = bench.queue() as Queue & { getRepeatableJobs(): Promise<{ key: string; next: number }[]> };
    await queue.add('cron', { a: 1 }, { repeat: { pattern: '0 3 * * *' }, attempts: 2 } as object);
    await queue.add('every', { b: 2 }, { repeat: { every: HOUR, key: 'mine' } } as object);
    const before = (await queue.getRepeatableJobs()).map(({ key, next }) => [key, next]).sort();
    expect(before).toHaveLength(2);
    await bench.move();
    const target = bench.target();
    const found = await target.getJobSchedulers();
    expect(found.map(({ key, next }) => [key, next]).sort()).toEqual(before);
    const cron = found.find(({ name }) => name === 'cron');
    expect(cron).toMatchObject({ pattern: '0 3 * * *', template: { data: { a: 1 }, opts: { attempts: 2 } } });
    expect(await target.getDelayedCount()).toBe(2);
    expect(await bench.jobKeys()).toEqual([]);
  });

  it('writes utc as the time zone that it is, and leaves days that are counted in a month', async () => {
    const queue = bench.queue();
    const pattern = '0 3 * * 1';
    await queue.add('utc', {}, { repeat: { pattern, utc: true } } as object);
    await queue.add('both', {}, { repeat: { pattern, utc: true, tz: 'Asia/Tokyo' } } as object);
    await queue.add('second', {}, { repeat: { pattern, nthDayOfWeek: 2 } } as object);
    const { accounts } = await bench.move();
    expect([...(accounts[0]?.stays.keys() ?? [])]).toEqual(['nth']);
    const target = bench.target();
    expect((await target.getJobSchedulers()).map(({ tz }) => tz)).toEqual(['UTC', 'UTC']);
    const jobs = await target.getDelayed();
    expect(jobs.map(({ opts }) => (opts as { repeat?: { tz?: string } }).repeat?.tz)).toEqual(['UTC', 'UTC']);
    expect((await queue.getDelayed()).map(({ name }) => name)).toEqual(['second']);
  });
});
