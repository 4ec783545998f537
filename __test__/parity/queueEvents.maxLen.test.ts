// Pins `streams.events.maxLen`: about how many events a queue keeps.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: queueEvents.maxLen', ({ lib }) => {
  const stage = useStage(lib);

  it('keeps about as many events as it says, the latest', async () => {
    const queue = stage.queue({ streams: { events: { maxLen: 200 } } });
    await queue.waitUntilReady();
    for (let i = 0; i < 600; i++) await queue.add('job', {});
    const log = new EventLog(stage.events(), ['added', 'waiting', 'paused']);
    await queue.pause();
    await log.get('paused');
    expect(log.names.length).toBeGreaterThanOrEqual(200);
    // of 1,201; how far above it may lie is for the server, which trims whole nodes
    expect(log.names.length).toBeLessThan(600);
    expect(log.all<[{ jobId: string }]>('waiting').at(-1)?.[0].jobId).toBe('600');
  });

  it('is stored with the queue', async () => {
    const queue = stage.queue({ streams: { events: { maxLen: 50 } } });
    await queue.waitUntilReady();
    await queue.add('job', {});
    expect((await queue.getMeta()).maxLenEvents).toBe(50);
  });

  it.each([0, 1, 10])('keeps few where it is told to keep %i', async (maxLen) => {
    const queue = stage.queue({ streams: { events: { maxLen } } });
    await queue.waitUntilReady();
    for (let i = 0; i < 40; i++) await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'job', data: 1 })));
    const log = new EventLog(stage.events(), ['added', 'waiting', 'paused']);
    await queue.pause();
    await log.get('paused');
    // of 4,001: at most those of two calls more than that
    expect(log.names.length).toBeLessThanOrEqual(maxLen + 201);
  });
});
