// Counts what must not grow, and compares: `npm run bench:counts`. Every argument goes to bench/counts/main.ts.
import { build } from './build.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { ask, isEntry, main, run, say } from './step.mjs';

export async function counts(args = []) {
  await setup();
  await build();
  // what callgrind counts; without valgrind nobody runs it
  if (await ask('valgrind', ['--version'])) {
    const locked = process.env.CI ? ['--locked'] : [];
    await run('build chasquimq-counts', 'cargo', ['build', '--release', '-q', '-p', 'chasquimq-counts', ...locked]);
  } else {
    say('> no valgrind here: instructions are not counted');
  }
  await withRedis((url) =>
    run('counts', process.execPath, ['--import', 'tsx', '--no-warnings', 'bench/counts/main.ts', ...args], {
      env: { REDIS_URL: url },
    }),
  );
}

if (isEntry(import.meta.url)) await main(counts);
