// Moves a BullMQ system here while it runs, and back, with all that needs: `npm run bench:migrate`. Every argument goes to
// bench/migrate/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  const own = process.env.REDIS_URL ? {} : { BENCH_OWNS_REDIS: '1' };
  await withRedis((url) =>
    run('migrate', process.execPath, ['--import', 'tsx', 'bench/migrate/main.ts', ...args], {
      env: { REDIS_URL: url, ...own },
    }),
  );
});
