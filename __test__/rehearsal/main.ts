/**
 * `npm run release -- --dry-run`: a release of this tree, published into a registry on this machine, and installed from it.
 * Reading order: release.ts (packed, published, stopped in the middle, gone on with), packages.ts (what each package has, and what its
 * provenance will say), runtimes.ts (what there is to run on), musl.ts (the same with musl), programs.ts (installed, and run), table.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from '../support/registry.js';
import { runtimesOnMusl } from './musl.js';
import { lookAtPackages } from './packages.js';
import { runOn } from './programs.js';
import { packHere, publishTwice } from './release.js';
import { runtimesHere } from './runtimes.js';
import { table } from './table.js';

const say = (text: string) => console.log(text);
const folder = mkdtempSync(join(tmpdir(), 'chasquimq-rehearsal-'));
const registry = await Registry.serving(folder, []);
try {
  const { packed, standIns } = await packHere(folder);
  say('\nPublished twice: the registry refuses in the middle of the first run.\n');
  for (const line of await publishTwice(registry, folder, packed)) say(`  ${line}`);

  const packages = await lookAtPackages(registry, packed, standIns);
  say(`\n${table(['package', 'packed', 'unpacked', 'license', 'notices', 'provenance states', ''], packages.rows)}`);
  say(
    '\nProvenance is what the workflow will sign: the file by its sum, and the repository that the manifest names. Only there can it be',
  );
  say('signed, and checked by npm. Addons marked "stand-in" are built and loaded by the workflow alone.\n');

  const runs = [];
  for (const runtime of [...(await runtimesHere(folder)), ...(await runtimesOnMusl(folder))]) {
    runs.push(await runOn(runtime, registry, folder));
  }
  say(
    table(
      ['installed, and run on', 'C library', 'result'],
      runs.map(({ row }) => row),
    ),
  );
  const missing = runs.filter(({ state }) => state === 'not here').length;
  const failed = runs.filter(({ state }) => state === 'failed').length + packages.wrong;
  say(
    `\n${failed === 0 ? 'Nothing failed' : `${failed} FAILED`}${missing > 0 ? `; ${missing} could not be tried here` : ''}.`,
  );
  if (failed > 0) process.exitCode = 1;
} finally {
  await registry.close();
  rmSync(folder, { recursive: true, force: true });
}
