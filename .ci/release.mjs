// Steps of the release workflow.
//
//   check <tag>   the tag is `v` and the version that package.json, Cargo.toml and each platform package have
//   notes <tag>   prints what CHANGELOG.md says of that version
//   name [folder] writes repository, homepage and bugs into all packages: those of the repository that runs the workflow
//   licenses [folder [platform...]]   writes the license, and the notices of all that is linked in, into the packages of the
//                 platforms: all of npm/, unless told otherwise
//   companion <folder>   writes the package that stands in for `bullmq` into a folder
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeCompanion } from './companion.mjs';
import { writeNotices } from './licenses.mjs';
import { isEntry, main, root, say, Stop } from './step.mjs';

const STEPS = {
  check: ([tag]) => checkVersions(tag),
  notes: ([tag]) => process.stdout.write(`${notesOf(tag)}\n`),
  name: nameRepository,
  licenses: writeNotices,
  companion: ([folder]) => writeCompanion(folder),
};

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
  return text.join('\n').trim();
}

function nameRepository([folder = root]) {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  if (!GITHUB_SERVER_URL || !GITHUB_REPOSITORY) throw new Stop('this step is for the release workflow');
  const address = `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
  for (const name of manifests()) write(folder, name, { ...read(name), ...namesOf(address) });
  say(`  every package names ${address}`);
}

export function namesOf(address) {
  return {
    repository: { type: 'git', url: `git+${address}.git` },
    homepage: `${address}#readme`,
    bugs: `${address}/issues`,
  };
}

function manifests() {
  const platforms = readdirSync(join(root, 'npm')).sort();
  return ['package.json', ...platforms.map((platform) => `npm/${platform}/package.json`)];
}

const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
const write = (folder, name, manifest) => writeFileSync(join(folder, name), `${JSON.stringify(manifest, null, 2)}\n`);

if (isEntry(import.meta.url)) {
  await main(async ([step, ...args]) => {
    if (!(step in STEPS)) throw new Stop(`usage: node .ci/release.mjs ${Object.keys(STEPS).join('|')}`);
    await STEPS[step](args);
  });
}
