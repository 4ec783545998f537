import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { JS } from './.ci/suites.mjs';
import { BUILT_FILES, builtSources } from './.ci/vitest-dist.mjs';

/** Why life tests do not run where masters have replicas: over a Sentinel trio, and over a Cluster of six nodes. */
const STANDALONE_ONLY = {
  'they bring servers of their own': [
    ...['backpressure', 'blocking', 'connection.acl', 'connection.credentials', 'connection.forms', 'hostile-names'],
    ...['large-results', 'numbers'],
    ...[
      'find-jobs.bounded',
      'job.read',
      'connection.count',
      'producer.kill',
      'queue.close',
      'server.cluster',
      'server.library',
      'server.evicting',
      'server.memory',
      'server.refusals',
      'server.restart',
    ],
    ...[
      'server.sentinel',
      'server.unfit',
      'steps.bounded',
      'steps.shared',
      'threads',
      'watchdog',
      'worker.close.servers',
      'worker.idle',
    ],
  ],
  'a proxy leads them to the one server': [
    'connection.cuts',
    'connection.garbled',
    'connection.held',
    'connection.lane',
    'connection.tls',
  ],
  'there is no server in it': ['no-addon', 'schedulers.times'],
  'it is long, and watches over a process and the keys of a queue alone': ['memory'],
  'a chaos run kills workers there, too': ['schedulers.kill', 'worker.kill'],
  'its leases of a second are lost when a server that all share is busy for so long': ['worker.lease'],
  'another does the same to all keys at once (foreign-keys)': ['keys.replaced'],
  'it compares with BullMQ, which takes a cluster in another form': ['schedulers.storm', 'swap', 'worker.mixed'],
};

/** BullMQ's queues move in a Cluster as on one server. */
const MOVES = ['back', 'flows', 'kill', 'kill.steps', 'schedulers', 'states', 'working'].map(
  (file) => `__test__/migrate/${file}.test.ts`,
);

function topology(name, more = []) {
  const leftOut = Object.values(STANDALONE_ONLY).flat();
  return {
    extends: true,
    test: {
      name,
      include: ['__test__/life/*.test.ts', ...more],
      exclude: leftOut.map((file) => `__test__/life/${file}.test.ts`),
      globalSetup: ['__test__/support/topology.ts'],
      setupFiles: ['__test__/support/topology.setup.ts'],
    },
  };
}

const testFiles = (beginnings = []) => beginnings.map((beginning) => `${beginning}*.test.ts`);

/** The projects that have one server: see .ci/suites.mjs. */
const standalone = Object.entries(JS)
  .filter(([, suite]) => suite.at)
  .map(([name, { at, except, shared }]) => ({
    extends: true,
    test: { name, include: testFiles(at), exclude: testFiles(except), isolate: !shared },
  }));

export default defineConfig({
  plugins: [builtSources],
  test: {
    server: { deps: { external: [BUILT_FILES] } },
    globalSetup: ['.ci/vitest-redis.mjs'],
    setupFiles: ['.ci/vitest-server.mjs'],
    reporters: ['default', '.ci/vitest-times.mjs'],
    // Processes rather than threads: the addon has threads of its own, and a crash then costs one file its result.
    pool: 'forks',
    maxWorkers: availableParallelism(),
    // what hangs fails, and what a slow machine does slowly does not
    testTimeout: 120_000,
    // a worker of BullMQ's that is closed just before it rests for its limiter rests to the end, 30 s at most
    hookTimeout: 120_000,
    passWithNoTests: false,
    projects: [...standalone, topology('sentinel'), topology('cluster', MOVES)],
  },
});
