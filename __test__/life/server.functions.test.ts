// What runs in the server is one library of functions, which the first call brings there, and whoever needs it again; scripts where it cannot be.
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

interface Library {
  readonly name: string;
  readonly functions: readonly string[];
}

describe('functions in the server', () => {
  const stage = useStage(chasquimq);

  async function serve(...settings: string[]): Promise<{ own: OwnServer; admin: Redis }> {
    const own = stage.keep(await OwnServer.start(...settings));
    const admin = own.client();
    stage.keep({ close: async () => void (await admin.quit()) });
    return { own, admin };
  }

  async function libraries(admin: Redis): Promise<Library[]> {
    const listed = (await admin.call('FUNCTION', 'LIST')) as [string, string, string, string, string, string[][]][];
    return listed.map(([, name, , , , functions]) => ({ name, functions: functions.map(([, name = '']) => name) }));
  }

  async function callsOf(admin: Redis, command: string): Promise<number> {
    const stats = await admin.info('commandstats');
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  /** Jobs that run, fail and are tried again; each once in the end. */
  async function work(
    connection: ConnectionOptions,
    jobs = 50,
    disturb = async () => undefined as unknown,
  ): Promise<void> {
    const at = { connection };
    const [queue, runs] = [stage.queue(at), new Map<string, number>()];
    const worker = stage.worker(
      async (job) => {
        runs.set(job.name, (runs.get(job.name) ?? 0) + 1);
        if (job.attemptsMade === 0 && Number(job.name) % 5 === 0) throw new Error('once');
        return job.name;
      },
      { ...at, concurrency: 5 },
    );
    for (let i = 0; i < jobs; i++) {
      await queue.add(String(i), i, { attempts: 2 });
      await disturb();
    }
    await until('all jobs to complete', async () => (await queue.getCompletedCount()) === jobs, 60_000);
    expect([...runs].filter(([name, count]) => count !== (Number(name) % 5 === 0 ? 2 : 1))).toEqual([]);
    await worker.close();
    await queue.obliterate({ force: true });
  }

  it('are called, and scripts are not', async () => {
    const { own, admin } = await serve();
    await work(own.connection);
    expect(await callsOf(admin, 'fcall')).toBeGreaterThan(50);
    expect(await callsOf(admin, 'evalsha')).toBe(0);
    const [library, ...others] = await libraries(admin);
    expect(others).toEqual([]);
    expect(library?.name).toMatch(/^chasquimq_[0-9a-f]{10}$/);
    expect(library?.functions).toContain(`${library?.name}_step`);
  });

  it('may be flushed at any time', async () => {
    const { own, admin } = await serve();
    await work(own.connection, 200, () => admin.call('FUNCTION', 'FLUSH', 'SYNC'));
    expect(await callsOf(admin, 'evalsha')).toBeLessThan(200);
  });

  it('are sent by one of the calls that lack them, however many these are', async () => {
    const { own, admin } = await serve();
    const queue = stage.queue({ connection: own.connection });
    await queue.getJobCounts();
    await admin.call('FUNCTION', 'FLUSH', 'SYNC');
    await admin.call('CONFIG', 'RESETSTAT');
    await Promise.all(Array.from({ length: 200 }, () => queue.getJobCounts()));
    expect(await callsOf(admin, 'function\\|load')).toBe(1);
    // those that were sent before the library was there, and the same once more
    expect(await callsOf(admin, 'fcall')).toBeGreaterThan(200);
  });

  it('are there again after a server that had none of its memory left', async () => {
    const { own, admin } = await serve();
    await work(own.connection);
    await own.kill();
    await own.start();
    await work(own.connection);
    expect(await libraries(admin)).toHaveLength(1);
    stage.takeErrors();
  });

  it('leave those of others alone', async () => {
    const { own, admin } = await serve();
    const theirs = (name: string) =>
      `#!lua name=${name}\nredis.register_function('${name}_step', function() return redis.error_reply('ERR theirs') end)`;
    await admin.call('FUNCTION', 'LOAD', theirs('chasquimq'));
    await admin.call('FUNCTION', 'LOAD', theirs('chasquimq_0123456789'));
    await work(own.connection);
    const names = (await libraries(admin)).map(({ name }) => name);
    expect(names).toHaveLength(3);
    expect(names).toEqual(expect.arrayContaining(['chasquimq', 'chasquimq_0123456789']));
  });

  it('give way to scripts where their names are taken', async () => {
    const { own, admin } = await serve();
    await work(own.connection);
    const taken = (await libraries(admin))[0]?.name ?? '';
    await admin.call('FUNCTION', 'FLUSH', 'SYNC');
    const code = `redis.register_function('${taken}_pause', function() return 0 end)`;
    await admin.call('FUNCTION', 'LOAD', `#!lua name=somebody\n${code}`);
    await work(own.connection);
    expect(await callsOf(admin, 'evalsha')).toBeGreaterThan(50);
    expect((await libraries(admin)).map(({ name }) => name)).toEqual(['somebody']);
  });

  it('give way to scripts on a server that knows none', async () => {
    const { own, admin } = await serve('--rename-command', 'FCALL', '', '--rename-command', 'FUNCTION', '');
    await work(own.connection);
    expect(await callsOf(admin, 'evalsha')).toBeGreaterThan(50);
  });

  it.each([
    // it hears that it may call none when it calls one
    ['-fcall', 1],
    ['-function', 0],
  ])('give way to scripts for a user with %s', async (denied, loaded) => {
    const { own, admin } = await serve();
    await admin.acl('SETUSER', 'few', 'on', '>secret', '~*', '+@all', denied);
    await work({ ...own.connection, username: 'few', password: 'secret' });
    expect(await callsOf(admin, 'evalsha')).toBeGreaterThan(50);
    expect(await libraries(admin)).toHaveLength(loaded);
  });
});
