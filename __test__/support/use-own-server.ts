import type { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { OwnServer } from './own-server.js';

/** A server that the tests of one file have for themselves, and a client of it. */
export interface Own {
  readonly server: OwnServer;
  readonly redis: Redis;
  readonly connection: OwnServer['connection'];
}

/** Starts a server before the tests that follow, and ends it behind them. It is there in tests, and in hooks that are set behind this call. */
export function useOwnServer(...settings: string[]): Own {
  let [server, redis]: [OwnServer | undefined, Redis | undefined] = [undefined, undefined];
  beforeAll(async () => {
    server = await OwnServer.start(...settings);
    redis = server.client();
  });
  afterAll(async () => {
    await redis?.quit();
    await server?.close();
  });
  function started<T>(it: T | undefined): T {
    if (it === undefined) throw new Error('the server of this file is not there before its tests');
    return it;
  }
  return {
    get server() {
      return started(server);
    },
    get redis() {
      return started(redis);
    },
    get connection() {
      return started(server).connection;
    },
  };
}
