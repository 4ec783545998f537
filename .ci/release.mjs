// Steps of a release (docs/releasing.md): those of the workflow, and two for whoever prepares it.
//
//   prepare <version>   writes the version into all manifests, and dates the section of the changelog
//   --dry-run     rehearses the release on this machine
//   check <tag>   the tag is `v` and the version that package.json, Cargo.toml and each platform package have
//   notes <tag>   prints what CHANGELOG.md says of that version
//   pack <artifacts> <folder>   makes the packages of the addons that were built, as tarballs in a folder
//   publish <folder>            publishes what `pack` made, and goes on where a run before has stopped
//   licenses <folder> [platform...]   writes the license, and the notices of all that is linked in, into packages of platforms
//   companion <folder>          writes the package that stands in for `bullmq` into a folder
//   companion-pro <folder>      the same for BullMQ's paid edition
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeCompanion, writeProCompanion } from './companion.mjs';
import { writeNotices } from './licenses.mjs';
import { manifests, packRelease } from './pack.mjs';
import { prepareRelease } from './prepare.mjs';
import { publishRelease } from './publish.mjs';
import { isEntry, main, root, say, Stop } from './step.mjs';

const STEPS = {
  prepare: (args) => prepareRelease(args),
  // what it needs is not there where the workflow publishes
  '--dry-run': async () => (await import('./rehearse.mjs')).rehearse(),
  check: ([tag]) => checkVersions(tag),
  notes: ([tag]) => process.stdout.write(`${notesOf(tag)}\n`),
  pack: packRelease,
  publish: publishRelease,
  licenses: writeNotices,
  companion: ([folder]) => writeCompanion(folder),
  'companion-pro': ([folder]) => writeProCompanion(folder),
};

const HOW = `nothing is released from here: the tag of a version does it, on GitHub. docs/releasing.md says how.
  npm run release -- prepare <version>   writes the version into all manifests and the changelog
  npm run release -- --dry-run           rehearses the release on this machine`;

/** Where a version stands, and which. */
export function versions() {
  const cargo = readFileSync(join(root, 'Cargo.toml'), 'utf8');
  const [, ofWorkspace] = /^\[workspace\.package\][^[]*?^version = "([^"]+)"/m.exec(cargo) ?? [];
  return [['Cargo.toml', ofWorkspace], ...manifests().map((name) => [name, read(name).version])];
}

function checkVersions(tag) {
  const wrong = versions().filter(([, version]) => `v${version}` !== tag);
  if (wrong.length > 0) {
    throw new Stop(`the tag is ${tag}, but ${wrong.map(([name, version]) => `${name} has ${version}`).join(', ')}`);
  }
  say(`  ${tag}: the version of every package`);
}

function notesOf(tag = '') {
  const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m).slice(1);
  const [title, ...text] = (sections.find((each) => each.startsWith(`[${tag.slice(1)}]`)) ?? '').split('\n');
  if (!tag || !title) throw new Stop(`CHANGELOG.md has no section "## [${tag.slice(1)}]"`);
  // outside of the repository its links would lead nowhere
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  const place = server && repository ? `${server}/${repository}/blob/${tag}/` : '';
  return text
    .join('\n')
    .trim()
    .replaceAll(/\]\((?!https?:|#)/g, `](${place}`);
}

const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));

if (isEntry(import.meta.url)) {
  await main(async ([step, ...args]) => {
    if (step === undefined) throw new Stop(HOW, 2);
    if (!(step in STEPS)) throw new Stop(`usage: node .ci/release.mjs ${Object.keys(STEPS).join('|')}`);
    await STEPS[step](args);
  });
}
