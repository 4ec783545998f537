// How late a queue is: for how long jobs wait now, and how long they took, as workers measure. BullMQ has none of it.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Queue as QueueOfFive } from '../../src/v5/index.js';
import type { Job, JobTimes, LatencyOptions, Queue, Worker, WorkerOptions } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { connection, keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, rejection, sleep, until } from '../support/waiting.js';

const DAY_MS = 86_400_000;
const NONE: JobTimes = { count: 0, mean: null, p50: null, p95: null, p99: null };

describe('latency', () => {
  const stage = useStage(chasquimq);
  const queue = (): Queue => stage.queue() as unknown as Queue;

  function worker(handler: ((job: Job) => Promise<unknown>) | string, opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(handler as never, { metrics: { latency: true }, ...opts }) as unknown as Worker;
  }

  /** Closes a worker behind the end of so many jobs. */
  async function closeBehind(by: Worker, jobs: number): Promise<void> {
    const log = new EventLog(by, ['completed', 'failed']);
    await log.when('all ends', () => log.entries.length >= jobs);
    await by.close();
  }

  /** Told of these times, ms: the mean is exact, percentiles are rounded up. */
  function expectTimes(told: JobTimes, times: number[]): void {
    const sorted = [...times].sort((one, other) => one - other);
    expect(told.count).toBe(times.length);
    expect(told.mean).toBeCloseTo(times.reduce((sum, ms) => sum + ms, 0) / times.length, 6);
    for (const percent of [50, 95, 99] as const) {
      const exact = Math.max(sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? NaN, 1);
      expect(told[`p${percent}`]).toBeGreaterThanOrEqual(exact);
      expect(told[`p${percent}`]).toBeLessThan(exact * 1.415);
    }
  }

  it('is told of jobs of every kind, as their own times say', async () => {
    const q = queue();
    const timestamp = Date.now() - 5_000;
    await q.addBulk(Array.from({ length: 150 }, (_, data) => ({ name: 'plain', data })));
    await q.addBulk(Array.from({ length: 20 }, (_, data) => ({ name: 'old', data, opts: { timestamp } })));
    await q.addBulk([
      { name: 'own', data: 0, opts: { jobId: 'own', timestamp: timestamp - 60_000 } },
      { name: 'urgent', data: 0, opts: { priority: 3, timestamp } },
      { name: 'late', data: 0, opts: { delay: 4_000, timestamp } },
      { name: 'grouped', data: 0, opts: { group: { id: 'g' }, timestamp } },
      { name: 'large', data: 'x'.repeat(100_000) },
    ]);
    await closeBehind(
      worker(async ({ name }) => (name === 'large' ? 'y'.repeat(10_000) : 1), { concurrency: 7 }),
      175,
    );
    const jobs = await q.getJobs('completed');
    const since = ({ timestamp: added, opts }: Job): number => added + (opts.delay ?? 0);
    const { oldest, waiting, running, completion, perMinute } = await q.getLatency();
    expect(oldest).toBeNull();
    expect(jobs).toHaveLength(175);
    expectTimes(
      waiting,
      jobs.map((job) => Math.max((job.processedOn ?? NaN) - since(job), 0)),
    );
    expectTimes(
      running,
      jobs.map((job) => (job.finishedOn ?? NaN) - (job.processedOn ?? NaN)),
    );
    expectTimes(
      completion,
      jobs.map((job) => (job.finishedOn ?? NaN) - since(job)),
    );
    expect(perMinute).toBeGreaterThan(0);
  });

  it('counts each run of a job that is tried again, and its end once', async () => {
    const q = queue();
    await q.add('flaky', 0, { attempts: 3, backoff: 1 });
    await q.add('lost', 0, { attempts: 2, timestamp: Date.now() - 8_000 });
    const by = worker(async ({ name, attemptsMade }) => {
      if (name === 'lost' || attemptsMade < 2) throw new Error('no');
    });
    await closeBehind(by, 5);
    const { waiting, running, completion } = await q.getLatency();
    expect([waiting.count, running.count, completion.count]).toEqual([5, 5, 2]);
    expect(completion.p99).toBeGreaterThan(8_000);
  });

  it('tells a meter of each start what it tells of the queue, and else nothing', async () => {
    const q = queue();
    const [telemetry, silent] = [new TestTelemetry(), new TestTelemetry()];
    const timestamp = Date.now() - 5_000;
    await q.addBulk(Array.from({ length: 20 }, (_, data) => ({ name: 'plain', data, opts: { timestamp } })));
    await q.addBulk([
      { name: 'own', data: 0, opts: { jobId: 'own', timestamp: timestamp - 60_000 } },
      { name: 'late', data: 0, opts: { delay: 4_000, timestamp } },
      { name: 'flaky', data: 0, opts: { attempts: 3, backoff: 1, timestamp } },
    ]);
    const at = { name: 'of a flow', queueName: q.name };
    await stage.flowProducer().add({ ...at, children: [{ ...at, opts: { timestamp } }] });
    const fails = ({ name, attemptsMade }: Job): boolean => name === 'flaky' && attemptsMade < 2;
    const handler = async (job: Job): Promise<void> => {
      if (fails(job)) throw new Error('no');
    };
    await closeBehind(worker(handler, { telemetry, concurrency: 3 }), 27);
    const waits = telemetry.measures.filter(({ instrument }) => instrument === 'chasquimq.job.wait');
    // the start of the parent is none of them
    expect(waits).toHaveLength(26);
    expectTimes(
      (await q.getLatency()).waiting,
      waits.map(({ value }) => value),
    );
    expect(waits[0]).toEqual({
      instrument: 'chasquimq.job.wait',
      options: { description: 'Time from when a job could start until it did', unit: 'ms' },
      value: expect.any(Number),
      attributes: { 'bullmq.queue.name': q.name, 'bullmq.job.name': 'plain', 'bullmq.job.state': 'active' },
    });
    await q.add('unmeasured', 0);
    await closeBehind(worker(handler, { telemetry: silent, metrics: {} }), 1);
    expect(silent.measures.map(({ instrument }) => instrument).sort()).toEqual([
      'bullmq.job.duration',
      'bullmq.jobs.completed',
    ]);
  });

  it.each([0, 100])('counts no run as a wait for the next, with a backoff of %i ms', async (backoff) => {
    const q = queue();
    await q.add('slow', 0, { attempts: 2, backoff, jobId: 'own' });
    const by = worker(async ({ attemptsMade }) => {
      if (attemptsMade > 0) return;
      await sleep(1_500); // a run that takes its time
      throw new Error('no');
    });
    await closeBehind(by, 2);
    const { waiting, running } = await q.getLatency();
    expect([waiting.count, running.count]).toEqual([2, 2]);
    expect((waiting.mean ?? NaN) * 2).toBeLessThan(1_500);
    expect(running.p99).toBeGreaterThan(1_500);
  });

  it('tells of flows, batches and processors that are files', async () => {
    const q = queue();
    const file = fileURLToPath(new URL('../parity/processors/default.cjs', import.meta.url));
    await stage.flowProducer().add({
      ...{ name: 'parent', queueName: q.name },
      children: [1, 2].map((data) => ({ name: 'child', data, queueName: q.name })),
    });
    await closeBehind(worker(file), 3);
    // a parent waits for its children, not in line
    let { waiting, running, completion } = await q.getLatency();
    expect([waiting.count, running.count, completion.count]).toEqual([2, 3, 3]);
    await q.addBulk([1, 2, 3, 4].map((data) => ({ name: 'batched', data })));
    await closeBehind(worker((async () => 1) as never, { batch: { size: 4 } }), 4);
    ({ waiting, running, completion } = await q.getLatency());
    expect([waiting.count, running.count, completion.count]).toEqual([6, 7, 7]);
  });

  it('is told while the worker runs, in one call for all its jobs', async () => {
    const q = queue();
    const redis = redisClient();
    worker(async () => 1, { concurrency: 10 });
    await q.addBulk(Array.from({ length: 500 }, (_, data) => ({ name: 'a', data })));
    await until('a note', async () => (await q.getLatency()).completion.count === 500);
    expect((await redis.hkeys(`{bull:${q.name}}:latency`)).length).toBeLessThanOrEqual(8);
    await redis.quit();
  });

  it('counts what is added, of whatever kind, once workers measure', async () => {
    const q = queue();
    await q.add('before', 0);
    await closeBehind(
      worker(async () => 1),
      1,
    );
    expect((await q.getLatency()).addedPerMinute).toBe(0);
    await q.addBulk(Array.from({ length: 70 }, (_, data) => ({ name: 'plain', data })));
    await q.add('later', 0, { delay: 3_600_000 });
    await q.add('urgent', 0, { priority: 1 });
    await closeBehind(
      worker(async () => 1),
      71,
    );
    const { from, to, addedPerMinute } = await q.getLatency({ window: 60_000 });
    const minutes = Math.max((Math.min(to, Date.now()) - from) / 60_000, 1);
    expect(addedPerMinute * minutes).toBeGreaterThan(70);
    expect(Math.round(addedPerMinute * minutes)).toBeLessThanOrEqual(73);
    expect(await q.exportPrometheusMetrics()).toContain(`chasquimq_jobs_added_total{queue="${q.name}"} 72`);
  });

  it('is not measured without the option', async () => {
    const q = queue();
    const redis = redisClient();
    await q.add('a', 0);
    await closeBehind(
      worker(async () => 1, { metrics: { maxDataPoints: 5 } }),
      1,
    );
    expect(await q.getLatency()).toMatchObject({
      oldest: null,
      waiting: NONE,
      running: NONE,
      completion: NONE,
      perMinute: 0,
      addedPerMinute: 0,
    });
    expect(await redis.exists(`{bull:${q.name}}:latency`)).toBe(0);
    expect(await q.exportPrometheusMetrics()).not.toContain('chasquimq_');
    await redis.quit();
  });

  it('knows the oldest job that could start, without any worker', async () => {
    const q = queue();
    const ago = (ms: number): number => Date.now() - ms;
    await q.add('later', 0, { delay: 60_000 });
    expect((await q.getLatency()).oldest).toBeNull();
    const steps: [number, object][] = [
      [5_000, { timestamp: ago(5_000) }],
      [10_000, { timestamp: ago(10_000), priority: 5 }],
      [20_000, { timestamp: ago(20_000), priority: 9 }],
      [30_000, { timestamp: ago(30_000), group: { id: 'a' } }],
      [40_000, { timestamp: ago(60_000), delay: 20_000 }],
    ];
    for (const [age, opts] of steps) {
      await q.add('a', 0, opts);
      const { oldest } = await q.getLatency();
      expect(oldest).toBeGreaterThanOrEqual(age);
      expect(oldest).toBeLessThan(age + 5_000);
    }
    expect(await q.getGroupOldest('a')).toBeGreaterThanOrEqual(30_000);
    expect(await q.getGroupOldest('b')).toBeNull();
    await q.pauseGroup('a');
    expect(await q.getGroupOldest('a')).toBeNull();
    expect(await q.getJobCounts('delayed')).toEqual({ delayed: 2 });
  });

  it('keeps minutes, hours and days, and tells which it gives', async () => {
    const q = queue();
    await q.add('a', 0);
    await closeBehind(
      worker(async () => 1),
      1,
    );
    const hour = 3_600_000;
    for (const [window, grain] of [
      [60_000, 60_000],
      [2 * hour, 60_000],
      [4 * hour, hour],
      [7 * DAY_MS, hour],
      [90 * DAY_MS, DAY_MS],
    ] as const) {
      const now = Date.now();
      const { from, to, completion } = await q.getLatency({ window });
      expect([from % grain, to % grain, completion.count]).toEqual([0, 0, 1]);
      expect(from).toBeLessThanOrEqual(now - window + 1_000);
      expect(from).toBeGreaterThan(now - window - grain);
      expect(to).toBeGreaterThan(now);
    }
    const now = Date.now();
    expect((await q.getLatency({ from: now - 2 * hour, to: now - hour })).completion).toEqual(NONE);
    expect((await q.getLatency({ from: now - 2 * hour })).completion.count).toBe(1);
  });

  it('goes with the queue', async () => {
    const q = queue();
    await q.add('a', 0);
    await closeBehind(
      worker(async () => 1),
      1,
    );
    await q.obliterate();
    expect((await q.getLatency()).completion).toEqual(NONE);
  });

  describe('of groups', () => {
    const ofGroups = { metrics: { latency: 'groups' } } as const;

    it('is told of each group apart, as the times of its jobs say', async () => {
      const q = queue();
      const timestamp = Date.now() - 5_000;
      const groups = ['a', 'b', '{c}:d\u00e9'];
      await q.addBulk([
        ...groups.flatMap((id, i) =>
          Array.from({ length: 10 * (i + 1) }, () => ({
            name: 'grouped',
            data: 0,
            opts: { group: { id }, timestamp: timestamp - 9_000 * i },
          })),
        ),
        ...Array.from({ length: 5 }, () => ({ name: 'plain', data: 0 })),
        { name: 'flaky', data: 0, opts: { group: { id: 'flaky' }, attempts: 3, backoff: 1 } },
        { name: 'lost', data: 0, opts: { group: { id: 'flaky' } } },
      ]);
      const by = worker(
        async ({ name, attemptsMade }) => {
          if (name === 'lost' || (name === 'flaky' && attemptsMade < 2)) throw new Error('no');
        },
        { concurrency: 4, ...ofGroups },
      );
      await closeBehind(by, 69);
      const jobs = await q.getJobs('completed');
      for (const id of groups) {
        const { waiting, running, completion, oldest, perMinute, ...span } = await q.getLatency({ group: id });
        const of = jobs.filter((job) => job.gid === id);
        expectTimes(
          waiting,
          of.map((job) => (job.processedOn ?? NaN) - job.timestamp),
        );
        expectTimes(
          running,
          of.map((job) => (job.finishedOn ?? NaN) - (job.processedOn ?? NaN)),
        );
        expectTimes(
          completion,
          of.map((job) => (job.finishedOn ?? NaN) - job.timestamp),
        );
        expect(oldest).toBeNull();
        expect(perMinute).toBeGreaterThan(0);
        expect(Object.keys(span)).toEqual(['from', 'to']);
      }
      const { waiting, running, completion } = await q.getLatency({ group: 'flaky' });
      expect([waiting.count, running.count, completion.count]).toEqual([4, 4, 2]);
      expect((await q.getLatency()).completion.count).toBe(67);
    });

    it('tells of batches of one group', async () => {
      const q = queue();
      await q.addBulk(['a', 'b', 'a', 'b', 'a'].map((id) => ({ name: 'batched', data: 0, opts: { group: { id } } })));
      const batch = { size: 3, groupAffinity: true };
      await closeBehind(worker((async () => 1) as never, { batch, ...ofGroups }), 5);
      const counts = await Promise.all(['a', 'b'].map(async (group) => (await q.getLatency({ group })).running.count));
      expect(counts).toEqual([3, 2]);
    });

    it('loses nothing of thousands of groups', async () => {
      const q = queue();
      const redis = redisClient();
      const [groups, jobs] = [3_000, 6_000];
      await q.addBulk(
        Array.from({ length: jobs }, (_, i) => ({ name: 'a', data: i, opts: { group: { id: `g${i % groups}` } } })),
      );
      const by = worker(async () => 1, { concurrency: 200, ...ofGroups });
      const told = async (): Promise<string[]> => redis.zrange(`{bull:${q.name}}:groups-measured`, 0, -1);
      await until('all groups are told of', async () => (await told()).length === groups, 30_000);
      await by.close();
      const counts = await Promise.all(
        (await told()).map(async (group) => (await q.getLatency({ group })).completion.count),
      );
      expect(new Set(counts)).toEqual(new Set([jobs / groups]));
      await q.obliterate();
      expect((await keysContaining(redis, q.name)).filter((key) => /group/.test(key))).toEqual([]);
      await redis.quit();
    });

    it('is not measured with latency: true', async () => {
      const q = queue();
      const redis = redisClient();
      await q.add('a', 0, { group: { id: 'a' } });
      await closeBehind(
        worker(async () => 1),
        1,
      );
      expect((await q.getLatency()).completion.count).toBe(1);
      expect(await q.getLatency({ group: 'a' })).toMatchObject({ waiting: NONE, running: NONE, completion: NONE });
      expect((await keysContaining(redis, q.name)).filter((key) => /latency:|measured/.test(key))).toEqual([]);
      await redis.quit();
    });

    it('tells five minutes, hours and days, and the oldest job', async () => {
      const q = queue();
      await q.add('a', 0, { group: { id: 'a' } });
      await closeBehind(
        worker(async () => 1, ofGroups),
        1,
      );
      await q.add('a', 0, { group: { id: 'a' }, timestamp: Date.now() - 30_000 });
      await q.add('a', 0, { group: { id: 'b' }, timestamp: Date.now() - 90_000 });
      const hour = 3_600_000;
      for (const [window, grain] of [
        [60_000, 300_000],
        [2 * hour, 300_000],
        [4 * hour, hour],
        [40 * hour, hour],
        [14 * DAY_MS, DAY_MS],
      ] as const) {
        const now = Date.now();
        const { from, to, completion, oldest } = await q.getLatency({ group: 'a', window });
        expect([from % grain, to % grain, completion.count]).toEqual([0, 0, 1]);
        expect(from).toBeLessThanOrEqual(now - window + 1_000);
        expect(from).toBeGreaterThan(now - window - grain);
        expect(oldest).toBeGreaterThanOrEqual(30_000);
        expect(oldest).toBeLessThan(90_000);
      }
      const now = Date.now();
      const before = { from: now - 2 * hour, to: now - hour };
      expect((await q.getLatency({ group: 'a', ...before })).completion).toEqual(NONE);
    });

    it('goes with the group', async () => {
      const q = queue();
      await q.addBulk(['a', 'b'].map((id) => ({ name: 'a', data: 0, opts: { group: { id } } })));
      await closeBehind(
        worker(async () => 1, ofGroups),
        2,
      );
      await q.deleteGroup('a');
      const counts = await Promise.all(
        ['a', 'b'].map(async (group) => (await q.getLatency({ group })).completion.count),
      );
      expect(counts).toEqual([0, 1]);
    });
  });

  it('is there for programs of BullMQ 5', async () => {
    const q = new QueueOfFive(stage.queueName, { connection });
    await q.add('a', 0);
    await closeBehind(
      worker(async () => 1),
      1,
    );
    expect((await q.getLatency({ window: 60_000 })).running.count).toBe(1);
    await q.close();
  });

  const wrong: [unknown, string][] = [
    [{ window: 59_999 }, 'window must be from 60000 ms to 90 days'],
    [{ window: 91 * DAY_MS }, 'window must be from 60000 ms to 90 days'],
    [{ window: '1h' }, 'window must be from 60000 ms to 90 days'],
    [{ window: 60_000, from: Date.now() - 60_000 }, 'window and from exclude each other'],
    [{ to: Date.now() }, 'to needs from'],
    [{ from: 5 }, 'from must be a time of the last 90 days, epoch ms'],
    [{ from: Date.now() + DAY_MS }, 'from must be a time of the last 90 days, epoch ms'],
    [{ from: Date.now() - 60_000, to: 5 }, 'to must be a time behind from, epoch ms'],
    [{ last: '1h' }, 'last is no option of this call'],
    [{ group: '' }, 'group must be a text of 1 to 256 characters'],
    [{ group: 7 }, 'group must be a text of 1 to 256 characters'],
    [{ group: 'a', window: 15 * DAY_MS }, 'window must be from 60000 ms to 14 days'],
    [{ group: 'a', from: Date.now() - 15 * DAY_MS }, 'from must be a time of the last 14 days, epoch ms'],
  ];
  it.each(wrong)('refuses %j', async (options, message) => {
    expect((await rejection(queue().getLatency(options as LatencyOptions))).message).toBe(message);
  });

  it('refuses a metrics.latency that is no flag', () => {
    expect(() => worker(async () => 1, { metrics: { latency: 'yes' as never } })).toThrow(
      "metrics.latency must be true, false or 'groups'",
    );
  });

  it('is exported to Prometheus, as histograms', async () => {
    const q = queue();
    await q.add('a', 0, { timestamp: Date.now() - 3_000 });
    await q.add('b', 0);
    await closeBehind(
      worker(async () => 1),
      2,
    );
    await q.add('waits', 0, { timestamp: Date.now() - 9_000 });
    const lines = (await q.exportPrometheusMetrics({ env: 'test' })).split('\n');
    const labels = `queue="${q.name}"`;
    const value = (name: string): number => {
      const line = lines.find((text) => text.startsWith(`${name} `));
      return Number(line?.slice(name.length + 1));
    };
    expect(value(`chasquimq_oldest_job_seconds{${labels}, env="test"}`)).toBeGreaterThanOrEqual(9);
    for (const kind of ['waiting', 'running', 'completion']) {
      const name = `chasquimq_job_${kind}_seconds`;
      expect(lines).toContain(`# TYPE ${name} histogram`);
      const buckets = lines
        .filter((line) => line.startsWith(`${name}_bucket{`))
        .map((line) => Number(line.split(' ').at(-1)));
      expect(buckets).toEqual([...buckets].sort((one, other) => one - other));
      expect(buckets).toHaveLength(31);
      expect([buckets.at(-1), value(`${name}_count{${labels}, env="test"}`)]).toEqual([2, 2]);
    }
    expect(value(`chasquimq_job_waiting_seconds_bucket{${labels}, le="2.048", env="test"}`)).toBe(1);
    expect(value(`chasquimq_job_waiting_seconds_bucket{${labels}, le="4.096", env="test"}`)).toBe(2);
    expect(value(`chasquimq_job_waiting_seconds_sum{${labels}, env="test"}`)).toBeGreaterThanOrEqual(3);
  });
});
