// A user with the rights that docs/production.md names and no others can do all that queues, workers, flows and schedulers do.
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FlowProducer, Queue } from 'bullmq';
import type { ConnectionOptions, Job } from 'bullmq';
import { documentedMigrationRights, documentedRule, documentedTenantOmissions, words } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli } from '../support/cli.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

/** Granted for the connection itself: how a user logs in, and what sentinels or a cluster are asked by another user, or tools. */
const OF_CONNECTION = ['auth', 'select', 'info', 'client', 'eval', 'evalsha', 'fcall'];
const OF_OTHERS = ['sentinel', 'cluster', 'ping', 'scan', 'acl'];

describe('connection.acl', () => {
  const stage = useStage(chasquimq);
  let own: OwnServer;
  let admin: Redis;
  beforeAll(async () => {
    own = await OwnServer.start();
    admin = own.client();
  });
  afterAll(async () => {
    await admin.quit();
    await own.close();
  });

  it('the rule names the commands that are used, and no others', async () => {
    const known = new Set((await admin.call('COMMAND', 'LIST')) as string[]);
    const used = [...words('chasquimq'), ...OF_CONNECTION].filter(
      (word) => known.has(word) && !OF_OTHERS.includes(word),
    );
    const granted = documentedRule()
      .filter((part) => part.startsWith('+'))
      .map((part) => part.slice(1).split('|')[0]);
    expect([...new Set(granted)].sort()).toEqual([...new Set(used)].sort());
    const more = [...words('chasquimq-migrate')].filter((word) => known.has(word) && !granted.includes(word));
    expect(documentedMigrationRights().slice(1)).toEqual(more.sort().map((word) => `+${word}`));
  });

  it.each([
    ['moves a queue here and back', [], []],
    // it asks once a connection whether it may call functions
    ['does so without functions', ['+fcall', '+function|load'], ['fcall']],
  ])('a user with what moving takes beside it %s', async (_, without: string[], refused: string[]) => {
    const rule = documentedRule().filter((part) => !without.includes(part));
    await admin.acl('SETUSER', 'mover', 'reset', ...rule, ...documentedMigrationRights());
    await admin.call('ACL', 'LOG', 'RESET');
    const { connection } = own;
    const [queue, flows] = [new Queue('orders', { connection }), new FlowProducer({ connection })];
    await queue.add('waits', 1, { deduplication: { id: 'one' } });
    await queue.add('later', 1, { delay: 60_000 });
    await queue.add('sooner', 1, { priority: 1 });
    await queue.upsertJobScheduler('daily', { pattern: '0 0 * * *' });
    await flows.add({ name: 'parent', queueName: 'orders', children: [{ name: 'child', queueName: 'orders' }] });
    const { host, port } = own.connection;
    const url = `redis://mover:secret@${host}:${port}`;
    for (const way of [[], ['--back']]) {
      const { code, stderr } = await cli(['migrate', 'orders', '--yes', '--url', url, ...way]);
      expect([code, stderr]).toEqual([0, '']);
    }
    const entries = (await admin.call('ACL', 'LOG')) as unknown[][];
    expect(entries.map((entry) => entry[7])).toEqual(refused);
    await Promise.all([queue.close(), flows.close()]);
    await admin.flushall();
  });

  it('a tenant moves a queue with the right to run scripts, and is told without', async () => {
    const tenant = documentedRule().filter((part) => !documentedTenantOmissions().includes(part));
    const { connection } = own;
    const queue = new Queue('orders', { connection });
    await queue.add('waits', 1);
    const url = `redis://mover:secret@${connection.host}:${connection.port}`;
    const move = () => cli(['migrate', 'orders', '--yes', '--url', url]);
    await admin.acl('SETUSER', 'mover', 'reset', ...tenant, ...documentedMigrationRights());
    const refused = await move();
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/NOPERM.*'evalsha'/)]);
    expect(await queue.getWaitingCount()).toBe(1);
    await admin.acl('SETUSER', 'mover', '+eval', '+evalsha');
    expect((await move()).code).toBe(0);
    expect(await queue.getWaitingCount()).toBe(0);
    await queue.close();
    await admin.flushall();
  });

  it.each([
    ['bull', '', '~{bull:*}:*', [], 'fcall'],
    ['bull', '{tag}', '~bull:*:chasqui:*', [], 'fcall'],
    ['{app}', '', '~{app}:*:chasqui:*', [], 'fcall'],
    // an administrator has loaded the library
    ['bull', '', '~{bull:*}:*', documentedTenantOmissions(), 'fcall'],
    // scripts, by their hash
    ['bull', '', '~{bull:*}:*', ['+fcall', '+function|load'], 'evalsha'],
  ])('the rule for %s, names with %j, %s, without %j is enough', async (prefix, tag, keys, without, how) => {
    stage.queueName += tag;
    const rule = documentedRule().filter((part) => !/^[~&]/.test(part) && !without.includes(part));
    const channels = `&${keys.slice(1).replace(/\*$/, 'worker:*')}`;
    await admin.acl('SETUSER', 'jobs', 'reset', ...rule, keys, channels);
    const { code, stderr } = await cli(['library', 'load', '--url', `redis://127.0.0.1:${own.port}`]);
    expect([code, stderr]).toEqual([0, '']);
    await admin.call('ACL', 'LOG', 'RESET');
    await admin.config('RESETSTAT');
    const connection: ConnectionOptions = { ...own.connection, username: 'jobs', password: 'secret', db: 1 };
    const at = { connection, prefix };

    const queue = stage.queue({ ...at, streams: { events: { maxLen: 100 } } });
    const events = stage.events(at);
    const flows = stage.flowProducer(at);
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'fails') throw new Error('on purpose');
        if (job.name === 'retried' && job.attemptsMade === 0) throw new Error('once');
        await job.updateProgress({ done: 1 });
        await job.log('a row');
        if (job.name === 'parent') return Object.keys(await job.getChildrenValues()).length;
        return job.name;
      },
      {
        ...at,
        concurrency: 5,
        limiter: { max: 1_000, duration: 1_000 },
        metrics: { maxDataPoints: 10, latency: true } as never,
        autorun: false,
        name: 'w',
      },
    );
    await Promise.all([worker.waitUntilReady(), events.waitUntilReady()]);

    // jobs of every kind
    const deduplication = { id: 'one', ttl: 60_000 };
    const jobs = [
      await queue.add('plain', 1),
      await queue.add('retried', 1, { attempts: 2, backoff: 1 }),
      await queue.add('delayed', 1, { delay: 5 }),
      await queue.add('first', 1, { priority: 3, lifo: true }),
      await queue.add('own', 1, { jobId: 'own' }),
      await queue.add('deduplicated', 1, { deduplication }),
      ...(await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'bulk', data: i })))),
    ];
    await queue.add('deduplicated', 2, { deduplication });
    const fails = await queue.add('fails', 1);
    const tree = await flows.add({
      name: 'parent',
      queueName: stage.name(),
      children: [
        { name: 'child', queueName: stage.name(), data: 1 },
        { name: 'fails', queueName: stage.name(), data: 2, opts: { ignoreDependencyOnFailure: true } },
      ],
    });
    await queue.upsertJobScheduler('often', { every: 20 }, { name: 'scheduled' });
    expect(await queue.getJobSchedulers()).toHaveLength(1);

    // looking at them while they wait
    expect((await queue.getWaiting(0, 9)).length).toBe(10);
    expect((await queue.getPrioritized()).length).toBe(1);
    await queue.getJobCounts();
    await queue.getCountsPerPriority([0, 1]);
    await queue.getDelayedCount();
    await jobs[0]?.changePriority({ priority: 2 });
    await jobs[2]?.changeDelay(10);
    await jobs[0]?.updateData(5);
    expect(await queue.getDeduplicationJobId('one')).toBe(jobs[5]?.id);
    await queue.removeDeduplicationKey('one');
    expect((await flows.getFlow({ queueName: stage.name(), id: tree.job.id as string })).children).toHaveLength(2);
    await queue.pause();
    await queue.resume();

    // one by hand, the others by the loop
    const log = new EventLog(worker, ['completed', 'failed']);
    const byHand = await worker.getNextJob('token');
    await byHand?.moveToCompleted('by hand', 'token', false);
    void worker.run();
    await Promise.all([...jobs, tree.job].map((job) => job.waitUntilFinished(events, 60_000)));
    await rejection(fails.waitUntilFinished(events, 60_000));
    const isScheduled = ({ args }: { args: readonly unknown[] }) => (args[0] as Job).name === 'scheduled';
    await log.when('scheduled jobs', () => log.entries.filter(isScheduled).length > 1, 60_000);
    await queue.removeJobScheduler('often');
    expect(await tree.job.getIgnoredChildrenFailures()).not.toEqual({});
    expect(log.all('failed').length).toBeGreaterThan(1);

    // limits, figures, and what changes many jobs at once
    await queue.setGlobalConcurrency(3);
    await queue.removeGlobalConcurrency();
    await queue.rateLimit(1);
    await queue.getRateLimitTtl();
    await queue.removeRateLimitKey();
    expect((await queue.getMetrics('completed')).meta.count).toBeGreaterThan(0);
    expect(await queue.exportPrometheusMetrics()).toContain('bullmq_job_completed_total');
    expect(await queue.getWorkers()).toHaveLength(1);
    await queue.getQueueEvents();
    expect((await queue.getJobLogs('own')).logs).toEqual(['a row']);
    await jobs[4]?.clearLogs();
    await queue.trimEvents(10);
    await queue.retryJobs();
    await until('retried jobs to fail', async () => (await queue.getFailedCount()) === 2, 60_000);
    await fails.retry();
    const itsFailures = () => log.all<[Job]>('failed').filter(([job]) => job.id === fails.id).length;
    await log.when('the third failure of a job', () => itsFailures() === 3, 60_000);
    await worker.close();
    await queue.add('late', 1, { delay: 60_000 });
    await queue.promoteJobs();
    await queue.clean(0, 10, 'completed');
    await jobs[4]?.remove();
    await queue.add('later', 1, { delay: 60_000 });
    await queue.drain(true);
    await queue.obliterate({ force: true });
    expect(await keysLeft()).toEqual([]);
    const refused = (await admin.call('ACL', 'LOG')) as unknown[][];
    // it asks once a connection whether it may call functions
    const isAsked = ([, , , , , , , object]: unknown[]) => how === 'evalsha' && object === 'fcall';
    expect(refused.filter((entry) => !isAsked(entry))).toEqual([]);
    const stats = await admin.info('commandstats');
    expect(['fcall', 'evalsha'].filter((way) => new RegExp(`cmdstat_${way}:calls=[1-9]`).test(stats))).toEqual([how]);
  });

  /** What an obliterated queue leaves: only what expires by itself. */
  async function keysLeft(): Promise<string[]> {
    await admin.select(1);
    const keys = await admin.keys('*');
    await admin.select(0);
    return keys.filter((key) => !/:(memo|lease):/.test(key));
  }

  it('a user who may not do something is told so, and no job is there', async () => {
    const rule = documentedRule().filter((part) => part !== '+xadd');
    await admin.acl('SETUSER', 'few', 'reset', ...rule);
    const queue = stage.queue({ connection: { ...own.connection, username: 'few', password: 'secret' } });
    expect((await rejection(queue.add('job', 1))).message).toMatch(/permission|can't run this command/);
    expect(await queue.getWaiting()).toEqual([]);
    await admin.acl('SETUSER', 'few', '+xadd');
    const { id } = await queue.add('job', 1);
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual([id]);
  });

  it('a user who may not ask for the role of the server reads all the same, and is refused once', async () => {
    const rule = documentedRule().filter((part) => part !== '+role');
    await admin.acl('SETUSER', 'roleless', 'reset', ...rule);
    await admin.call('ACL', 'LOG', 'RESET');
    const connection = { ...own.connection, username: 'roleless', password: 'secret' };
    const queue = stage.queue({ connection, skipMetasUpdate: true });
    const { id = '' } = await queue.add('job', 1);
    for (let i = 0; i < 3; i++) expect((await queue.getJob(id))?.data).toBe(1);
    const [entry, ...others] = (await admin.call('ACL', 'LOG')) as unknown[][];
    expect(others).toEqual([]);
    expect(entry?.slice(0, 8)).toEqual(['count', 1, 'reason', 'command', 'context', 'toplevel', 'object', 'role']);
  });
});
