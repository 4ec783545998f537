// Runs fresh programs on BullMQ and here: `npm run differential -- --minutes 5`. Every argument goes to __test__/differential/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  await withRedis((url) =>
    run('differential', process.execPath, ['--import', 'tsx', '__test__/differential/main.ts', ...args], {
      env: { REDIS_URL: url },
    }),
  );
});
