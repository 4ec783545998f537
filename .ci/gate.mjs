// Holds this tree against another commit: `npm run bench:gate -- --base main`, or finds the commit that made a scenario slower:
// `npm run bench:bisect -- --good v0.1.0 --bad main --only add-tiny`. Every argument goes to bench/gate/.
import { build } from './build.mjs';
import { needServer, withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

const PROGRAMS = { gate: 'bench/gate/main.ts', bisect: 'bench/gate/bisect.ts' };

await main(async ([program, ...args]) => {
  await setup();
  await build();
  const binary = await needServer();
  // settings of a server that somebody named are left alone; those that the gate starts itself are like ours
  const own = binary ? { BENCH_OWNS_REDIS: '1', REDIS_SERVER_BIN: binary } : {};
  await withRedis((url) =>
    run(program, process.execPath, ['--import', 'tsx', PROGRAMS[program], ...args], {
      env: { REDIS_URL: url, ...own },
    }),
  );
});
