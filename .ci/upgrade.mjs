// A rolling deploy from another commit to this tree: `npm run upgrade -- --base main`. Every argument goes to __test__/upgrade/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  await withRedis((url) =>
    run('upgrade', process.execPath, ['--import', 'tsx', '__test__/upgrade/main.ts', ...args], {
      env: { REDIS_URL: url },
    }),
  );
});
