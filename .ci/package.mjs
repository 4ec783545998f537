// Checks the package as its users get it: the types of tests and sources hold, the built types serve ES modules and
// CommonJS as TypeScript resolves them (.ci/consumer), and both entries
// give the same library to `import` and `require`.
import { createRequire } from 'node:module';
import { run, say, Stop } from './step.mjs';

const RESOLUTIONS = {
  nodenext: ['--module', 'nodenext'],
  node16: ['--module', 'node16'],
  bundler: ['--module', 'preserve', '--moduleResolution', 'bundler'],
};

export async function checkPackage() {
  await run('types of src, tests and bench (tsc)', 'tsc', ['--noEmit']);
  for (const [name, options] of Object.entries(RESOLUTIONS)) {
    await run(`types of the built package, ${name} (tsc)`, 'tsc', ['-p', '.ci/consumer', ...options]);
  }
  for (const entry of ['chasquimq', 'chasquimq/v5']) await checkEntry(entry);
}

/** The types of tests with programs by others, whose packages no other check has; and ours below a tool that was written for BullMQ. */
export async function checkClients() {
  await run('types of the clients (tsc)', 'tsc', ['-p', '__test__/clients']);
  await run('types of the built package below bull-board (tsc)', 'tsc', ['-p', '__test__/clients/board']);
}

async function checkEntry(entry) {
  const { default: whole, ...imported } = await import(entry);
  const required = createRequire(import.meta.url)(entry);
  const [names, others] = [imported, required].map((entry) => Object.keys(entry).sort());
  if (names.length === 0 || names.join() !== others.join()) {
    throw new Stop(`import gives [${names}] of ${entry}, require gives [${others}]`);
  }
  const copied = names.filter((name) => imported[name] !== required[name]);
  if (copied.length > 0 || whole !== required)
    throw new Stop(`import and require give copies of [${copied}] of ${entry}`);
  say(`  built package, ${entry}: ${names.length} exports, the same to import and require`);
}
