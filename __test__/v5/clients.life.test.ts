// `client` while the server is away, while jobs end, and wherever it was told to connect.
import { errorMonitor, type EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Redis } from 'ioredis';
import { OwnServer } from '../support/own-server.js';
import { libraries, useStage5 } from './stage.js';
import { until } from '../support/waiting.js';

describe.each(libraries)('$name: clients', ({ name, lib }) => {
  const stage = useStage5(lib);
  const isOurs = name === 'chasquimq/v5';

  it.each(['with', 'without'])('stay usable while a job ends, %s a use before', async (before) => {
    const gate = stage.base.gate();
    const key = `mine:${stage.base.queueName}`;
    const queue = stage.queue();
    const worker = stage.worker(async () => {
      await gate.opened;
      const client = (await worker.client) as unknown as Redis;
      return client.incr(key);
    });
    if (before === 'with') await worker.client;
    const active = new Promise((resolve) => void worker.once('active', resolve));
    const job = await queue.add('x', {});
    await active;
    const closed = worker.close();
    gate.open();
    await closed;
    expect((await queue.getJob(job.id!))?.returnvalue).toBe(1);
    const client = await worker.client;
    await until('it to end', () => client.status === 'end');
  });

  it('a forced close ends them at once', async () => {
    const gate = stage.base.gate();
    const worker = stage.worker(() => gate.opened);
    const client = await worker.client;
    const active = new Promise((resolve) => void worker.once('active', resolve));
    await stage.queue().add('x', {});
    await active;
    await worker.close(true);
    await until('it to end', () => client.status === 'end');
  });

  it('many who wait for one are no leak', async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warned);
    try {
      const queue = stage.queue();
      await Promise.all(Array.from({ length: 30 }, () => queue.client));
      expect(warnings).toEqual([]);
    } finally {
      process.off('warning', warned);
    }
  });

  it('who asks for the monitor of errors hears them', () => {
    const events = stage.events();
    const heard: unknown[] = [];
    (events as EventEmitter).on(errorMonitor, (error: unknown) => void heard.push(error));
    const error = new Error('no');
    (events as EventEmitter).emit('error', error);
    expect(heard).toEqual([error]);
    expect(stage.base.takeErrors()).toEqual([error]);
  });

  describe('of a server of their own', () => {
    let own: OwnServer;
    beforeEach(async () => {
      own = await OwnServer.start();
    });
    afterEach(() => own.close());

    it('are given during an outage', async () => {
      const queue = stage.queue({ connection: own.connection });
      const client = await queue.client;
      await own.kill();
      await until('it to be lost', () => client.status !== 'ready');
      expect(await queue.client).toBe(client);
      await own.start();
      await queue.close();
      stage.base.takeErrors();
    });

    const forms: [string, () => unknown][] = [
      ['a URL', () => new URL(`redis://127.0.0.1:${own.port}`)],
      ['a URL among options', () => ({ url: new URL(`redis://127.0.0.1:${own.port}`) })],
      ['a URL of a socket', () => new URL(`unix://${own.path}`)],
      ['the text of a URL of a socket', () => `unix://${own.path}`],
      ['a URL of a socket among options', () => ({ url: `redis+unix://${own.path}?db=3` })],
    ];

    if (!isOurs) return;

    // BullMQ 5 takes none of these
    it.each(forms)('connect by %s', async (_, connection) => {
      const queue = stage.queue({ connection: connection() as never });
      const client = (await queue.client) as unknown as Redis;
      expect(await client.config('GET', 'port')).toEqual(['port', String(own.port)]);
      await queue.close();
    });

    // BullMQ 5 waits until the server answers
    it('are closed when the server answers no more', async () => {
      const queue = stage.queue({ connection: own.connection });
      await queue.client;
      own.freeze();
      await queue.close();
      stage.base.takeErrors();
    });
  });
});
