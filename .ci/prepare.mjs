// Writes the version of a release wherever one stands, and dates its section of the changelog.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifests } from './pack.mjs';
import { root, say, Stop } from './step.mjs';

const UNRELEASED = '## [Unreleased]\n';

/** Step of a release. `folder` has the files; `today` is the date of it. */
export function prepareRelease([version, folder = root], today = new Date().toISOString().slice(0, 10)) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version ?? '')) throw new Stop('usage: node .ci/release.mjs prepare <version>');
  const edit = (name, change) => {
    const text = readFileSync(join(folder, name), 'utf8');
    writeFileSync(join(folder, name), change(text));
  };
  edit('CHANGELOG.md', (text) => dated(text, version, today));
  // the first version in a manifest is its own
  for (const name of manifests()) edit(name, (text) => text.replace(/("version": )"[^"]+"/, `$1"${version}"`));
  edit('package-lock.json', (text) => text.replaceAll(OF_THE_LOCK, `$1"${version}"`));
  edit('Cargo.toml', (text) => text.replace(/(\[workspace\.package\][^[]*?^version = )"[^"]+"/m, `$1"${version}"`));
  edit('Cargo.lock', (text) => text.replaceAll(/(^name = "chasquimq[\w-]*"\nversion = )"[^"]+"/gm, `$1"${version}"`));
  say(`  every manifest has ${version}, and CHANGELOG.md a section of ${today}`);
}

/** Ours are the two that stand behind the name of the package. */
const OF_THE_LOCK = /("name": "chasquimq",\s+"version": )"[^"]+"/g;

/** What is unreleased becomes the section of the version; a section that is there, without a date, gets one. */
function dated(text, version, today) {
  const [head, rest] = text.split(UNRELEASED);
  if (rest === undefined) throw new Stop('CHANGELOG.md has no section "## [Unreleased]"');
  const at = rest.search(/^## /m);
  const [changes, released] = at < 0 ? [rest, ''] : [rest.slice(0, at), rest.slice(at)];
  const title = `## [${version}]`;
  const isThere = released.startsWith(`${title}\n`);
  if (!isThere && released.includes(title)) throw new Stop(`CHANGELOG.md has released ${version} before`);
  if (isThere !== (changes.trim() === '')) {
    throw new Stop(
      isThere ? `what is unreleased belongs to ${version}: move it there` : 'nothing is unreleased in CHANGELOG.md',
    );
  }
  const section = isThere
    ? released.replace(title, `${title} - ${today}`)
    : `${title} - ${today}\n${changes}${released}`;
  return `${head}${UNRELEASED}\n${section}`;
}
