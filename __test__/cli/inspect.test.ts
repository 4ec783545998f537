import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queue } from '../../src/index.js';
import { documentedRule } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli } from '../support/cli.js';
import { OwnCluster } from '../support/own-cluster.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog, until } from '../support/waiting.js';

const NONE = { waiting: 0, prioritized: 0, delayed: 0, 'waiting-children': 0, active: 0, completed: 0, failed: 0 };

describe('inspect', () => {
  const stage = useStage(chasquimq);

  it('tells of a queue all there is to tell, as JSON', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'fails') throw new Error('on purpose');
        if (job.name === 'held') await gate.opened;
      },
      { name: 'w1', concurrency: 1, metrics: { maxDataPoints: 60, latency: true } as never },
    );
    const log = new EventLog(worker, ['completed', 'failed', 'active']);
    await queue.addBulk(['done', 'fails', 'held', 'next'].map((name) => ({ name, data: {} })));
    await log.when('the job that is held', () => log.all('active').length === 3);
    await queue.add('urgent', 1, { priority: 5 });
    const later = await queue.add('later', 1, { delay: 3_600_000 });
    await queue.setGlobalConcurrency(50);
    await queue.setGlobalRateLimit(1_000, 60_000);
    await (queue as unknown as Queue).setMaxLength(500);
    await queue.upsertJobScheduler('often', { every: 3_600_000 }, { name: 'scheduled' });
    await until('what ended to be counted', async () => (await queue.getMetrics('failed')).meta.count === 1);
    await until('a note', async () => (await (queue as unknown as Queue).getLatency()).running.count === 2);

    const { code, stdout, stderr } = await cli(['inspect', queue.name, '--json']);
    expect([code, stderr]).toEqual([0, '']);
    const [report, ...others] = JSON.parse(stdout);
    expect(others).toEqual([]);
    expect(report).toMatchObject({
      name: queue.name,
      prefix: 'bull',
      paused: false,
      oldest: {
        waiting: { name: 'next', ageMs: expect.any(Number) },
        active: { name: 'held', ageMs: expect.any(Number) },
      },
      latency: {
        oldestMs: expect.any(Number),
        waiting: { count: 2, p50: expect.any(Number) },
        running: { count: 2, p95: expect.any(Number) },
        completion: { count: 2, p99: expect.any(Number) },
        addedPerMinute: expect.any(Number),
        perMinute: expect.any(Number),
      },
      minutes: expect.arrayContaining([0]),
      rates: { source: 'metrics', completedPerSecond: expect.any(Number), failedPerSecond: expect.any(Number) },
      workers: { count: 1, names: ['w1'] },
      schedulers: 1,
      limits: {
        concurrency: 50,
        rate: { max: 1_000, duration: 60_000 },
        maxLength: 500,
        blockedForMs: expect.any(Number),
      },
    });
    const { waiting, delayed, ...rest } = report.counts;
    // the scheduler's first job is due now or at its next hour
    expect(waiting + delayed).toBe(3);
    expect(rest).toEqual({ prioritized: 1, 'waiting-children': 0, active: 1, completed: 1, failed: 1 });
    expect(report.oldest.delayed.dueInMs).toBeLessThanOrEqual(3_600_000);
    expect(later.id).toBeTruthy();

    const shown = await cli(['inspect', queue.name]);
    expect(shown.stdout).toMatch(/^workers +1 \(w1\)$/m);
    expect(shown.stdout).toMatch(/^could start +the oldest has waited \d+/m);
    expect(shown.stdout).toMatch(/^in line +p50 \d+\w+, p95 \d+\w+, p99 \d+\w+, of 2 in 5m$/m);
    expect(shown.stdout).toMatch(/^runs +p50 .* of 2 in 5m$/m);
    expect(shown.stdout).toMatch(/^to completion +p50 .* of 2 in 5m$/m);
    expect(shown.stdout).toMatch(/^last minutes +[▁▂▃▄▅▆▇█]{15} ended, at most \d$/m);
    expect(shown.stdout).toMatch(/^a minute +[\d.]+ were added, [\d.]+ ended, in 5m$/m);
    expect(shown.stdout).toMatch(/^rate limit +1,000 in 1m$/m);
    expect(shown.stdout).toMatch(/^active +1; the oldest has run \d+\w+ \(job 3\)$/m);
    gate.open();
  });

  it('counts groups by their status, where jobs wait in some', async () => {
    const queue = stage.queue() as unknown as Queue;
    await queue.addBulk(['a', 'b', 'c'].map((id) => ({ name: 'job', data: 1, opts: { group: { id } } })));
    await queue.pauseGroup('c');
    const { stdout } = await cli(['inspect', queue.name, '--json', '--sample', '0s']);
    expect(JSON.parse(stdout)[0].groups).toEqual({ waiting: 2, limited: 0, maxed: 0, paused: 1 });
    expect((await cli(['inspect', queue.name, '--sample', '0s'])).stdout).toMatch(/^groups +2 waiting, 1 paused$/m);
    await queue.obliterate();
    expect((await cli(['inspect', queue.name, '--sample', '0s'])).stdout).not.toMatch(/^groups/m);
  });

  it('tells of one group in place of its queue', async () => {
    const queue = stage.queue() as unknown as Queue;
    const other = stage.queue({}, 'other');
    await other.add('job', 1);
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active'],
    );
    const jobs = Array.from({ length: 12 }, (_, i) => ({ name: `n${i}`, data: i, opts: { group: { id: 'a' } } }));
    await queue.addBulk([...jobs, { name: 'of-b', data: 1, opts: { group: { id: 'b' } } }]);
    await log.get('active');
    const group = async (id: string, ...names: string[]): Promise<object[]> => {
      const { code, stdout, stderr } = await cli(['inspect', ...names, '--group', id, '--json']);
      expect([code, stderr]).toEqual([0, '']);
      return JSON.parse(stdout);
    };
    const age = expect.any(Number);
    expect(await group('a', queue.name)).toEqual([
      {
        name: queue.name,
        prefix: 'bull',
        group: 'a',
        paused: false,
        status: 'waiting',
        counts: { waiting: 11, active: 1 },
        oldestMs: age,
        weight: 1,
        limits: { concurrency: null, rate: null, blockedForMs: 0 },
        jobs: {
          active: [{ id: '1', name: 'n0', ageMs: age }],
          waiting: jobs.slice(1, 11).map(({ name }, i) => ({ id: `${i + 2}`, name, ageMs: age })),
        },
      },
    ]);
    const none = { status: null, counts: { waiting: 0, active: 0 }, oldestMs: null, jobs: { active: [], waiting: [] } };
    expect(await group('a', queue.name, other.name)).toMatchObject([{ name: queue.name }, none]);
    await queue.setGroupConcurrency('a', 2);
    await queue.setGroupRateLimit('a', 5, 60_000);
    await queue.setGroupWeight('a', 2.5);
    await queue.rateLimitGroup('a', 3_600_000);
    const limits = { concurrency: 2, rate: { max: 5, duration: 60_000 }, blockedForMs: age };
    expect(await group('a', queue.name)).toMatchObject([{ status: 'limited', weight: 2.5, limits }]);
    const shown = async (id: string, ...names: string[]): Promise<string> =>
      (await cli(['inspect', queue.name, ...names, '--group', id])).stdout;
    const text = await shown('a');
    expect(text).toMatch(/^state +limited for (1h|59m.*)$/m);
    expect(text).toMatch(/^concurrency +at most 2 at once$/m);
    expect(text).toMatch(/^rate limit +5 in 1m$/m);
    expect(text).toMatch(/^active +1 +n0 +\d+\w+$/m);
    expect(text).toMatch(/^waiting +11 +n10 +\d+\w+$/m);
    expect((await shown('b', other.name)).split('\n').map((row) => row.split(/ {2,}/).at(-1))).toEqual([
      'STATE',
      'waiting',
      'no jobs',
      '',
    ]);
    await queue.pauseGroup('a');
    expect(await shown('a')).toMatch(/^state +paused$/m);
    await queue.pause();
    expect(await shown('a')).toMatch(/^state +queue paused$/m);
    gate.open();
    expect(await cli(['inspect', queue.name, '--group', 'a', '--sample', '1s'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--sample is about rates, which no group has.'),
    });
  });

  it('names schedulers that are paused', async () => {
    const queue = stage.queue() as unknown as Queue;
    const shown = async (): Promise<string> => (await cli(['inspect', queue.name, '--sample', '0s'])).stdout;
    for (const id of ['nightly', 'hourly']) await queue.upsertJobScheduler(id, { every: 3_600_000 });
    expect(await shown()).toMatch(/^schedulers +2$/m);
    await queue.pauseJobScheduler('nightly');
    expect(await shown()).toMatch(/^schedulers +2; paused: 1 \(nightly\)$/m);
    const { stdout } = await cli(['inspect', queue.name, '--json', '--sample', '0s']);
    expect(JSON.parse(stdout)).toMatchObject([{ schedulers: 2, pausedSchedulers: ['nightly'] }]);
  });

  it('says when a job that failed is due again, however old it is', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {
      throw new Error('not yet');
    });
    const log = new EventLog(worker, ['failed']);
    const timestamp = Date.now() - 3_600_000;
    await queue.add('again', 1, { timestamp, attempts: 2, backoff: 600_000 });
    await log.get('failed');
    const { stdout } = await cli(['inspect', queue.name, '--json', '--sample', '0s']);
    const { dueInMs } = JSON.parse(stdout)[0].oldest.delayed;
    expect(dueInMs).toBeGreaterThan(500_000);
    expect(dueInMs).toBeLessThanOrEqual(600_000);
  });

  it('takes rates from two looks where workers do not count', async () => {
    const queue = stage.queue();
    await queue.add('job', 1);
    const twice = await cli(['inspect', queue.name, '--json', '--sample', '50ms']);
    const rates = { source: 'samples', completedPerSecond: 0, failedPerSecond: 0 };
    expect(JSON.parse(twice.stdout)).toMatchObject([{ counts: { ...NONE, waiting: 1 }, rates, workers: { count: 0 } }]);
    const once = await cli(['inspect', queue.name, '--json', '--sample', '0s']);
    expect(JSON.parse(once.stdout)).toMatchObject([{ rates: null }]);
    expect((await cli(['inspect', queue.name, '--sample', '0s'])).stdout).toMatch(/^state +no workers$/m);
  });

  /** What `inspect` says of the limit of a queue that has one job waiting. */
  async function limitOf(name: string): Promise<{ blockedForMs: number; state: string }> {
    const json = await cli(['inspect', name, '--json', '--sample', '0s']);
    const { stdout } = await cli(['inspect', name, '--sample', '0s']);
    const state = /^state +(.*?)(?: \d+m?s.*)?$/m.exec(stdout)?.[1] ?? '';
    return { blockedForMs: JSON.parse(json.stdout)[0].limits.blockedForMs, state };
  }

  it('says that the rate limit keeps jobs back only where it does', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => 1, { limiter: { max: 100, duration: 60_000 } });
    const log = new EventLog(worker, ['completed']);
    await queue.add('starts a window', 1);
    await log.get('completed');
    // the window of a worker's own limiter is open
    expect(await limitOf(queue.name)).toEqual({ blockedForMs: 0, state: 'running' });
    await queue.setGlobalRateLimit(2, 60_000);
    expect(await limitOf(queue.name)).toEqual({ blockedForMs: 0, state: 'running' });
    await queue.add('uses it up', 1);
    await log.get('completed', 2);
    const usedUp = await limitOf(queue.name);
    expect(usedUp.state).toBe('limited for');
    expect(usedUp.blockedForMs).toBeGreaterThan(1_000);
    await queue.removeGlobalRateLimit();
    await queue.removeRateLimitKey();
    expect(await limitOf(queue.name)).toEqual({ blockedForMs: 0, state: 'running' });
    await queue.rateLimit(60_000);
    expect((await limitOf(queue.name)).state).toBe('limited for');
  });

  it('takes rates from two looks where workers counted once, and count no more', async () => {
    const queue = stage.queue();
    const counting = stage.worker(async () => 1, { metrics: { maxDataPoints: 5 } });
    await queue.add('counted', 1);
    await until('it to be counted', async () => (await queue.getMetrics('completed')).meta.count === 1);
    await counting.close();
    const rates = async (): Promise<unknown> => {
      const { stdout } = await cli(['inspect', queue.name, '--json', '--sample', '50ms']);
      return JSON.parse(stdout)[0].rates;
    };
    expect(await rates()).toMatchObject({ source: 'metrics' });
    const redis = redisClient();
    await redis.hset(`{bull:${queue.name}}:metrics:completed`, 'prevTS', Date.now() - 180_000);
    await redis.quit();
    expect(await rates()).toMatchObject({ source: 'samples' });
  });

  it('finds the queues of a prefix, and no others', async () => {
    const [one, two] = [stage.queue({}, 'one'), stage.queue({}, 'two')];
    const [tagged, colon] = [`{${stage.queueName}}`, `${stage.queueName}:a`];
    await Promise.all([one.add('job', 1), two.pause()]);
    await Promise.all(['x', 'y'].map((name) => stage.queue({ prefix: tagged }, name).add('job', 1)));
    await stage.queue({ prefix: colon }, 'x').add('job', 1);
    await Promise.all(['z', '{z}'].map((name) => stage.queue({ prefix: stage.queueName }, name).add('job', 1)));

    const named = async (...args: string[]): Promise<string[]> => {
      const { stdout } = await cli(['inspect', '--json', '--sample', '0s', ...args]);
      return JSON.parse(stdout).map(({ name }: { name: string }) => name);
    };
    expect(await named()).toEqual(expect.arrayContaining([one.name, two.name]));
    expect(await named('--prefix', tagged)).toEqual([stage.name('x'), stage.name('y')]);
    expect(await named('--prefix', colon)).toEqual([stage.name('x')]);
    expect(await named('--prefix', stage.queueName)).toEqual([stage.name('z'), stage.name('{z}')]);
    const { stdout } = await cli(['inspect', '--sample', '0s', one.name, two.name, one.name]);
    const [head, ...lines] = stdout.trim().split('\n');
    expect(head).toMatch(/^QUEUE +WAITING +PRIORITY +DELAYED/);
    expect(lines.map((line) => line.split(/ {2,}/).at(-1))).toEqual(['no workers', 'paused']);
  });

  it('says the name that was meant, and writes nothing about a queue that is not there', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    await queue.add('job', 1);
    const { code, stderr } = await cli(['inspect', `${queue.name}s`]);
    expect(code).toBe(1);
    expect(stderr).toContain(`There is no queue ${queue.name}s with the prefix bull`);
    expect(stderr).toContain(`Did you mean ${queue.name}?`);
    const redis = redisClient();
    expect(await keysContaining(redis, `${queue.name}s`)).toEqual([]);
    await redis.quit();
  });
});

describe('inspect, as a user with few rights', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();

  it('names queues with the rights that they need, and wants to be told their names', async () => {
    await own.redis.acl('SETUSER', 'jobs', 'reset', ...(documentedRule() as [string]));
    const connection = { ...own.connection, username: 'jobs', password: 'secret' };
    await stage.queue({ connection }).add('job', 1);
    const env = { REDIS_URL: `redis://jobs@127.0.0.1:${own.server.port}`, REDIS_PASSWORD: 'secret' };
    const { code, stdout } = await cli(['inspect', stage.queueName, '--json', '--sample', '0s'], { env });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ counts: { waiting: 1 }, workers: { count: 0 } }]]);
    const all = await cli(['inspect'], { env });
    expect([all.code, all.stderr]).toEqual([
      1,
      'chasquimq: This user may not SCAN the server for its queues: name them.\n',
    ]);
    await own.redis.acl('SETUSER', 'jobs', '+scan', '-client|list');
    const some = await cli(['inspect', '--json', '--sample', '0s'], { env });
    expect([some.code, JSON.parse(some.stdout)]).toMatchObject([0, [{ name: stage.queueName, workers: null }]]);
  });
});

describe('inspect, of a cluster', () => {
  const stage = useStage(chasquimq);

  let cluster: OwnCluster;
  beforeAll(async () => {
    cluster = await OwnCluster.start();
  });
  afterAll(() => cluster?.close());

  it('finds the queues of every master, from any node', async () => {
    const connection = { nodes: cluster.startupNodes } as never;
    const names = Array.from({ length: 12 }, (_, i) => `q${i}`);
    for (const name of names) await stage.queue({ connection }, name).add('job', 1);
    const url = `redis://127.0.0.1:${cluster.startupNodes[0]?.port}`;
    const { code, stdout } = await cli(['inspect', '--cluster', '--json', '--sample', '0s', '--url', url]);
    expect(code).toBe(0);
    const found = JSON.parse(stdout).map(({ name }: { name: string }) => name);
    expect(found).toEqual(names.map((name) => stage.name(name)).sort());
  });
});
