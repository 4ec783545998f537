// Pins events of the user's own: QueueEventsProducer.publishEvent.
import { describe, expect, it } from 'vitest';
import type { QueueEventsProducer } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { closedPort, connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

describe.each(libraries)('$name: queueEventsProducer', ({ lib }) => {
  const stage = useStage(lib);

  function producer(): QueueEventsProducer {
    return stage.watch(new lib.QueueEventsProducer(stage.queueName, { connection: { ...connection } }));
  }

  function log(...names: string[]): EventLog {
    return new EventLog(stage.events(), names);
  }

  it('publishes an event that listeners get with its fields as texts', async () => {
    const heard = log('paid');
    await producer().publishEvent({ eventName: 'paid', amount: 12.5, to: 'ana', ok: true });
    const [args, id] = await heard.get<[unknown, string]>('paid');
    expect(args).toEqual({ amount: '12.5', to: 'ana', ok: 'true' });
    expect(id).toMatch(/^\d+-\d+$/);
  });

  it('tells of a server that is not there before anything is published', async () => {
    const opts = { connection: { host: '127.0.0.1', port: await closedPort() } };
    const publisher = stage.keep(new lib.QueueEventsProducer(stage.queueName, opts));
    const [error] = await new EventLog(publisher, ['error']).get<[Error & { code?: string }]>('error');
    expect(error.code).toBe('ECONNREFUSED');
  });

  it('gives nothing back', async () => {
    expect(await producer().publishEvent({ eventName: 'paid' })).toBeUndefined();
  });

  it('keeps the order, and ids go up', async () => {
    const heard = log('one', 'two');
    const publisher = producer();
    for (let i = 0; i < 20; i++) await publisher.publishEvent({ eventName: i % 2 ? 'two' : 'one', i });
    await heard.get('two', 10);
    expect(heard.entries.map(({ args }) => (args[0] as { i: string }).i)).toEqual(
      Array.from({ length: 20 }, (_, i) => String(i)),
    );
    const ids = heard.entries.map(({ args }) => (args[1] as string).split('-').map(Number));
    const rising = ids.every(
      ([ms, n], i) => i === 0 || ms > ids[i - 1][0] || (ms === ids[i - 1][0] && n > ids[i - 1][1]),
    );
    expect(rising).toBe(true);
  });

  it('tells an event without fields', async () => {
    const heard = log('bare');
    await producer().publishEvent({ eventName: 'bare' });
    expect((await heard.get('bare'))[0]).toEqual({});
  });

  it('tells an event of a job by its id as well', async () => {
    const heard = log('paid', 'paid:7');
    await producer().publishEvent({ eventName: 'paid', jobId: '7' });
    await heard.get('paid:7');
    expect(heard.names).toEqual(['paid', 'paid:7']);
    expect(heard.all('paid:7')[0][0]).toEqual({ jobId: '7' });
  });

  it('fields that are undefined or null arrive empty', async () => {
    const heard = log('gaps');
    await producer().publishEvent({ eventName: 'gaps', none: undefined, nil: null, zero: 0, text: '' });
    expect((await heard.get('gaps'))[0]).toEqual({ none: '', nil: '', zero: '0', text: '' });
  });

  it('a date and a buffer arrive as texts', async () => {
    const heard = log('odd');
    const date = new Date(0);
    await producer().publishEvent({ eventName: 'odd', date, buffer: Buffer.from('hi') });
    expect((await heard.get('odd'))[0]).toEqual({ date: String(date), buffer: 'hi' });
  });

  it('an array rejects', async () => {
    await rejection(producer().publishEvent({ eventName: 'odd', list: [1, 2] }));
  });

  it('any text arrives as it was', async () => {
    const heard = log('text');
    const text = 'é "\\ \n 🦊 '.repeat(100);
    await producer().publishEvent({ eventName: 'text', text });
    expect((await heard.get('text'))[0]).toEqual({ text });
  });

  it('an event of a name that jobs have is decoded as theirs', async () => {
    const heard = log('completed', 'completed:7', 'progress', 'delayed', 'drained');
    const publisher = producer();
    await publisher.publishEvent({ eventName: 'completed', jobId: '7', returnvalue: '{"z":1}' });
    await publisher.publishEvent({ eventName: 'progress', jobId: '7', data: '[1]' });
    await publisher.publishEvent({ eventName: 'delayed', jobId: '7', delay: 5 });
    await publisher.publishEvent({ eventName: 'drained' });
    const [id] = await heard.get<[string]>('drained');
    expect(id).toMatch(/^\d+-\d+$/);
    expect(heard.names).toEqual(['completed', 'completed:7', 'progress', 'delayed', 'drained']);
    expect(heard.entries.slice(0, 4).map(({ args }) => args[0])).toEqual([
      { jobId: '7', returnvalue: { z: 1 } },
      { jobId: '7', returnvalue: { z: 1 } },
      { jobId: '7', data: [1] },
      { jobId: '7', delay: 5 },
    ]);
  });

  it('stands between the events of jobs', async () => {
    const heard = log('added', 'own', 'waiting');
    const queue = stage.queue();
    const publisher = producer();
    await queue.add('a', {});
    await publisher.publishEvent({ eventName: 'own' });
    await queue.add('b', {});
    await heard.get('waiting', 2);
    expect(heard.names).toEqual(['added', 'waiting', 'own', 'added', 'waiting']);
  });

  it('may be resumed behind an event of its own', async () => {
    const heard = log('own');
    const publisher = producer();
    await publisher.publishEvent({ eventName: 'own', n: 1 });
    await publisher.publishEvent({ eventName: 'own', n: 2 });
    const [, id] = await heard.get<[unknown, string]>('own');
    const later = new EventLog(stage.events({ lastEventId: id }), ['own']);
    expect((await later.get('own'))[0]).toEqual({ n: '2' });
  });

  it('trims the log to about maxEvents', async () => {
    const publisher = producer();
    for (let i = 0; i < 400; i++) await publisher.publishEvent({ eventName: 'many', i }, 10);
    const heard = log('many');
    await heard.when('the last one', () => heard.all<[{ i: string }]>('many').some(([{ i }]) => i === '399'));
    // Servers trim by nodes of about a hundred entries.
    expect(heard.all('many').length).toBeLessThan(300);
  });

  it('settles waitUntilFinished like the event of a job', async () => {
    const events = stage.events();
    const publisher = producer();
    const heard = new EventLog(events, ['heard']);
    // A reader that is ready may not have asked for its first event yet: what is published before that passes by it.
    await until('the reader to read', async () => {
      await publisher.publishEvent({ eventName: 'heard' });
      return heard.names.length > 0;
    });
    const job = await stage.queue().add('a', {});
    let result: unknown;
    void job.waitUntilFinished(events).then((value) => (result = value));
    // Nothing tells when it has begun to listen.
    await until('it to settle', async () => {
      await publisher.publishEvent({ eventName: 'completed', jobId: job.id, returnvalue: '"told"' });
      return result !== undefined;
    });
    expect(result).toBe('told');
  });

  it('rejects once it is closed', async () => {
    const publisher = producer();
    await publisher.publishEvent({ eventName: 'a' });
    await publisher.close();
    expect((await rejection(publisher.publishEvent({ eventName: 'b' }))).message).toBe('Connection is closed.');
    await publisher.close();
  });

  it('refuses a name as a queue does', () => {
    expect(() => new lib.QueueEventsProducer('a:b', { connection: { ...connection } })).toThrow(
      'Queue name cannot contain :',
    );
    expect(() => new lib.QueueEventsProducer('', { connection: { ...connection } })).toThrow(
      'Queue name must be provided',
    );
  });
});
