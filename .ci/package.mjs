// Checks the package as its users get it: the types of tests and sources hold, the built types serve ES modules and
// CommonJS (.ci/consumer), and both entry points load and export the same names.
import { createRequire } from 'node:module';
import { run, say, Stop } from './step.mjs';

export async function checkPackage() {
  await run('types of src, tests and bench (tsc)', 'tsc', ['--noEmit']);
  await run('types of the built package (tsc)', 'tsc', ['-p', '.ci/consumer']);
  const imported = Object.keys(await import('chasquimq')).sort();
  const required = Object.keys(createRequire(import.meta.url)('chasquimq')).sort();
  if (imported.length === 0 || imported.join() !== required.join()) {
    throw new Stop(`import gives [${imported}], require gives [${required}]`);
  }
  say(`  built package: ${imported.length} exports, the same to import and require`);
}
