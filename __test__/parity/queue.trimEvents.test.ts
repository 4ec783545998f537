// Pins Queue#trimEvents.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: queue.trimEvents', ({ lib }) => {
  const stage = useStage(lib);

  it('removes nothing where there is nothing', async () => {
    expect(await stage.queue().trimEvents(0)).toBe(0);
  });

  it('removes all events, and tells their number', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 300 }, () => ({ name: 'job', data: {} })));
    for (let i = 0; i < 10; i += 1) await queue.add('job', {});
    expect(await queue.trimEvents(0)).toBe(620);
    expect(await queue.trimEvents(0)).toBe(0);
    const log = new EventLog(stage.events(), ['waiting', 'added', 'paused']);
    await queue.pause();
    await log.get('paused');
    expect(log.names).toEqual(['paused']);
  });

  it('leaves at least as many as it is told to', async () => {
    const queue = stage.queue();
    for (let i = 0; i < 300; i += 1) await queue.add('job', {});
    const trimmed = await queue.trimEvents(200);
    expect(trimmed).toBeGreaterThan(250);
    expect(trimmed).toBeLessThanOrEqual(400);
    const log = new EventLog(stage.events(), ['waiting', 'paused']);
    await queue.pause();
    await log.get('paused');
    expect(log.names.length).toBeGreaterThanOrEqual(100);
    expect(log.names.length).toBeLessThan(200);
    // the latest are there
    expect(log.all<[{ jobId: string }]>('waiting').at(-1)?.[0].jobId).toBe('300');
  });

  it.each([99, 100, 101, 200])('counts %d events that were written one by one', async (count) => {
    const publisher = stage.watch(new lib.QueueEventsProducer(stage.queueName, { connection: { ...connection } }));
    for (let i = 0; i < count; i += 1) await publisher.publishEvent({ eventName: 'paid', i });
    expect(await stage.queue().trimEvents(0)).toBe(count);
  });

  it('leaves a log that is shorter alone', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await queue.trimEvents(100)).toBe(0);
  });

  it('takes numbers only', async () => {
    const queue = stage.queue();
    await queue.add('job', 1);
    for (const most of [null, '', {}, 'x', '1000']) await rejection(queue.trimEvents(most as number));
    expect(await queue.trimEvents(1000)).toBe(0);
  });
});
