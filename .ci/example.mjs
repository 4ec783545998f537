// Runs an example with the packages of this clone: `npm run example -- web-api`.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup, setupClients } from './setup.mjs';
import { main, root, run, Stop } from './step.mjs';

await main(async ([name]) => {
  if (!name || !existsSync(join(root, 'examples', name, 'package.json'))) {
    throw new Stop('npm run example -- NAME, the name of a folder of examples/', 2);
  }
  await setup();
  await setupClients();
  await build();
  await withRedis((url) =>
    run(name, process.execPath, ['--import', 'tsx', '__test__/support/run-example.ts', name], {
      env: { REDIS_URL: url },
    }),
  );
});
