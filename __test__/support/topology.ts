/** Servers that are more than one. Before the tests of a project that is called after such a topology they are started, and all of its tests share them. */
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

export const start = {
  async sentinel() {
    const own = await OwnSentinels.start(DOWN_AFTER_MS);
    const [master] = own.servers;
    return { connection: own.connection, masters: [master.connection], close: () => own.close() };
  },
  /** @param replicas of each master */
  async cluster(replicas = 1) {
    const own = await OwnCluster.start(undefined, replicas);
    // the shorter this time, the sooner they agree at first
    for (const node of own.admins) await node.config('SET', 'cluster-node-timeout', DOWN_AFTER_MS);
    return { connection: { nodes: own.startupNodes }, masters: own.firstMasters, close: () => own.close() };
  },
};

export default async function startTopology(project: TestProject): Promise<() => Promise<void>> {
  const { connection, close } = await start[project.name as keyof typeof start]();
  project.provide('connection', connection);
  return close;
}
