// A connection that is reset: while the event loop is busy, so that what was answered before is read together with the reset; and behind an add, or another
// call, of which the answer is lost.
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker as Thread } from 'node:worker_threads';
import type { Job, JobsOptions, Queue } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { fetchJob, useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { rejection } from '../support/waiting.js';

const PROXY = new URL('programs/resetting-proxy.mjs', import.meta.url);
/** Milliseconds for which the event loop reads nothing: the answer and the reset come meanwhile. */
const BUSY_MS = 300;
/** Adds before, so that the queue has the connection of its adds. */
const BEFORE = 20;

describe('a connection that is reset', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();

  async function open(): Promise<{ proxy: Thread; queue: Queue }> {
    const proxy = new Thread(PROXY, { workerData: own.connection });
    stage.keep({ close: async () => void (await proxy.terminate()) });
    const [port] = (await once(proxy, 'message')) as [number];
    const queue = stage.queue({ connection: { ...own.connection, port } });
    for (let i = 0; i < BEFORE; i++) await queue.add('before', i);
    return { proxy, queue };
  }

  it('behind an answer that is not read yet loses no add behind that', async () => {
    const { proxy, queue } = await open();
    proxy.postMessage('answer');
    await once(proxy, 'message');
    const adds = [];
    for (let i = 0; i < 5; i++) {
      adds.push(queue.add('job', i));
      // a call each
      await nextTurn();
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
    const ids = (await Promise.all(adds)).map(({ id }) => Number(id));
    expect(ids).toEqual(adds.map((_, i) => BEFORE + i + 1));
    expect(await queue.count()).toBe(BEFORE + adds.length);
    stage.takeErrors();
  });

  it.each<[string, (queue: Queue) => Promise<{ id?: string | undefined }>]>([
    ['plain', (queue) => queue.add('job', 1)],
    ['delayed', (queue) => queue.add('job', 1, { delay: 60_000 })],
  ])(
    'instead of an answer refuses no add that was carried out, though the server is full by now: %s',
    async (_, add) => {
      const { proxy, queue } = await open();
      proxy.postMessage('swallow');
      await once(proxy, 'message');
      const added = add(queue);
      await once(proxy, 'message');
      await own.redis.config('SET', 'maxmemory', '1');
      proxy.postMessage('reset');
      expect((await added).id).toBe(String(BEFORE + 1));
      expect((await rejection(queue.add('job', 2))).message).toMatch(/^OOM/);
      await own.redis.config('SET', 'maxmemory', '0');
      expect(await queue.count()).toBe(BEFORE + 1);
      stage.takeErrors();
    },
  );

  /** Begins a call whose answer is lost; `meanwhile` comes before it is sent again. */
  async function callTwice<T>(proxy: Thread, call: () => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> {
    proxy.postMessage('swallow');
    await once(proxy, 'message');
    const called = call();
    await once(proxy, 'message');
    await meanwhile();
    proxy.postMessage('reset');
    const answer = await called;
    stage.takeErrors();
    return answer;
  }

  it.each<[string, JobsOptions, (job: Job) => Promise<unknown>]>([
    ['log', {}, (job) => job.log('row')],
    ['updateProgress', {}, (job) => job.updateProgress(1)],
    ['updateData', {}, (job) => job.updateData(2)],
    ['changePriority', {}, (job) => job.changePriority({ priority: 2 })],
    ['promote', { delay: 60_000 }, (job) => job.promote()],
    ['changeDelay', { delay: 60_000 }, (job) => job.changeDelay(90_000)],
  ])('fails no call that was carried out, though its job is gone by now: %s', async (_, options, call) => {
    const { proxy, queue } = await open();
    const job = await queue.add('job', 1, options);
    const other = stage.queue({ connection: own.connection });
    const meanwhile = async () => expect(await other.remove(String(job.id))).toBe(1);
    await expect(callTwice(proxy, () => call(job), meanwhile)).resolves.not.toThrow();
  });

  it.each<[string, (job: Job) => Promise<unknown>]>([
    ['retry', (job) => job.retry('failed')],
    ['moveToDelayed', (job) => job.moveToDelayed(Date.now() + 60_000, 'token')],
    ['moveToWait', (job) => job.moveToWait('token')],
  ])('fails no call that has moved its job: %s', async (name, call) => {
    const { proxy, queue } = await open();
    await queue.drain();
    await queue.add('job', 1);
    // beside the proxy, which is to meet the call and nothing else
    const worker = stage.worker(null, { connection: own.connection });
    const taken = await worker.getNextJob('token');
    if (name === 'retry') await taken.moveToFailed(new Error('on purpose'), 'token', false);
    const job = await fetchJob(queue, taken.id);
    const other = stage.queue({ connection: own.connection });
    await callTwice(
      proxy,
      () => call(job),
      () => other.remove(String(job.id)),
    );
    expect(await other.getJobState(String(job.id))).toBe('unknown');
  });

  it('adds the row of a log once', async () => {
    const { proxy, queue } = await open();
    const job = await queue.add('job', 1);
    const other = stage.queue({ connection: own.connection });
    const rows = await callTwice(
      proxy,
      () => job.log('one'),
      () => other.addJobLog(String(job.id), 'two'),
    );
    expect(rows).toBe(1);
    expect((await other.getJobLogs(String(job.id))).logs).toEqual(['one', 'two']);
  });
});
