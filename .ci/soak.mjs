// Runs the soak with all it needs: `npm run soak -- --minutes 5`. Every argument goes to bench/soak/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  await withRedis((url) =>
    run('soak', process.execPath, ['--expose-gc', '--import', 'tsx', 'bench/soak/main.ts', ...args], {
      env: { REDIS_URL: url },
    }),
  );
});
