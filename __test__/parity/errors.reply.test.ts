// Pins how errors look that the server answers: by name they are `ReplyError`, as ioredis has it, and they say what was asked.
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog, rejection } from '../support/waiting.js';

interface Told extends Error {
  command?: { name: string; args: unknown[] };
}

/** A server that refuses, in its own way, and how it is put right. */
const REFUSALS: Record<
  string,
  { begin: string; refuse(redis: Redis): Promise<unknown>; mend(redis: Redis): Promise<unknown> }
> = {
  'whose memory is full': {
    begin: 'OOM ',
    refuse: (redis) => redis.config('SET', 'maxmemory', '1'),
    mend: (redis) => redis.config('SET', 'maxmemory', '0'),
  },
  'that lacks replicas': {
    begin: 'NOREPLICAS ',
    refuse: (redis) => redis.config('SET', 'min-replicas-to-write', '1'),
    mend: (redis) => redis.config('SET', 'min-replicas-to-write', '0'),
  },
};

describe.each(libraries)('$name: errors.reply', ({ lib }) => {
  const stage = useStage(lib);
  const own = useOwnServer('--maxmemory-policy', 'noeviction');
  afterEach(async () => {
    for (const { mend } of Object.values(REFUSALS)) await mend(own.redis);
    await own.redis.config('SET', 'requirepass', '');
  });

  const CALLS: Record<string, (queue: Queue) => Promise<unknown>> = {
    add: (queue) => queue.add('job', {}),
    addBulk: (queue) => queue.addBulk([{ name: 'job', data: {} }]),
    'add with a delay': (queue) => queue.add('job', {}, { delay: 5 }),
    upsertJobScheduler: (queue) => queue.upsertJobScheduler('id', { every: 60_000 }),
  };

  function expectReply(error: Told, begin: string): void {
    expect([error.name, error.constructor.name, String(error)]).toEqual([
      'ReplyError',
      'ReplyError',
      `ReplyError: ${error.message}`,
    ]);
    expect(error.message.startsWith(begin)).toBe(true);
    expect(error.stack?.startsWith(`ReplyError: ${begin}`)).toBe(true);
    expect('code' in error).toBe(false);
  }

  function expectCommand({ command, ...fields }: Told): void {
    expect(Object.keys(fields)).toEqual([]);
    expect(command?.name).toMatch(/^(fcall|eval|evalsha)$/);
    expect(command?.args.some((arg) => String(arg).includes(stage.queueName))).toBe(true);
  }

  describe.each(Object.entries(REFUSALS))('of a server %s', (_, { begin, refuse }) => {
    it.each(Object.entries(CALLS))('%s', async (_name, call) => {
      const queue = stage.queue({ connection: own.connection });
      await queue.add('first', {});
      await refuse(own.redis);
      const error: Told = await rejection(call(queue));
      expectReply(error, begin);
      expectCommand(error);
    });

    // BullMQ's transaction is refused as a whole, or by its call
    it('a flow', async () => {
      const flows = stage.flowProducer({ connection: own.connection });
      await flows.waitUntilReady();
      await refuse(own.redis);
      const adding = flows.add({ name: 'job', queueName: stage.queueName, children: [] });
      const error = await rejection(adding);
      expectReply(error, error.message.startsWith('EXECABORT ') ? 'EXECABORT ' : begin);
    });
  });

  describe('of a server that lets a user do little', () => {
    async function limited(...rights: string[]): Promise<ConnectionOptions> {
      await own.redis.acl('SETUSER', 'limited', 'reset', 'on', '>secret', '&*', ...rights);
      return { ...own.connection, username: 'limited', password: 'secret' };
    }

    it.each([
      ['other keys', ['~other', '+@all']],
      ['no commands that queues need', ['~*', '+@all', '-fcall', '-eval', '-evalsha', '-hgetall']],
    ])('%s', async (_, rights) => {
      const queue = stage.queue({ connection: await limited(...rights) });
      await queue.waitUntilReady();
      const calls: typeof CALLS = { ...CALLS, getJobCounts: () => queue.getJobCounts(), pause: () => queue.pause() };
      for (const call of Object.values(calls)) {
        const error: Told = await rejection(call(queue));
        expectReply(error, 'NOPERM ');
        expectCommand(error);
      }
      stage.takeErrors();
    });

    it('as workers and listeners tell it', async () => {
      const connection = await limited('~other', '+@all');
      const worker = stage.worker(async () => undefined, { connection });
      const events = stage.events({ connection });
      // from the beginning: what was told before anybody listened is told again seconds later
      for (const log of [worker, events].map((told) => new EventLog(told, ['error']))) {
        const [error] = await log.get<[Told]>('error');
        expectReply(error, 'NOPERM ');
        expect(error.command?.args.some((arg) => String(arg).includes(stage.queueName))).toBe(true);
      }
      await worker.close(true);
      await events.close();
      stage.takeErrors();
    });
  });

  it.each(['WRONGPASS', 'NOAUTH'])('of a server that lets nobody in: %s', async (begin) => {
    const wrong = { username: 'nobody', password: 'wrong' };
    if (begin === 'NOAUTH') await own.redis.config('SET', 'requirepass', 'secret');
    const queue = stage.queue({ connection: { ...own.connection, ...(begin === 'WRONGPASS' && wrong) } });
    const [error] = await new EventLog(queue, ['error']).get<[Told]>('error');
    expectReply(error, begin);
    await queue.close();
    stage.takeErrors();
  });
});
