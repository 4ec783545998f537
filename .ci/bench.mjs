// Runs the bench with all it needs: `npm run bench -- --quick`. Every argument goes to bench/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  // settings of a server that somebody named are left alone
  const own = process.env.REDIS_URL ? {} : { BENCH_OWNS_REDIS: '1' };
  await withRedis((url) =>
    // One process: the tsx command would put a second one around it.
    run('bench', process.execPath, ['--import', 'tsx', 'bench/main.ts', ...args], { env: { REDIS_URL: url, ...own } }),
  );
});
