// Runs the bench of depths with all it needs: `npm run bench:depth`. Every argument goes to bench/depth/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  const own = process.env.REDIS_URL ? {} : { BENCH_OWNS_REDIS: '1' };
  await withRedis((url) =>
    run('depth', process.execPath, ['--import', 'tsx', 'bench/depth/main.ts', ...args], {
      env: { REDIS_URL: url, ...own },
    }),
  );
});
