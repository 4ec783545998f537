// Runs the bench with all it needs: `npm run bench -- --quick`. Every argument goes to bench/main.ts.
import { build } from './build.mjs';
import { needServer, withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  const binary = await needServer();
  // settings of a server that somebody named are left alone; those that the bench starts itself are like ours
  const own = binary ? { BENCH_OWNS_REDIS: '1', REDIS_SERVER_BIN: binary } : {};
  await withRedis((url) =>
    // One process: the tsx command would put a second one around it.
    run('bench', process.execPath, ['--import', 'tsx', 'bench/main.ts', ...args], { env: { REDIS_URL: url, ...own } }),
  );
});
