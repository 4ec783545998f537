// Pins how children and their results are read: getDependencies with and without options, counts, Queue#getDependencies.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: flow.dependencies', ({ lib }) => {
  const stage = useStage(lib);

  /** A parent with that many children; those below `done` have completed, then `ignored` failed and are ignored, then `failed` failed. */
  async function family(size: number, { done = 0, ignored = 0, failed = 0 } = {}): Promise<Job> {
    const flows = stage.flowProducer();
    const { job } = await flows.add({
      name: 'parent',
      queueName: stage.name('top'),
      children: Array.from({ length: size }, (_, i) => ({
        name: 'child',
        queueName: stage.name(),
        data: { i },
        opts: {
          jobId: `c${i}`,
          ...(i >= done && i < done + ignored && { ignoreDependencyOnFailure: true }),
          ...(i >= done + ignored && i < done + ignored + failed && { failParentOnFailure: true }),
        },
      })),
    });
    const ending = done + ignored + failed;
    if (ending === 0) return job;
    const gate = stage.gate();
    const worker = stage.worker(
      async ({ data: { i } }) => {
        if (i >= ending) return gate.opened;
        if (i >= done) throw new Error(`no. ${i} failed`);
        return { i };
      },
      { concurrency: size },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.when('all to end', () => log.entries.length === ending);
    return job;
  }

  const key = (i: number) => stage.childKey(`c${i}`);
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

  it('gives all kinds without options', async () => {
    const job = await family(7, { done: 2, ignored: 2, failed: 1 });
    const { processed, unprocessed = [], ignored, failed, ...rest } = await job.getDependencies();
    expect(processed).toEqual({ [key(0)]: { i: 0 }, [key(1)]: { i: 1 } });
    expect([...unprocessed].sort()).toEqual([key(5), key(6)]);
    expect(ignored).toEqual({ [key(2)]: 'no. 2 failed', [key(3)]: 'no. 3 failed' });
    expect(failed).toEqual([key(4)]);
    expect(rest).toEqual({});
  });

  it('getChildrenValues gives them in the order of getDependencies, time after time', async () => {
    const job = await family(9, { done: 9 });
    const { processed = {} } = await job.getDependencies();
    for (let time = 0; time < 3; time++)
      expect(Object.keys(await job.getChildrenValues())).toEqual(Object.keys(processed));
  });

  it('gives all kinds, without cursors, for options that name none', async () => {
    const job = await family(2, { done: 1 });
    const all = { processed: { [key(0)]: { i: 0 } }, unprocessed: [key(1)], ignored: {}, failed: [] };
    expect(await job.getDependencies({})).toEqual(all);
  });

  it.each(['processed', 'unprocessed', 'ignored', 'failed'] as const)(
    'gives %s alone when it is named',
    async (kind) => {
      const job = await family(5, { done: 1, ignored: 1, failed: 1 });
      const wanted = {
        processed: { processed: { [key(0)]: { i: 0 } }, nextProcessedCursor: 0 },
        unprocessed: { unprocessed: [key(3), key(4)], nextUnprocessedCursor: 0 },
        ignored: { ignored: { [key(1)]: 'no. 1 failed' }, nextIgnoredCursor: 0 },
        failed: { failed: [key(2)], nextFailedCursor: 5 },
      };
      const found = await job.getDependencies({ [kind]: { count: 5 } });
      if (found.unprocessed) found.unprocessed.sort();
      expect(found).toEqual(wanted[kind]);
    },
  );

  it('gives two kinds when two are named', async () => {
    const job = await family(4, { done: 1, failed: 1 });
    const found = await job.getDependencies({ processed: { cursor: 0, count: 10 }, failed: { cursor: 0, count: 10 } });
    expect(found).toEqual({
      processed: { [key(0)]: { i: 0 } },
      nextProcessedCursor: 0,
      failed: [key(2 - 1)],
      nextFailedCursor: 10,
    });
  });

  it('an empty set of options of a kind takes the defaults', async () => {
    const job = await family(3, { failed: 2 });
    expect((await job.getDependencies({ failed: {} })).nextFailedCursor).toBe(20);
    expect((await job.getDependencies({ unprocessed: {} })).nextUnprocessedCursor).toBe(0);
  });

  it.each(['0', null])('takes the cursor %j for the beginning', async (cursor) => {
    const job = await family(3);
    const found = await job.getDependencies({ unprocessed: { cursor: cursor as unknown as number } });
    expect([found.unprocessed?.length, found.nextUnprocessedCursor]).toEqual([3, 0]);
  });

  it('pages through pending children, each once at least', async () => {
    const job = await family(700);
    const seen = new Set<string>();
    let pages = 0;
    let cursor = 0;
    do {
      const { unprocessed = [], nextUnprocessedCursor = 0 } = await job.getDependencies({
        unprocessed: { cursor, count: 100 },
      });
      for (const child of unprocessed) seen.add(child);
      cursor = nextUnprocessedCursor;
      pages++;
    } while (cursor !== 0);
    expect(seen).toEqual(new Set(numbers(0, 700).map(key)));
    expect(pages).toBeGreaterThan(2);
  });

  it('pages through processed children, each once at least', async () => {
    const job = await family(600, { done: 600 });
    const seen: Record<string, unknown> = {};
    let pages = 0;
    let cursor = 0;
    do {
      const { processed, nextProcessedCursor = 0 } = await job.getDependencies({ processed: { cursor, count: 100 } });
      Object.assign(seen, processed);
      cursor = nextProcessedCursor;
      pages++;
    } while (cursor !== 0);
    expect(seen).toEqual(Object.fromEntries(numbers(0, 600).map((i) => [key(i), { i }])));
    expect(pages).toBeGreaterThan(2);
    expect(Object.keys(await job.getChildrenValues())).toHaveLength(600);
    expect(await job.getDependenciesCount()).toEqual({ processed: 600, unprocessed: 0, ignored: 0, failed: 0 });
  });

  it('pages through ignored children, each once at least', async () => {
    const job = await family(600, { ignored: 600 });
    const seen: Record<string, unknown> = {};
    let cursor = 0;
    do {
      const { ignored, nextIgnoredCursor = 0 } = await job.getDependencies({ ignored: { cursor, count: 100 } });
      Object.assign(seen, ignored);
      cursor = nextIgnoredCursor;
    } while (cursor !== 0);
    expect(seen).toEqual(Object.fromEntries(numbers(0, 600).map((i) => [key(i), `no. ${i} failed`])));
    expect(await job.getIgnoredChildrenFailures()).toEqual(seen);
  });

  it('a page of a small kind may be more than was asked for, and the pages together are all of it', async () => {
    const job = await family(60);
    const seen = new Set<string>();
    let cursor = 0;
    do {
      // servers from 7.2 on give all of it at once
      const { unprocessed = [], nextUnprocessedCursor = 0 } = await job.getDependencies({
        unprocessed: { cursor, count: 5 },
      });
      for (const child of unprocessed) seen.add(child);
      cursor = nextUnprocessedCursor;
    } while (cursor !== 0);
    expect(seen).toEqual(new Set(numbers(0, 60).map(key)));
  });

  it('failed children are counted off by rank', async () => {
    const job = await family(6, { failed: 6 });
    const { failed: all = [] } = await job.getDependencies();
    expect([...all].sort()).toEqual(numbers(0, 6).map(key));
    expect(await job.getDependencies({ failed: { count: 4 } })).toEqual({
      failed: all.slice(0, 4),
      nextFailedCursor: 4,
    });
    expect(await job.getDependencies({ failed: { cursor: 2, count: 4 } })).toEqual({
      failed: all.slice(2, 4),
      nextFailedCursor: 6,
    });
    expect(await job.getDependencies({ failed: { cursor: 4, count: 2 } })).toEqual({ failed: [], nextFailedCursor: 6 });
    expect(await job.getDependencies({ failed: { cursor: 9, count: 20 } })).toEqual({
      failed: [],
      nextFailedCursor: 29,
    });
  });

  it('counts all kinds, or those asked for', async () => {
    const job = await family(9, { done: 4, ignored: 2, failed: 1 });
    const all = { processed: 4, unprocessed: 2, ignored: 2, failed: 1 };
    expect(await job.getDependenciesCount()).toEqual(all);
    expect(await job.getDependenciesCount({})).toEqual(all);
    expect(await job.getDependenciesCount({ processed: false })).toEqual(all);
    expect(await job.getDependenciesCount({ processed: true })).toEqual({ processed: 4 });
    expect(await job.getDependenciesCount({ unprocessed: true, failed: true })).toEqual({ unprocessed: 2, failed: 1 });
    expect(await job.getDependenciesCount({ ignored: true, processed: false })).toEqual({ ignored: 2 });
  });

  it('shows counts in the order in which they are asked for, and pages in one of its own', async () => {
    const job = await family(9, { done: 4, ignored: 2, failed: 1 });
    const counts = await job.getDependenciesCount({ failed: true, unprocessed: true, processed: true, ignored: true });
    expect(Object.keys(counts)).toEqual(['failed', 'unprocessed', 'processed', 'ignored']);
    expect(Object.keys(await job.getDependenciesCount())).toEqual(['processed', 'unprocessed', 'ignored', 'failed']);
    const pages = await job.getDependencies({ unprocessed: {}, failed: {}, ignored: {}, processed: {} });
    const shown = Object.keys(pages).filter((key) => !key.startsWith('next'));
    expect(shown).toEqual(['processed', 'ignored', 'failed', 'unprocessed']);
  });

  it('a job without children has none of any kind', async () => {
    const job = await stage.queue().add('alone', {});
    const none = { processed: {}, unprocessed: [], failed: [], ignored: {} };
    expect(JSON.stringify(await job.getDependencies())).toBe(JSON.stringify(none));
    expect(await job.getDependenciesCount()).toEqual({ processed: 0, unprocessed: 0, ignored: 0, failed: 0 });
    expect(await job.getChildrenValues()).toEqual({});
    expect(await job.getIgnoredChildrenFailures()).toEqual({});
    expect(await job.getFailedChildrenValues()).toEqual({});
  });

  it('what children gave vanishes with the parent', async () => {
    const job = await family(3, { done: 1, ignored: 1, failed: 1 });
    await job.remove({ removeChildren: false });
    expect(await job.getDependencies()).toEqual({ processed: {}, unprocessed: [], ignored: {}, failed: [] });
    expect(await job.getDependenciesCount()).toEqual({ processed: 0, unprocessed: 0, ignored: 0, failed: 0 });
  });

  it('what children gave stays while the parent is kept', async () => {
    const top = new EventLog(
      stage.worker(async () => 'done', {}, 'top'),
      ['completed'],
    );
    const job = await family(2, { done: 2 });
    await top.get('completed');
    expect(await job.getChildrenValues()).toEqual({ [key(0)]: { i: 0 }, [key(1)]: { i: 1 } });
  });

  it('a processor reads them of its own job', async () => {
    const top = new EventLog(
      stage.worker(
        async (job) => [await job.getDependencies(), await job.getDependenciesCount({ processed: true })],
        {},
        'top',
      ),
      ['completed'],
    );
    await family(1, { done: 1 });
    expect((await top.get('completed'))[1]).toEqual([
      { processed: { [key(0)]: { i: 0 } }, unprocessed: [], ignored: {}, failed: [] },
      { processed: 1 },
    ]);
  });

  describe('queue.getDependencies', () => {
    it('gives pending children with their jobs', async () => {
      const job = await family(3);
      const { items, jobs, total } = await stage.queue({}, 'top').getDependencies(job.id as string, 'pending', 0, -1);
      expect(items.map(({ id }) => id).sort()).toEqual([key(0), key(1), key(2)]);
      expect(items[0]).toEqual({ id: items[0].id });
      expect(total).toBe(3);
      // of the ids BullMQ says nothing
      expect(jobs.map(({ data }) => data).sort()).toEqual(['{"i":0}', '{"i":1}', '{"i":2}']);
      expect(jobs[0]).toMatchObject({ name: 'child', parentKey: stage.childKey(job.id, 'top'), attemptsMade: 0 });
      expect(jobs[0].parent).toEqual({ id: job.id, queueKey: job.queueQualifiedName });
    });

    it('gives processed children with their values', async () => {
      const job = await family(2, { done: 2 });
      const { items, jobs, total } = await stage.queue({}, 'top').getDependencies(job.id as string, 'processed', 0, -1);
      expect([...items].sort((a, b) => a.id.localeCompare(b.id))).toEqual([
        { id: key(0), v: { i: 0 } },
        { id: key(1), v: { i: 1 } },
      ]);
      expect(total).toBe(2);
      expect(jobs.map(({ returnvalue }) => returnvalue).sort()).toEqual(['{"i":0}', '{"i":1}']);
      expect(jobs.map(({ attemptsMade }) => attemptsMade)).toEqual([1, 1]);
    });

    it('gives jobs with all their fields, whether they have them or not', async () => {
      const child = (name: string, opts: JobsOptions) => ({ name, queueName: stage.queueName, data: 1, opts });
      const { job } = await stage.flowProducer().add({
        name: 'top',
        queueName: stage.name('top'),
        children: [child('late', { delay: 60_000 }), child('plain', {}), child('urgent', { priority: 3, attempts: 2 })],
      });
      const of = (type: 'pending' | 'processed') =>
        stage.queue({}, 'top').getDependencies(job.id as string, type, 0, -1);
      const pending = (await of('pending')).jobs.sort((a, b) => a.name.localeCompare(b.name));
      expect(pending.map(({ name, delay, priority }) => [name, delay, priority])).toEqual([
        ['late', 60_000, 0],
        ['plain', 0, 0],
        ['urgent', 0, 3],
      ]);
      const [late] = pending;
      // BullMQ leaves the id undefined
      expect({ ...late, id: undefined }).toStrictEqual({
        ...{ id: undefined, name: 'late', data: '1', progress: 0, delay: 60_000, priority: 0 },
        opts: late.opts,
        timestamp: late.timestamp,
        ...{ attemptsStarted: 0, attemptsMade: 0, stalledCounter: 0 },
        ...{ finishedOn: undefined, processedOn: undefined, repeatJobKey: undefined },
        ...{ debounceId: undefined, deduplicationId: undefined, failedReason: undefined, deferredFailure: undefined },
        ...{ stacktrace: undefined, returnvalue: undefined, processedBy: undefined },
        parentKey: late.parentKey,
        parent: late.parent,
      });
      expect(late.opts).toMatchObject({ delay: 60_000, attempts: 0 });

      const log = new EventLog(
        stage.worker(async ({ name }) => ({ name }), { name: 'nurse' }),
        ['completed'],
      );
      await log.get('completed', 2);
      const urgent = (await of('processed')).jobs.find(({ name }) => name === 'urgent');
      expect(urgent).toMatchObject({ priority: 3, returnvalue: '{"name":"urgent"}', processedBy: 'nurse' });
      expect([urgent?.attemptsStarted, urgent?.attemptsMade]).toEqual([1, 1]);
      expect(urgent?.finishedOn).toBeGreaterThanOrEqual(urgent?.processedOn as number);
    });

    it('says nothing of the jobs of children that are gone', async () => {
      const job = await family(2, { done: 2 });
      await stage.queue().remove('c0');
      const { items, jobs, total } = await stage.queue({}, 'top').getDependencies(job.id as string, 'processed', 0, -1);
      // BullMQ gives an empty husk for each of them
      const there = jobs.filter(({ name }) => name);
      expect([items.length, there.map(({ data }) => data), total]).toEqual([2, ['{"i":1}'], 2]);
    });

    it('gives a page, and the number of all', async () => {
      const job = await family(30);
      const top = stage.queue({}, 'top');
      const first = await top.getDependencies(job.id as string, 'pending', 0, 9);
      expect([first.items.length, first.jobs.length, first.total]).toEqual([10, 10, 30]);
      const rest = await top.getDependencies(job.id as string, 'pending', 10, 29);
      expect([rest.items.length, rest.total]).toEqual([20, 30]);
      expect(new Set([...first.items, ...rest.items].map(({ id }) => id)).size).toBe(30);
      const past = await top.getDependencies(job.id as string, 'pending', 30, 40);
      expect([past.items, past.jobs, past.total]).toEqual([[], [], 30]);
    });

    it('of a job without children gives nothing', async () => {
      const queue = stage.queue();
      const job = await queue.add('alone', {});
      for (const type of ['pending', 'processed'] as const) {
        expect(await queue.getDependencies(job.id as string, type, 0, -1)).toEqual({ items: [], jobs: [], total: 0 });
        expect(await queue.getDependencies('nobody', type, 0, -1)).toEqual({ items: [], jobs: [], total: 0 });
      }
    });
  });
});
