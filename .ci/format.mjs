// Rewrites every file to the format that lint checks.
import { writePages } from './docs.mjs';
import { setup } from './setup.mjs';
import { main, run, runAll } from './step.mjs';

await main(async () => {
  await setup();
  await runAll([
    writePages,
    () => run('prettier', 'prettier', ['--write', '--log-level', 'warn', '.']),
    () => run('rustfmt', 'cargo', ['fmt', '--all']),
    () => run('eslint --fix', 'eslint', ['.', '--fix', '--quiet']),
  ]);
});
