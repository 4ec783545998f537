// Pins the global events: names, payloads, ids, order, and where a reader starts.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

describe.each(libraries)('$name: queueEvents.events', ({ lib }) => {
  const stage = useStage(lib);

  const payloads = (log: EventLog) => log.entries.map(({ event, args }) => [event, args[0]]);

  it('tell the life of a job that completes', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    stage.worker(async (job) => {
      await job.updateProgress({ at: 50 });
      return { sum: 3 };
    });
    await queue.add('sum', {});
    await log.get('drained');
    expect(payloads(log)).toEqual([
      ['added', { jobId: '1', name: 'sum' }],
      ['waiting', { jobId: '1' }],
      ['active', { jobId: '1', prev: 'waiting' }],
      ['progress', { jobId: '1', data: { at: 50 } }],
      ['completed', { jobId: '1', returnvalue: { sum: 3 }, prev: 'active' }],
      ['drained', expect.any(String)],
    ]);
  });

  it('are heard by who begins to listen at the one before, in whatever way', async () => {
    const queue = stage.queue();
    await queue.addBulk([1, 2].map((i) => ({ name: 'job', data: {}, opts: { jobId: `j${i}` } })));
    const worker = stage.worker(async () => undefined);
    const ends = new EventLog(worker, ['drained']);
    await ends.get('drained');
    // all lies in the log by now, and is read at once
    const events = stage.events({ lastEventId: '0', autorun: false });
    const heard: string[] = [];
    const note = (event: string) => (args: unknown) => heard.push(`${event} ${(args as { jobId: string }).jobId}`);
    events.prependOnceListener('added', () => {
      events.addListener('waiting', (args) => {
        note('waiting')(args);
        if (args.jobId === 'j1') events.once('waiting:j1' as 'waiting', note('of one job'));
      });
      events.prependListener('active', (args) => {
        note('active')(args);
        events.once(`completed:${args.jobId}` as 'completed', note('completed'));
      });
    });
    events.on('drained', note('drained'));
    void events.run();
    await until('the last event', () => heard.at(-1)?.startsWith('drained'));
    expect(heard).toEqual([
      'waiting j1',
      'of one job j1',
      'waiting j2',
      'active j1',
      'completed j1',
      'active j2',
      'completed j2',
      'drained undefined',
    ]);
  });

  it('tell the life of a job that fails', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    stage.worker(async () => {
      throw new Error('no paint');
    });
    await queue.add('paint', {}, { jobId: 'mine' });
    await log.get('drained');
    expect(payloads(log)).toEqual([
      ['added', { jobId: 'mine', name: 'paint' }],
      ['waiting', { jobId: 'mine' }],
      ['active', { jobId: 'mine', prev: 'waiting' }],
      ['failed', { jobId: 'mine', failedReason: 'no paint', prev: 'active' }],
      ['retries-exhausted', { jobId: 'mine', attemptsMade: '1' }],
      ['drained', expect.any(String)],
    ]);
  });

  it('put the completion of a job before the start of the next', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.addBulk([1, 2, 3].map(() => ({ name: 'job', data: {} })));
    stage.worker(async () => undefined);
    await log.get('drained');
    expect(log.entries.slice(6).map(({ event, args }) => [event, (args[0] as { jobId?: string }).jobId])).toEqual([
      ['active', '1'],
      ['completed', '1'],
      ['active', '2'],
      ['completed', '2'],
      ['active', '3'],
      ['completed', '3'],
      ['drained', undefined],
    ]);
  });

  it('bring an id as their last argument, each its own', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    stage.worker(async () => undefined);
    await queue.addBulk([1, 2, 3].map(() => ({ name: 'job', data: {} })));
    await log.get('drained');
    const ids = log.entries.map(({ event, args }) => {
      expect(args, event).toHaveLength(event === 'drained' ? 1 : 2);
      return args.at(-1);
    });
    for (const id of ids) expect(id).toEqual(expect.any(String));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('come a second time under the id of their job, with the same arguments', async () => {
    const queue = stage.queue();
    const names = ['added', 'waiting', 'active', 'progress', 'completed'];
    const log = new EventLog(
      stage.events(),
      names.flatMap((name) => [name, `${name}:1`, `${name}:mine`]),
    );
    stage.worker((job) => job.updateProgress(1));
    await queue.add('job', {});
    await queue.add('job', {}, { jobId: 'mine' });
    await log.get('completed:mine');
    const pairs = log.entries.filter(({ event }) => !event.includes(':'));
    expect(pairs).toHaveLength(10);
    log.entries.forEach(({ event, args }, i) => {
      if (event.includes(':')) return;
      const { jobId } = args[0] as { jobId: string };
      expect(log.entries[i + 1]).toEqual({ event: `${event}:${jobId}`, args });
    });
  });

  it('come a second time under the id of their job for failures, delays and removals too', async () => {
    const queue = stage.queue();
    const names = ['failed:1', 'retries-exhausted:1', 'delayed:1', 'duplicated:mine', 'removed:mine'];
    const log = new EventLog(stage.events(), names);
    const worker = stage.worker(async () => {
      throw new Error('no');
    });
    await queue.add('job', {}, { attempts: 2, backoff: 10 });
    await log.get('retries-exhausted:1');
    await worker.close();
    const job = await queue.add('job', {}, { jobId: 'mine' });
    await queue.add('job', {}, { jobId: 'mine' });
    await job.remove();
    await log.get('removed:mine');
    expect(log.names).toEqual(['delayed:1', 'failed:1', 'retries-exhausted:1', 'duplicated:mine', 'removed:mine']);
  });

  it('of one queue are not those of another', async () => {
    const queue = stage.queue();
    const other = stage.watch(new lib.Queue(`${stage.queueName}-other`, { connection: queue.opts.connection }));
    const log = stage.globalLog();
    await other.add('theirs', {});
    await queue.add('ours', {});
    await log.get('waiting');
    expect(payloads(log)).toEqual([
      ['added', { jobId: '1', name: 'ours' }],
      ['waiting', { jobId: '1' }],
    ]);
  });

  it('reach every reader', async () => {
    const queue = stage.queue();
    const logs = [stage.globalLog(), stage.globalLog()];
    await queue.add('job', {});
    await Promise.all(logs.map((log) => log.get('waiting')));
    expect(logs[0]?.entries).toEqual(logs[1]?.entries);
  });

  it('come in the order of the stream for many jobs and workers', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    for (let i = 0; i < 3; i++) stage.worker(async () => undefined, { concurrency: 10 });
    await queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'job', data: {} })));
    await log.get('completed', 200);
    const lives = new Map<string, string[]>();
    for (const { event, args } of log.entries) {
      if (event === 'drained') continue;
      const { jobId } = args[0] as { jobId: string };
      lives.set(jobId, [...(lives.get(jobId) ?? []), event]);
    }
    expect(lives.size).toBe(200);
    // what a worker had taken in advance and could not start soon goes back (jobs-taken-in-advance, a wanted difference)
    for (const life of lives.values())
      expect(life.join(' ')).toMatch(/^added waiting( active waiting)* active completed$/);
  });

  describe('drained', () => {
    it('comes once, after the last job that waited', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.addBulk([1, 2, 3].map(() => ({ name: 'job', data: {} })));
      stage.worker(async () => undefined);
      await log.get('drained');
      expect(log.all('completed')).toHaveLength(3);
      await queue.add('again', {});
      await log.get('drained', 2);
      expect(log.names.filter((name) => name === 'completed' || name === 'drained')).toEqual([
        'completed',
        'completed',
        'completed',
        'drained',
        'completed',
        'drained',
      ]);
    });

    it('does not come while another job is active', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const gate = stage.gate();
      stage.worker((job) => (job.name === 'held' ? gate.opened : Promise.resolve()), { concurrency: 2 });
      await queue.add('held', {});
      await queue.add('quick', {});
      await log.get('completed');
      gate.open();
      await log.get('drained');
      expect(log.names.slice(-3)).toEqual(['completed', 'completed', 'drained']);
    });

    it('does not come while a job is delayed', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const worker = stage.worker(async () => undefined);
      const local = new EventLog(worker, ['completed', 'drained']);
      await queue.add('later', {}, { delay: 60_000 });
      await queue.add('now', {});
      await log.get('completed');
      await local.when('the worker to run dry', () => local.names.at(-1) === 'drained');
      await queue.add('again', {});
      await log.get('completed', 2);
      expect(log.names).not.toContain('drained');
    });
  });

  describe('a reader', () => {
    it.each([undefined, null, '', 0])('with %j for lastEventId sees only what happens from then on', async (none) => {
      const queue = stage.queue();
      await queue.add('before', {});
      const events = stage.events({ lastEventId: none as undefined });
      const log = new EventLog(events, ['added']);
      await events.waitUntilReady();
      // Nothing signals that the first read has begun, so jobs are added until one is seen.
      let added = 0;
      await until('an event', async () => {
        await queue.add(`after ${++added}`, {});
        return log.entries.length > 0;
      });
      const [first] = await log.get<[{ name: string }]>('added');
      expect(first.name).toMatch(/^after/);
    });

    it.each(['0', '0-0', 1])('from %j sees everything', async (id) => {
      const lastEventId = id as string;
      const queue = stage.queue();
      await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {} })));
      const log = stage.globalLog({ lastEventId });
      await log.get('waiting', 2);
      expect(log.names).toEqual(['added', 'waiting', 'added', 'waiting']);
    });

    it('from the id of any event sees exactly what came after it', async () => {
      const queue = stage.queue();
      const all = stage.globalLog();
      const worker = stage.worker(async () => undefined);
      await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {} })));
      await all.get('drained');
      await worker.close();
      const seen = [...all.entries];
      for (const [i, { args }] of seen.entries()) {
        const expected = seen.slice(i + 1);
        const log = stage.globalLog({ lastEventId: args.at(-1) as string });
        // A last event that comes to every reader, also to the one that starts at the end.
        await queue.add(`mark ${i}`, {});
        await log.when('the mark', () =>
          log.entries.some(({ args: [first] }) => (first as { name?: string }).name === `mark ${i}`),
        );
        expect(log.entries.slice(0, expected.length)).toEqual(expected);
      }
    });
  });
});
