// Pins the forms of the connection option and who closes what.
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import type { RedisOptions } from '../../src/index.js';
import { drivers } from '../support/drivers.js';
import { libraries } from '../support/libraries.js';
import { keysContaining, server, serverUrl } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const cases = libraries.flatMap((library) => drivers.map((driver) => ({ ...library, ...driver })));

describe.each(cases)('$name: connection.forms, $driver', ({ lib, Redis: Client }) => {
  const stage = useStage(lib);
  const clients: Redis[] = [];
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });

  function client(options: RedisOptions = {}): Redis {
    const made = new Client({ ...server, maxRetriesPerRequest: null, ...options });
    clients.push(made);
    return made;
  }

  const keysOf = (redis: Redis): Promise<string[]> => redis.keys(`*${stage.queueName}*`);

  /** Sends a job through a queue, a worker and a QueueEvents that all got `connection`. */
  async function roundTrip(connection: ConnectionOptions): Promise<unknown> {
    const queue = stage.queue({ connection });
    const events = stage.events({ connection });
    const worker = stage.worker(async (job) => (job.data as number) + 1, { connection });
    const job = await queue.add('job', 1);
    const result: unknown = await job.waitUntilFinished(events, 60_000);
    for (const opened of [worker, events, queue]) await opened.close();
    return result;
  }

  it('host and port', async () => {
    expect(await roundTrip({ ...server })).toBe(2);
  });

  it('a url', async () => {
    expect(await roundTrip({ url: serverUrl() })).toBe(2);
  });

  it.each([2, 3])('options with protocol %i', async (protocol) => {
    expect(await roundTrip({ ...server, protocol, replyMapping: 'legacy' })).toBe(2);
    expect(await roundTrip(client({ protocol }))).toBe(2);
  });

  it('an ioredis instance, which stays open', async () => {
    const shared = client();
    expect(await roundTrip(shared)).toBe(2);
    expect(shared.status).toBe('ready');
    expect(await shared.ping()).toBe('PONG');
  });

  it('an ioredis instance whose end is that of a queue and of a flow producer', async () => {
    const shared = client();
    const queue = stage.queue({ connection: shared });
    const flows = stage.flowProducer({ connection: shared });
    const other = stage.queue();
    const log = new EventLog(queue, ['ioredis:close']);
    const added = queue.add('job', 1);
    await flows.add({ name: 'root', queueName: stage.queueName });
    await added;
    await shared.quit();
    await log.get('ioredis:close');
    for (const call of [() => queue.add('late', 1), () => queue.getJobCounts()]) {
      expect((await rejection(call())).message).toContain('Connection is closed.');
    }
    expect(await other.count()).toBe(2);
    await queue.close();
  });

  it('an ioredis instance that has chosen another database', async () => {
    const shared = client();
    await shared.select(1);
    const queue = stage.queue({ connection: shared });
    await queue.add('job', {});
    expect(await keysOf(shared)).not.toEqual([]);
    await queue.obliterate({ force: true });
    await shared.select(0);
    expect(await keysOf(shared)).toEqual([]);
  });

  it('an ioredis instance that connects lazily', async () => {
    expect(await roundTrip(client({ lazyConnect: true }))).toBe(2);
  });

  it('an ioredis instance shared by two queues, of which one closes', async () => {
    const shared = client();
    const [one, other] = [stage.queue({ connection: shared }), stage.queue({ connection: shared })];
    await one.add('job', {});
    await one.close();
    expect((await other.add('job', {})).id).toBe('2');
  });

  it.each([
    ['options', { ...server, db: 9 }],
    ['a url', { url: serverUrl().replace(/\/\d+$/, '/9') }],
  ])('with a database of its own, by %s', async (_, connection) => {
    const queue = stage.queue({ connection });
    await queue.add('job', {});
    const ninth = client({ db: 9 });
    expect((await keysContaining(ninth, stage.queueName)).length).toBeGreaterThan(0);
    expect(await keysContaining(client(), stage.queueName)).toEqual([]);
    await queue.obliterate();
  });

  it('with a user and a password', async () => {
    const admin = client();
    const user = stage.queueName;
    await admin.acl('SETUSER', user, 'reset', 'on', '>se:cr@t', '~*', '&*', '+@all');
    expect(await roundTrip({ ...server, username: user, password: 'se:cr@t' })).toBe(2);
    await admin.acl('DELUSER', user);
  });

  it('with a password that the server does not need', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    expect(await roundTrip({ ...server, password: 'not needed' })).toBe(2);
    warn.mockRestore();
  });

  it('needs blocking users of an instance to have no limit on retries', () => {
    const limited = client({ maxRetriesPerRequest: 3 });
    const message = 'BullMQ: Your redis options maxRetriesPerRequest must be null.';
    expect(() => new lib.Worker(stage.queueName, async () => undefined, { connection: limited })).toThrow(message);
    expect(() => new lib.QueueEvents(stage.queueName, { connection: limited })).toThrow(message);
  });

  it('lets a queue use an instance with a limit on retries', async () => {
    const queue = stage.queue({ connection: client({ maxRetriesPerRequest: 3 }) });
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it('refuses an instance with a key prefix', () => {
    const prefixed = client({ keyPrefix: 'mine:' });
    expect(() => new lib.Queue(stage.queueName, { connection: prefixed })).toThrow(
      'BullMQ: ioredis does not support ioredis prefixes, use the prefix option instead.',
    );
  });

  it('is shown by opts as it was given', () => {
    const connection = { ...server };
    const queue = stage.queue({ connection });
    expect(queue.opts.connection).toEqual(connection);
  });

  it('can be of a different form for queue and worker', async () => {
    const log = new EventLog(
      stage.worker(async () => 'done', { connection: client() }),
      ['completed'],
    );
    await stage.queue({ connection: { url: serverUrl() } }).add('job', {});
    expect((await log.get('completed'))[1]).toBe('done');
  });
});
