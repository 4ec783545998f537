// Steps of the release workflow.
//
//   check <tag>   the tag is `v` and the version that package.json, Cargo.toml and each platform package have
//   name          writes repository, homepage and bugs into all packages: those of the repository that runs the workflow
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const STEPS = { check: ([tag]) => checkVersions(tag), name: nameRepository };

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

function nameRepository() {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  if (!GITHUB_SERVER_URL || !GITHUB_REPOSITORY) throw new Stop('this step is for the release workflow');
  const address = `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
  for (const name of manifests()) write(name, { ...read(name), ...namesOf(address) });
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
const write = (name, manifest) => writeFileSync(join(root, name), `${JSON.stringify(manifest, null, 2)}\n`);

if (isEntry(import.meta.url)) {
  await main(async ([step, ...args]) => {
    if (!(step in STEPS)) throw new Stop(`usage: node .ci/release.mjs ${Object.keys(STEPS).join('|')}`);
    await STEPS[step](args);
  });
}
