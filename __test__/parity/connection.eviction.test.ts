// Pins the warning about a server that deletes keys when it runs full.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { libraries } from '../support/libraries.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

describe.each(libraries)('$name: connection.eviction', ({ lib }) => {
  const stage = useStage(lib);
  /** What was printed as a warning since the test began. */
  let printed: () => string[];
  beforeEach(() => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    printed = () => warn.mock.calls.map(([text]) => String(text));
    return () => warn.mockRestore();
  });

  it.each(['allkeys-lru', 'volatile-ttl'])('is printed once for each Queue when the policy is %s', async (policy) => {
    const { connection } = stage.keep(await OwnServer.start('--maxmemory-policy', policy));
    for (let i = 1; i <= 2; i++) {
      await stage.queue({ connection }).waitUntilReady();
      await until('a warning', () => printed().length === i);
    }
    const text = `IMPORTANT! Eviction policy is ${policy}. It should be "noeviction"`;
    expect(printed()).toEqual([text, text]);
  });

  it('is printed for a Worker and a QueueEvents', async () => {
    const { connection } = stage.keep(await OwnServer.start('--maxmemory-policy', 'allkeys-lfu'));
    await stage.worker(async () => undefined, { connection }).waitUntilReady();
    await until('a warning', () => printed().length > 0);
    const before = printed().length;
    await stage.events({ connection }).waitUntilReady();
    await until('another one', () => printed().length === before + 1);
    expect(new Set(printed())).toEqual(
      new Set(['IMPORTANT! Eviction policy is allkeys-lfu. It should be "noeviction"']),
    );
  });

  it('is not printed when the server keeps what it has, or is not asked', async () => {
    const keeps = stage.keep(await OwnServer.start('--maxmemory-policy', 'noeviction'));
    const evicts = stage.keep(await OwnServer.start('--maxmemory-policy', 'allkeys-lru'));
    const queues = [
      stage.queue({ connection: keeps.connection }),
      stage.queue({ connection: evicts.connection, skipVersionCheck: true }),
    ];
    for (const queue of queues) await queue.add('job', {});
    expect(printed()).toEqual([]);
  });
});
