// Two tenants share a server, each with the rule of docs/production.md for its own keys. What one of them puts into the server in the place of our functions
// never runs with the rights of the other.
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions, Job } from 'bullmq';
import { documentedRuleFor, documentedTenantRule } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli } from '../support/cli.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

/** The library's text, and functions of somebody else's with its names: each marks the caller's queue. */
const { stdout: TEXT } = await cli(['library', 'print']);
const [, NAME = ''] = /^#!lua name=(\w+)\n/.exec(TEXT) ?? [];
const FUNCTIONS = [...TEXT.matchAll(/^transition\('(\w+)'/gm)].map(([, name = '']) => name);
const foreign = (library: string) =>
  [
    `#!lua name=${library}`,
    `local function theirs(keys) redis.call('SET', keys[1] .. 'theirs', 'was here') return redis.error_reply('ERR theirs') end`,
    ...FUNCTIONS.map((name) => `redis.register_function('${name}', theirs)`),
  ].join('\n');

describe('server.library', () => {
  const stage = useStage(chasquimq);
  const warnings: { code?: string; message: string }[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  beforeAll(() => void process.on('warning', warned));
  afterAll(() => void process.off('warning', warned));

  /** A server with users alice and mallory, who have these rules. */
  async function serve(ruleFor: (prefix: string) => string[]) {
    const own = stage.keep(await OwnServer.start());
    const admin = own.client();
    const as = (username: string): ConnectionOptions => ({ ...own.connection, username, password: 'secret' });
    const mallory = own.client();
    stage.keep({ close: async () => void (await Promise.all([admin.quit(), mallory.quit()])) });
    for (const name of ['alice', 'mallory']) await admin.acl('SETUSER', name, 'reset', ...ruleFor(name));
    await mallory.call('AUTH', 'mallory', 'secret');
    const library = async (...args: string[]) => {
      const { code, stdout, stderr } = await cli(['library', ...args, '--url', `redis://127.0.0.1:${own.port}`]);
      return { code, told: stdout + stderr };
    };
    return { admin, mallory, as, library, alice: { connection: as('alice'), prefix: 'alice' } };
  }

  async function callsOf(admin: Redis, command: string): Promise<number> {
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await admin.info('commandstats'))?.[1] ?? 0);
  }

  const traces = (admin: Redis) => admin.keys('*theirs*');

  /** A job's whole life, and a flow's, and what tells of them. */
  async function work(at: { connection: ConnectionOptions; prefix: string }): Promise<void> {
    const [queue, events, flows] = [stage.queue(at), stage.events(at), stage.flowProducer(at)];
    const worker = stage.worker(async (job) => `${job.name} ran`, at);
    await events.waitUntilReady();
    const completed = new EventLog(worker, ['completed']);
    const job = await queue.add('plain', 1);
    expect(await job.waitUntilFinished(events, 60_000)).toBe('plain ran');
    const children = [{ name: 'child', queueName: stage.name() }];
    const tree = await flows.add({ name: 'parent', queueName: stage.name(), children });
    expect(await tree.job.waitUntilFinished(events, 60_000)).toBe('parent ran');
    await queue.upsertJobScheduler('often', { every: 20 }, { name: 'scheduled' });
    const isScheduled = ({ args }: { args: readonly unknown[] }) => (args[0] as Job).name === 'scheduled';
    await completed.when('scheduled jobs', () => completed.entries.filter(isScheduled).length > 1, 60_000);
    await queue.removeJobScheduler('often');
    await worker.close();
    await queue.obliterate({ force: true });
    await Promise.all([queue.close(), events.close(), flows.close()]);
  }

  it('is loaded by an administrator, and no tenant can replace it, or reach the other tenant by it', async () => {
    const { admin, mallory, as, alice, library } = await serve(documentedTenantRule);
    expect(await library('load')).toEqual({ code: 0, told: expect.stringContaining(`${NAME} is loaded`) });
    for (const command of [
      ['FUNCTION', 'LOAD', 'REPLACE', foreign(NAME)],
      ['FUNCTION', 'LOAD', foreign('elsewhere')],
      ['FUNCTION', 'DELETE', NAME],
      ['FUNCTION', 'FLUSH'],
      ['FUNCTION', 'RESTORE', 'anything'],
      ['EVAL', 'return 1', '0'],
      ['SCRIPT', 'LOAD', 'return 1'],
    ]) {
      expect((await rejection(mallory.call(...(command as [string, string])))).message).toMatch(/^NOPERM/);
    }
    await admin.call('ACL', 'LOG', 'RESET');
    await work(alice);
    expect(await admin.call('ACL', 'LOG')).toEqual([]);
    expect(await callsOf(admin, 'evalsha')).toBe(0);

    const { id = '' } = await stage.queue(alice).add('hers', 1);
    const there = { connection: as('mallory'), prefix: 'alice' };
    const intruder = stage.queue({ ...there, skipMetasUpdate: true });
    await expect(intruder.add('his', 1)).rejects.toThrow(/NOPERM|can't (run this command|access)|permission/i);
    await expect(intruder.getJob(id)).rejects.toThrow(/NOPERM|can't (run this command|access)|permission/i);
    expect((await stage.queue(alice).getWaiting()).map((job) => job.name)).toEqual(['hers']);
    expect(await library('check')).toEqual({ code: 0, told: expect.stringContaining('is loaded') });
  });

  it('is not called when it is somebody else’s: scripts run in its place, and a warning says so', async () => {
    const { admin, mallory, alice, library } = await serve(documentedRuleFor);
    await mallory.call('FUNCTION', 'LOAD', 'REPLACE', foreign(NAME));
    await work(alice);
    expect(await callsOf(admin, 'fcall')).toBe(0);
    expect(await traces(admin)).toEqual([]);
    expect(warnings.filter(({ code }) => code === 'CHASQUIMQ_FOREIGN_LIBRARY')).toEqual([
      expect.objectContaining({ message: expect.stringContaining(NAME) }),
    ]);

    // whose it is, is for people to find out
    for (const action of ['check', 'load']) {
      expect(await library(action)).toEqual({ code: 1, told: expect.stringContaining("is somebody else's") });
    }
    expect(await admin.call('FUNCTION', 'LIST', 'WITHCODE')).toEqual([expect.arrayContaining([foreign(NAME)])]);
    expect(await library('load', '--replace')).toEqual({ code: 0, told: expect.stringContaining('is loaded') });
    expect((await library('check')).code).toBe(0);
    // connections that open from now on call it
    await until('calls of functions', async () => {
      const queue = stage.queue(alice);
      await queue.getJobCounts();
      await queue.close();
      return (await callsOf(admin, 'fcall')) > 0;
    });
    await work(alice);
    expect(await traces(admin)).toEqual([]);
  });

  it('is looked at again when the server is another process', async () => {
    const own = stage.keep(await OwnServer.start('--appendonly', 'yes', '--appendfsync', 'always'));
    const queue = stage.queue({ connection: own.connection });
    await queue.add('before', 1);
    const before = own.client();
    await before.call('FUNCTION', 'LOAD', 'REPLACE', foreign(NAME));
    await before.quit();
    await own.kill();
    await own.start();
    await queue.add('after', 2);
    const admin = own.client();
    stage.keep({ close: async () => void (await admin.quit()) });
    expect((await queue.getWaiting()).map((job) => job.name)).toEqual(['before', 'after']);
    expect(await callsOf(admin, 'fcall')).toBe(0);
    expect(await traces(admin)).toEqual([]);
    stage.takeErrors();
  });

  it.each([[[]], [['+function|list']]])(
    'is not there: who may neither load it nor run scripts is told whom to ask (without %j)',
    async (hidden) => {
      const { alice, library } = await serve((prefix) =>
        documentedTenantRule(prefix).filter((part) => !hidden.includes(part)),
      );
      const told = {
        code: 'ERR_NO_LIBRARY',
        message: `The server has no library ${NAME}, and this user may not load it: an administrator calls npx chasquimq library load`,
      };
      const queue = stage.queue(alice);
      expect(await rejection(queue.add('job', 1))).toMatchObject(told);
      const worker = stage.worker(async () => 'ran', alice);
      expect((await new EventLog(worker, ['error']).get<[Error]>('error'))[0]).toMatchObject(told);
      expect(await library('check')).toEqual({ code: 1, told: expect.stringContaining('is missing') });
      expect((await library('load')).code).toBe(0);
      // the same connections go on
      await queue.add('job', 1);
      await until('the job to complete', async () => (await queue.getCompletedCount()) === 1, 60_000);
      stage.takeErrors();
    },
  );

  it('is somebody else’s: who may not run scripts instead is told so', async () => {
    const { admin, alice, library } = await serve(documentedTenantRule);
    // as an administrator does by mistake, or before this rule was there
    await admin.call('FUNCTION', 'LOAD', foreign(NAME));
    const queue = stage.queue(alice);
    expect(await rejection(queue.add('job', 1))).toMatchObject({
      code: 'ERR_FOREIGN_LIBRARY',
      message: expect.stringContaining(`The library ${NAME} in the server is somebody else's`),
    });
    expect((await library('load', '--replace')).code).toBe(0);
    await until('an add to succeed', async () => Boolean(await queue.add('job', 1).catch(() => undefined)), 60_000);
    expect(await traces(admin)).toEqual([]);
    stage.takeErrors();
  });

  it('is not there, and another library has its functions: they are not called', async () => {
    const { admin, alice, library } = await serve(documentedTenantRule);
    await admin.call('FUNCTION', 'LOAD', foreign('elsewhere'));
    const queue = stage.queue(alice);
    expect(await rejection(queue.add('job', 1))).toMatchObject({ code: 'ERR_NO_LIBRARY' });
    expect(await library('load')).toEqual({
      code: 1,
      told: expect.stringMatching(/already exists\. Another library has it/),
    });
    await admin.call('FUNCTION', 'DELETE', 'elsewhere');
    expect((await library('load')).code).toBe(0);
    await queue.add('job', 1);
    expect(await traces(admin)).toEqual([]);
  });
});
