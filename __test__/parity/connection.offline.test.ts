// Pins enableOfflineQueue and skipWaitingForReady: what becomes of calls while there is no connection.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { Proxy } from '../support/proxy.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, sleep, until } from '../support/waiting.js';

const REFUSED = "Stream isn't writeable and enableOfflineQueue options is false";

describe.each(libraries)('$name: connection.offline', ({ lib }) => {
  const stage = useStage(lib);

  /** A way to the server. What is told of it while it is closed is no matter of these tests. */
  async function wayThrough(): Promise<Proxy> {
    stage.keep({ close: async () => void stage.takeErrors() });
    const proxy = stage.keep(new Proxy());
    await proxy.open();
    return proxy;
  }

  it('calls reject while the connection is lost, with enableOfflineQueue false', async () => {
    const proxy = await wayThrough();
    const queue = stage.queue({ connection: { host: '127.0.0.1', port: proxy.port, enableOfflineQueue: false } });
    await queue.waitUntilReady();
    await queue.add('before', {});
    const lost = new EventLog(queue, ['ioredis:close']);
    await proxy.close();
    await lost.get('ioredis:close');
    expect((await rejection(queue.add('meanwhile', {}))).message).toBe(REFUSED);
    expect((await rejection(queue.getJobCounts())).message).toBe(REFUSED);
    await proxy.open();
    const isBack = () => queue.getJobCounts().then(Boolean, () => false);
    await until('the connection', isBack);
    await queue.add('after', {});
    expect((await queue.getJobs()).map(({ name }) => name)).toEqual(['after', 'before']);
  });

  it.each([
    ['wait for the first connection', {}, 'waits'],
    ['reject before it with skipWaitingForReady', { skipWaitingForReady: true }, REFUSED],
  ])('calls %s', async (_, opts, expected) => {
    const proxy = await wayThrough();
    await proxy.close();
    const connection = { host: '127.0.0.1', port: proxy.port, enableOfflineQueue: false };
    const queue = stage.queue({ connection, ...opts });
    const added = queue.add('job', {}).then(
      () => 'added',
      (error: Error) => error.message,
    );
    // nothing tells that a call will wait
    const first = expected === 'waits' ? Promise.race([added, sleep(300).then(() => 'waits')]) : added;
    expect(await first).toBe(expected);
    await proxy.open();
    expect(await added).toBe(expected === 'waits' ? 'added' : REFUSED);
  });
});
