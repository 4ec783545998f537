// `npx chasquimq migrate`, as it was built.
import { describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import type { Queue as OwnQueue } from '../../src/index.js';
import { cli, ended, startCli } from '../support/cli.js';
import { closedPort, keysContaining } from '../support/redis.js';
import { until } from '../support/waiting.js';
import { jobsOf, MAJORS, useBench } from './bench.js';

interface Told {
  mode: string;
  done: boolean;
  queues: {
    queue: string;
    moved: Record<string, number>;
    stays: Record<string, string[]>;
    left: Record<string, number>;
    here: Record<string, number>;
    compared: number;
    differ: Record<string, string[]>;
  }[];
}

describe('chasquimq migrate', () => {
  const bench = useBench(MAJORS[0]);

  async function fill(): Promise<void> {
    const queue = bench.queue();
    await queue.addBulk(Array.from({ length: 600 }, (_, i) => ({ name: 'waits', data: { i } })));
    await queue.add('later', {}, { delay: 3_600_000 });
  }

  it('moves a queue, and tells what it moved', async () => {
    await fill();
    const { code, stdout, stderr } = await cli(['migrate', bench.name, '--yes']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^${bench.name}: 601 jobs moved in [\\d.]+ s\n  600 wait, 1 delayed\n$`));
    const target = bench.target();
    expect(await target.getJobCountByTypes('waiting', 'delayed')).toBe(601);
    // BullMQ's producers may go on
    expect(Number((await target.add('ours', {})).id)).toBeGreaterThan(1_000_000);
  });

  it('counts for --dry-run, and moves nothing', async () => {
    await fill();
    const before = await jobsOf(bench.queue());
    const { code, stdout } = await cli(['migrate', bench.name, '--dry-run', '--json']);
    expect(code).toBe(0);
    const told = JSON.parse(stdout) as Told;
    expect(told.queues).toMatchObject([
      { queue: bench.name, moved: { wait: 600, delayed: 1 }, left: { wait: 600, delayed: 1 } },
    ]);
    expect(await jobsOf(bench.queue())).toEqual(before);
  });

  it('moves everything back, and compares', async () => {
    await fill();
    const before = await jobsOf(bench.queue());
    await cli(['migrate', bench.name, '--yes']);
    const moved = await cli(['migrate', bench.name, '--verify']);
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(moved.stdout).toContain('no id is on both sides');
    expect(moved.stdout).toMatch(/waiting +0 +600\n/);
    const back = await cli(['migrate', bench.name, '--back', '--yes']);
    expect([back.code, back.stderr]).toEqual([0, '']);
    expect(back.stdout).toContain('601 jobs moved back to BullMQ');
    expect(await jobsOf(bench.queue())).toEqual(before);
    expect((await cli(['migrate', bench.name, '--verify'])).code).toBe(1);
  });

  it('refuses to move back a queue that never was here, and writes nothing', async () => {
    const none = `${bench.name}-none`;
    await fill();
    const { code, stdout, stderr } = await cli(['migrate', none, '--back', '--yes']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`There is no queue ${none} with the prefix bull`);
    expect(await keysContaining(bench.redis, none)).toEqual([]);
    const theirs = bench.queue('-theirs');
    await theirs.pause();
    expect((await cli(['migrate', theirs.name, '--back', '--yes'])).code).toBe(1);
    expect(await theirs.isPaused()).toBe(true);
    // one that was here, and has gone back, is no stranger
    await cli(['migrate', bench.name, '--yes']);
    for (const jobs of [601, 0]) {
      const back = await cli(['migrate', bench.name, '--back', '--yes']);
      expect([back.code, back.stderr]).toEqual([0, '']);
      expect(back.stdout).toContain(`${jobs} jobs moved back`);
    }
  });

  it('shows what would move a cursor in the names of queues as an escape', async () => {
    const [prefix, suffix] = [`${bench.name}-odd`, '\x1b[2Jb'];
    const shown = `${bench.name}\\u001b[2Jb`;
    await bench.queue(suffix, { prefix }).add('job', {});
    const all = async (...args: string[]): Promise<string> => {
      const { stdout, stderr } = await cli(['migrate', '--all', '--prefix', prefix, ...args]);
      expect(stdout + stderr).not.toContain('\x1b');
      return stdout + stderr;
    };
    expect(await all('--yes')).toContain(`\n${shown}: 1 jobs moved in`);
    const meant = await cli(['inspect', `${bench.name}b`, '--prefix', prefix]);
    expect(meant.stderr).toContain(`Did you mean ${shown}?`);
    await bench.redis.hset(`${prefix}:${bench.name}${suffix}:meta`, 'version', '4.0');
    expect(await all('--yes')).toContain(`The queue ${shown} was written by 4.0`);
    await bench.redis.del(`${prefix}:${bench.name}${suffix}:meta`);
  });

  it('compares each job as it was with as it is', async () => {
    await fill();
    for (const way of [[], ['--back']]) {
      const { code, stdout } = await cli(['migrate', bench.name, ...way, '--compare', '--yes', '--json']);
      expect(code).toBe(0);
      expect((JSON.parse(stdout) as Told).queues).toMatchObject([{ compared: 601, differ: {} }]);
    }
    const { stdout } = await cli(['migrate', bench.name, '--compare', '--yes']);
    expect(stdout).toContain('\n  601 jobs compared: all are as they were\n');
  });

  it('moves all queues of a prefix, and lists them first', async () => {
    const prefix = `${bench.name}-all`;
    const jobs = Array.from({ length: 3 }, (_, i) => ({ name: 'n', data: { i } }));
    for (const suffix of ['', '-b']) await bench.queue(suffix, { prefix }).addBulk(jobs);
    const all = (...args: string[]): ReturnType<typeof cli> => cli(['migrate', '--all', '--prefix', prefix, ...args]);

    const dry = await all('--dry-run');
    const list = (rows: string) =>
      new RegExp(`^QUEUE +${rows}(${bench.name}(-b)? +3 +0.*\n){2}\n${bench.name}: 3 jobs `);
    expect([dry.code, dry.stderr]).toEqual([0, '']);
    expect(dry.stdout).toMatch(list('JOBS +ACTIVE +SCHEDULERS +WRITTEN BY\n'));
    expect(await all()).toMatchObject({ code: 2, stderr: expect.stringContaining('say --yes') as string });

    const moved = await all('--yes');
    expect([moved.code, moved.stderr]).toEqual([0, '']);
    expect(moved.stdout).toContain(`\n${bench.name}-b: 3 jobs moved in`);
    expect(await bench.target('-b', { prefix }).getWaitingCount()).toBe(3);
    const back = await all('--back', '--yes');
    expect([back.code, back.stderr]).toEqual([0, '']);
    expect(back.stdout).toMatch(list('JOBS +ACTIVE\n'));
    expect(await bench.queue('-b', { prefix }).getWaitingCount()).toBe(3);
  });

  it('follows producers of BullMQ until it is told to stop', async () => {
    await fill();
    const running = startCli(['migrate', bench.name, '--follow', '--yes', '--json']);
    const end = ended(running);
    const target = bench.target();
    await until('what is there to move', async () => (await target.getWaitingCount()) === 600, 60_000);
    const id = (await bench.queue().add('more', {})).id as string;
    await until('what came since to move', async () => (await target.getJobState(id)) === 'waiting', 60_000);
    // its number lies far above those that BullMQ gives meanwhile
    expect(Number((await target.add('ours', {})).id)).toBeGreaterThan(1_000_000);
    running.kill('SIGINT');
    const { code, stdout, stderr } = await end;
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toMatchObject({ mode: 'follow', queues: [{ moved: { wait: 601, delayed: 1 } }] });
  });

  it('says what stays, and ends with 1', async () => {
    const queue = bench.queue();
    await bench.target().add('ours', {}, { jobId: 'same' });
    await queue.add('theirs', {}, { jobId: 'same' });
    const { code, stdout } = await cli(['migrate', bench.name, '--yes']);
    expect(code).toBe(1);
    expect(stdout).toContain('1 jobs stay: they have ids that jobs here have already (same)');
  });

  it('refuses a queue of BullMQ Pro by its name, whatever is said', async () => {
    await fill();
    const theirs = `bull:${bench.name}:`;
    await bench.redis.hset(`${theirs}meta`, 'version', 'bullmq-pro-7.0.0');
    const before = await keysContaining(bench.redis, bench.name);
    for (const args of [['--yes'], ['--yes', '--any-version'], ['--dry-run']]) {
      const { code, stderr } = await cli(['migrate', bench.name, ...args]);
      expect(code).toBe(1);
      expect(stderr).toContain(`The queue ${bench.name} was written by BullMQ Pro (bullmq-pro-7.0.0)`);
      expect(stderr).toContain('Nothing was moved');
    }
    expect(await bench.redis.llen(`${theirs}wait`)).toBe(600);
    expect(await keysContaining(bench.redis, bench.name)).toHaveLength(before.length);
  });

  it('says that a job scheduler runs on both sides, whichever way it would move', async () => {
    const upsert = (queue: Queue): Promise<unknown> => queue.upsertJobScheduler('tick', { pattern: '0 3 * * *' });
    await upsert(bench.queue());
    expect((await cli(['migrate', bench.name, '--yes'])).code).toBe(0);
    // a program that runs BullMQ still starts again
    await upsert(bench.queue());
    for (const [way, side] of [
      [[], 'here'],
      [['--back'], 'in BullMQ'],
    ] as const) {
      const { code, stdout } = await cli(['migrate', bench.name, '--yes', ...way]);
      expect(code).toBe(1);
      const stays = `1 jobs stay: they belong to a job scheduler that is ${side}, too, and runs on both: remove one of the two`;
      expect(stdout).toContain(stays);
      expect(stdout).not.toContain('job schedulers stay');
    }
    const verified = await cli(['migrate', bench.name, '--verify']);
    expect(verified.stdout).toMatch(/job schedulers +1 +1\n/);
    expect(verified.stdout).not.toContain('job schedulers stay');
    await bench.queue().removeJobScheduler('tick');
    expect((await cli(['migrate', bench.name, '--yes'])).code).toBe(0);
  });

  it('names job schedulers that stay as they are paused, and says that it is not done', async () => {
    const target = bench.target();
    await target.upsertJobScheduler('off', { every: 3_600_000 });
    await (target as unknown as OwnQueue).pauseJobScheduler('off');
    const { code, stdout } = await cli(['migrate', bench.name, '--back', '--yes']);
    expect(code).toBe(1);
    expect(stdout).toContain(
      '1 job schedulers stay: they are paused, and BullMQ would run them: resume or remove them here (off)',
    );
    expect(stdout).not.toContain('no job that waits');
    const json = await cli(['migrate', bench.name, '--back', '--yes', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      done: false,
      queues: [{ schedulersLeft: 1, pausedSchedulers: ['off'] }],
    });
    await target.removeJobScheduler('off');
    expect((await cli(['migrate', bench.name, '--back', '--yes'])).code).toBe(0);
  });

  it('refuses what it does not understand with 2', async () => {
    for (const [args, says] of [
      [[], 'Name a queue'],
      [['a', '--dry-run', '--back'], '--dry-run and --back exclude each other'],
      [['a'], 'say --yes'],
      [['a', '--all', '--yes'], '"a" does not go with it'],
      [['a', '--verify', '--compare'], '--compare does not go with --verify'],
      [['a', '--gap', 'x', '--yes'], '--gap must be a whole number'],
      [['a', '--nothing'], 'There is no option --nothing'],
      [['a:b', '--yes'], 'no name of a queue'],
    ] as const) {
      const { code, stderr, stdout } = await cli(['migrate', ...args]);
      expect([code, stdout], stderr).toEqual([2, '']);
      expect(stderr).toContain(says);
    }
  });

  it('says why it cannot, and ends with 1', async () => {
    const queue = bench.queue();
    await queue.waitUntilReady();
    await until('it to say its version', () => bench.redis.hexists(`bull:${bench.name}:meta`, 'version'));
    await bench.redis.hset(`bull:${bench.name}:meta`, 'version', 'bullmq:4.18.0');
    const port = await closedPort();
    for (const [args, env, says] of [
      [[`${bench.name}-none`], {}, `BullMQ has no queue ${bench.name}-none`],
      [['--all', '--prefix', `${bench.name}-none`], {}, `BullMQ has no queue with the prefix ${bench.name}-none`],
      [[bench.name], {}, 'was written by bullmq:4.18.0'],
      [[bench.name], { REDIS_URL: `redis://127.0.0.1:${port}` }, 'ECONNREFUSED'],
    ] as const) {
      const { code, stderr, stdout } = await cli(['migrate', ...args, '--yes'], { env });
      expect([code, stdout], stderr).toEqual([1, '']);
      expect(stderr).toContain(says);
    }
    await bench.redis.set(`bull:${bench.name}:wait`, 'not a list');
    expect((await cli(['migrate', bench.name, '--yes', '--any-version'])).stderr).toContain(
      'holds what BullMQ does not write there',
    );
  });
});
