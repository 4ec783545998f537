import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['__test__/**/*.test.ts'],
    globalSetup: ['.ci/vitest-redis.mjs'],
    // Processes rather than threads: the addon has threads of its own, and a crash then costs one file its result.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    // a worker of BullMQ's that is closed just before it rests for its limiter rests to the end, 30 s at most
    hookTimeout: 60_000,
    passWithNoTests: false,
  },
});
