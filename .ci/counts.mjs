// Counts what must not grow, and compares: `npm run bench:counts`. Every argument goes to bench/counts/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { isEntry, main, run } from './step.mjs';

export async function counts(args = []) {
  await setup();
  await build({ release: false });
  await withRedis((url) =>
    run('counts', process.execPath, ['--import', 'tsx', '--no-warnings', 'bench/counts/main.ts', ...args], {
      env: { REDIS_URL: url },
    }),
  );
}

if (isEntry(import.meta.url)) await main(counts);
