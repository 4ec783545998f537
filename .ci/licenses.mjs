// What others wrote and we pass on: the crates that are linked into an addon, and the packages that npm installs with ours. Each
// has to have a license that lets us; those of the crates go into the packages of the platforms, beside the addon.
import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root, say, Stop } from './step.mjs';

/** Licenses that ask for no more than to be passed on with a copy. */
const ALLOWED = new Set([
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BSL-1.0', 'CC0-1.0', 'CDLA-Permissive-2.0', 'ISC', 'MIT'],
  ...['MIT-0', 'Unicode-3.0', 'Unlicense', 'Zlib'],
]);
const SYSTEMS = { darwin: 'apple-darwin', win32: 'pc-windows', linux: 'unknown-linux' };
const MACHINES = { x64: 'x86_64', arm64: 'aarch64' };
export const NOTICES = 'THIRD-PARTY-NOTICES.md';

const read = (...path) => readFileSync(join(...path), 'utf8');

/** Rust's name for the platform of a package: `linux-x64-gnu` is `x86_64-unknown-linux-gnu`. */
export function targetOf(platform) {
  const [system, machine, library] = platform.split('-');
  return [MACHINES[machine], SYSTEMS[system], ...(library ? [library] : [])].join('-');
}

/** Whether one may pass on what has this license, an SPDX expression. */
export function isAllowed(license) {
  const words = license.replaceAll('/', ' OR ').match(/[()]|[^\s()]+/g) ?? [];
  const either = () => {
    let allowed = both();
    while (words[0] === 'OR') [, allowed] = [words.shift(), both() || allowed];
    return allowed;
  };
  const both = () => {
    let allowed = one();
    while (words[0] === 'AND') [, allowed] = [words.shift(), one() && allowed];
    return allowed;
  };
  const one = () => {
    const word = words.shift();
    const allowed = word === '(' ? either() : ALLOWED.has(word);
    if (word === '(') words.shift();
    // an exception permits more
    if (words[0] === 'WITH') words.splice(0, 2);
    return allowed;
  };
  return either() && words.length === 0;
}

const known = new Map();

/** The crates of others that are linked into the addon for a target. Macros and build scripts are not. */
export function linkedCrates(target) {
  if (!known.has(target)) known.set(target, askForCrates(target));
  return known.get(target);
}

function askForCrates(target) {
  const args = ['metadata', '--format-version', '1', '--locked', '--filter-platform', target];
  const { packages, resolve } = JSON.parse(
    execFileSync('cargo', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }),
  );
  const byId = new Map(packages.map((each) => [each.id, each]));
  const nodes = new Map(resolve.nodes.map((each) => [each.id, each]));
  const linked = new Set();
  const visit = (id) => {
    const isMacro = byId.get(id).targets.some(({ kind }) => kind.includes('proc-macro'));
    if (isMacro || linked.has(id)) return;
    linked.add(id);
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) if (kinds.some(({ kind }) => kind === null)) visit(pkg);
  };
  visit(packages.find(({ name }) => name === 'chasquimq-node').id);
  // those without a source are our own
  const crates = [...linked].map((id) => byId.get(id)).filter(({ source }) => source !== null);
  return crates.sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

/** The packages that npm installs with ours. */
function installedPackages() {
  const { packages } = JSON.parse(read(root, 'package-lock.json'));
  const isOthers = ([path, { dev, devOptional, peer, link }]) => path && !dev && !devOptional && !peer && !link;
  const others = Object.entries(packages).filter(isOthers);
  return others.map(([path, { version, license }]) => ({ name: path.replace('node_modules/', ''), version, license }));
}

/** @throws Stop that names what has a license that we do not know to allow passing it on */
export function checkLicenses(platforms) {
  const crates = platforms.flatMap((platform) => linkedCrates(targetOf(platform)));
  const all = [...crates, ...installedPackages()];
  const refused = new Set(all.filter(({ license }) => !isAllowed(license ?? '')).map(nameOf));
  if (refused.size > 0) throw new Stop(`may these be passed on? ${[...refused].join(', ')}`);
  say(`  licenses: ${new Set(all.map(nameOf)).size} packages, all may be passed on`);
}

const nameOf = ({ name, version, license }) => `${name} ${version} (${license ?? 'no license'})`;

/** The license and the notices of what is linked in lie in the package of each platform, all of them in `folder`. */
export function writeNotices([folder, ...only]) {
  const platforms = only.length > 0 ? only : readdirSync(folder).sort();
  checkLicenses(platforms);
  for (const platform of platforms) writeNoticesOf(platform, join(folder, platform));
}

function writeNoticesOf(platform, folder) {
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, NOTICES), notices(linkedCrates(targetOf(platform))));
  const manifest = JSON.parse(read(folder, 'package.json'));
  const files = [...new Set([...manifest.files, NOTICES])];
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...manifest, files }, null, 2)}\n`);
}

function notices(crates) {
  const std = {
    name: 'The Rust standard library',
    version: '',
    license: 'MIT OR Apache-2.0',
    authors: ['The Rust Project contributors'],
  };
  const parts = [std, ...crates].map((crate) => {
    const title = `## ${crate.name} ${crate.version}`.trimEnd();
    return [title, `License: ${crate.license}. ${crate.repository ?? ''}`.trimEnd(), ...textsOf(crate)].join('\n\n');
  });
  return ['# What is linked into this addon', ...parts, ''].join('\n\n');
}

/** The texts of a crate's license: of several that one may choose from, that of MIT. */
function textsOf({ license, authors, manifest_path: manifest }) {
  const folder = manifest && dirname(manifest);
  const found = folder
    ? readdirSync(folder).filter((name) => /^(licen[cs]e|copying|copyright|notice|unlicense)/i.test(name))
    : [];
  const chosen =
    /\bMIT\b/.test(license) && !license.includes('AND')
      ? found.filter((name) => /mit|notice|copyright/i.test(name))
      : [];
  const texts = (chosen.length > 0 ? chosen : found).sort().map((name) => read(folder, name).trim());
  if (texts.length > 0) return texts.map((text) => `\`\`\`text\n${text.replaceAll('```', "'''")}\n\`\`\``);
  const [, permission] = read(root, 'LICENSE').split(/(?=Permission is hereby granted)/);
  const holder = authors?.length > 0 ? authors.join(', ') : 'its authors';
  return [`\`\`\`text\nCopyright (c) ${holder}\n\n${/\bMIT\b/.test(license) ? permission.trim() : license}\n\`\`\``];
}
