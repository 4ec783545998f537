// Pins when a QueueEvents reads: run, autorun, close, listeners that throw.
import { describe, expect, it, vi } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { closedPort, redisClient, unlinkContaining } from '../support/redis.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog, rejection, until } from '../support/waiting.js';

/** Milliseconds without an event. */
const LATE_MS = 1_500;
/** Fewer reads than that bring the events of one job; the server ends a short wait ten times a second. */
const MOST_READS = 8;

describe.each(libraries)('$name: queueEvents.run', ({ lib }) => {
  const stage = useStage(lib);

  it('is what autorun false leaves to the caller', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const events = stage.events({ autorun: false });
    const log = new EventLog(events, ['added']);
    await events.waitUntilReady();
    expect(log.entries).toEqual([]);
    const running = events.run();
    await log.get('added');
    await events.close();
    expect(await running).toBeUndefined();
  });

  it('is told by autorun, which its opts do not show', async () => {
    const queue = stage.queue();
    const events = stage.events({ autorun: undefined });
    const log = new EventLog(events, ['added']);
    await queue.add('job', {});
    await log.get('added');
    for (const opened of [events, stage.events({ autorun: true }), stage.events({ autorun: false })]) {
      expect(Object.keys(opened.opts)).toEqual(['blockingTimeout', 'connection', 'lastEventId']);
    }
  });

  it('rejects while it runs', async () => {
    const events = stage.events();
    await events.waitUntilReady();
    expect((await rejection(events.run())).message).toBe('Queue Events is already running.');
  });

  it('rejects a second time with autorun false', async () => {
    const events = stage.events({ autorun: false });
    const running = events.run();
    expect((await rejection(events.run())).message).toBe('Queue Events is already running.');
    await events.close();
    await running;
  });

  it('goes on until the close, also before there is a connection', async () => {
    const events = stage.events({ autorun: false });
    const running = events.run();
    let isRunning = true;
    void running.then(() => (isRunning = false));
    await events.waitUntilReady();
    expect(isRunning).toBe(true);
    await events.close();
    expect(await running).toBeUndefined();
  });

  it('rejects when the client gives up connecting', async () => {
    const connection = { host: '127.0.0.1', port: await closedPort(), retryStrategy: () => null };
    const events = new lib.QueueEvents(stage.queueName, { autorun: false, connection });
    // that of BullMQ rejects then
    stage.keep({ close: () => events.close().catch(() => undefined) });
    const log = new EventLog(events, ['error']);
    for (let i = 0; i < 2; i++) expect(await rejection(events.run())).toMatchObject({ code: 'ECONNREFUSED' });
    expect(log.all<[Error]>('error').every(([{ message }]) => message.startsWith('connect ECONNREFUSED'))).toBe(true);
  });
});

describe.each(libraries)('$name: queueEvents.close', ({ lib }) => {
  const stage = useStage(lib);

  it('interrupts the wait for events', async () => {
    const events = stage.events({ blockingTimeout: 60_000 });
    await events.waitUntilReady();
    const start = performance.now();
    await events.close();
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  it('may come at once, and twice', async () => {
    const events = stage.events();
    await events.close();
    expect(await events.close()).toBeUndefined();
  });

  it('ends the events', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const closed = new EventLog(events, ['added']);
    await queue.add('before', {});
    await closed.get('added');
    await events.close();
    const other = stage.globalLog();
    await queue.add('after', {});
    await other.get('added', 2);
    expect(closed.entries).toHaveLength(1);
  });
});

describe.each(libraries)('$name: queueEvents.blockingTimeout', ({ lib }) => {
  const stage = useStage(lib);
  const own = useOwnServer();

  it('of 0 waits for the next event, however late that comes, and asks for none meanwhile', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    stage.worker(async () => undefined, { connection });
    const log = new EventLog(stage.events({ connection, blockingTimeout: 0 }), ['delayed', 'completed']);
    await queue.add('late', {}, { delay: LATE_MS });
    await log.get('delayed');
    await own.redis.config('RESETSTAT');
    await log.get('completed');
    const reads = /^cmdstat_xread:calls=(\d+)/m.exec(await own.redis.info('commandstats'))?.[1];
    expect(Number(reads ?? 0)).toBeLessThan(MOST_READS);
  });
});

describe.each(libraries)('$name: queueEvents.listeners', ({ lib }) => {
  const stage = useStage(lib);

  it('that throw become error events, and later events still come', async () => {
    const queue = stage.queue();
    const events = stage.events();
    events.on('added', () => {
      throw new Error('from added');
    });
    const log = new EventLog(events, ['error', 'waiting']);
    await queue.add('job', {});
    await log.get('waiting');
    expect(stage.takeErrors().map((error) => error.message)).toEqual(['from added']);
    expect(log.names).toEqual(['error', 'waiting']);
  });

  it('may be an `emit` of the user, which hears all events', async () => {
    const heard: string[] = [];
    class Bridge extends lib.QueueEvents {
      override emit(event: string, ...args: unknown[]): boolean {
        heard.push(event);
        return super.emit(event as 'error', ...(args as [Error]));
      }
    }
    const queue = stage.queue();
    const bridge = new Bridge(queue.name, { connection: queue.opts.connection, lastEventId: '0' });
    await queue.add('job', {});
    await queue.pause();
    await until('the pause', () => heard.includes('paused'));
    await bridge.close();
    expect(heard).toEqual(['added', 'added:1', 'waiting', 'waiting:1', 'paused']);
  });

  it('need a name of a queue', () => {
    const connection = stage.queue().opts.connection;
    expect(() => new lib.QueueEvents('', { connection })).toThrow('Queue name must be provided');
    expect(() => new lib.QueueEvents('a:b', { connection })).toThrow('Queue name cannot contain :');
  });

  it('hears what comes after all data were lost, though clocks go back', async () => {
    const queue = stage.queue();
    const log = new EventLog(stage.events(), ['added']);
    await queue.add('before', 1);
    await log.get('added');
    const redis = redisClient();
    await unlinkContaining(redis, stage.queueName);
    await redis.quit();
    const now = vi.spyOn(Date, 'now').mockReturnValue(1_500_000_000_000);
    const first = queue.add('after', 1);
    const second = queue.add('after', 1);
    await Promise.all([first, second]);
    now.mockRestore();
    await log.get('added', 3);
    expect(log.all<[{ jobId: string }]>('added').map(([{ jobId }]) => jobId)).toEqual(['1', '1', '2']);
  });
});
