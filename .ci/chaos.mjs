// Runs the chaos run with all it needs: `npm run chaos -- --seconds 60`. Every argument goes to __test__/chaos/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await build();
  // The run starts a server of its own, to be killed. This one says that there is a server to start.
  await withRedis((url) =>
    run('chaos', process.execPath, ['--import', 'tsx', '__test__/chaos/main.ts', ...args], { env: { REDIS_URL: url } }),
  );
});
