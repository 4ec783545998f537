/** Before the tests of a project that is called after a topology: its servers, which all of those tests share. */
import type { TestProject } from 'vitest/node';
import type { RedisOptions } from '../../src/index.js';
import { OwnCluster } from './own-cluster.js';
import { OwnSentinels } from './own-sentinels.js';

declare module 'vitest' {
  interface ProvidedContext {
    connection: RedisOptions;
  }
}

/** Milliseconds after which a master that does not answer is replaced: longer than any of these tests keeps one busy. */
const DOWN_AFTER_MS = 60_000;

const start = {
  async sentinel() {
    const own = await OwnSentinels.start(DOWN_AFTER_MS);
    return { connection: own.connection, close: () => own.close() };
  },
  async cluster() {
    const own = await OwnCluster.start();
    // the shorter this time, the sooner they agree at first
    for (const node of own.admins) await node.config('SET', 'cluster-node-timeout', DOWN_AFTER_MS);
    return { connection: { nodes: own.startupNodes }, close: () => own.close() };
  },
};

export default async function startTopology(project: TestProject): Promise<() => Promise<void>> {
  const { connection, close } = await start[project.name as keyof typeof start]();
  project.provide('connection', connection);
  return close;
}
