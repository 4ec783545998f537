// Runs the tests against a Redis of their own. `npm test` runs them all, `npm test -- rust|js|types` one part;
// what follows the part goes to its runner: `npm test -- js queue.add`, `npm test -- rust -p chasquimq fetch`.
import { build } from './build.mjs';
import { checkPackage } from './package.mjs';
import { withRedis } from './redis.mjs';
import { setup } from './setup.mjs';
import { isEntry, main, run, runAll, Stop } from './step.mjs';

const PARTS = {
  // Every test is counted, also after a failure.
  rust: (args, env) =>
    run('rust tests', 'cargo', ['test', '--workspace', '--no-fail-fast', ...locked(), ...args], { env }),
  types: () => checkPackage(),
  js: (args, env) => run('js tests', 'vitest', ['run', ...args], { env }),
};

export async function test([part, ...args] = []) {
  if (part !== undefined && !(part in PARTS))
    throw new Stop(`usage: npm test [-- ${Object.keys(PARTS).join('|')} ...]`);
  await setup();
  if (part !== 'rust') await build();
  const chosen = part ? [PARTS[part]] : Object.values(PARTS);
  await withRedis((url) => runAll(chosen.map((step) => () => step(args, { REDIS_URL: url }))));
}

const locked = () => (process.env.CI ? ['--locked'] : []);

if (isEntry(import.meta.url)) await main(test);
