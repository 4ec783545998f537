// Runs the bench with all it needs: `npm run bench -- --quick`. Every argument goes to bench/main.ts, or with `--peers` to bench/peers/main.ts.
import { build } from './build.mjs';
import { needServer, withRedis } from './redis.mjs';
import { setup, setupPeers } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  const isOfPeers = args.includes('--peers');
  if (isOfPeers) await setupPeers();
  await build();
  const binary = await needServer();
  // settings of a server that somebody named are left alone; those that the bench starts itself are like ours
  const own = binary ? { BENCH_OWNS_REDIS: '1', REDIS_SERVER_BIN: binary } : {};
  const program = isOfPeers ? 'bench/peers/main.ts' : 'bench/main.ts';
  const rest = args.filter((arg) => arg !== '--peers');
  await withRedis((url) =>
    // One process: the tsx command would put a second one around it.
    run('bench', process.execPath, ['--import', 'tsx', program, ...rest], { env: { REDIS_URL: url, ...own } }),
  );
});
