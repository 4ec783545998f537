import { Proxy } from './proxy.js';
import type { Random } from './random.js';
import type { Stage } from './stage.js';
import type { useOwnServer } from './use-own-server.js';
import { sleep } from './waiting.js';

type Own = ReturnType<typeof useOwnServer>;

/** Breaks connections at random moments, and makes the server forget functions. */
export interface Breaking {
  /** What breaks: a queue and its workers use it. */
  readonly connection: Own['connection'];
  /** How often it broke so far. */
  readonly count: () => number;
  readonly stop: () => Promise<void>;
}

export async function breakAtRandom(stage: Stage, own: Own, random: Random): Promise<Breaking> {
  const proxy = stage.keep(new Proxy());
  proxy.upstream = { host: '127.0.0.1', port: own.connection.port };
  await proxy.open();
  const breaks = [
    async () => proxy.cut(),
    () => own.redis.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    () => own.redis.function('FLUSH'),
  ];
  let [working, broken] = [true, 0];
  const breaking = (async () => {
    while (working) {
      // the moments have to be many and different; there is nothing to wait for
      await sleep(20 + random.next(300));
      await breaks[broken++ % breaks.length]();
    }
  })();
  return {
    connection: { ...own.connection, host: '127.0.0.1', port: proxy.port },
    count: () => broken,
    stop: async () => {
      working = false;
      await breaking;
    },
  };
}
