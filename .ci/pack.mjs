// Makes the packages of a release: one for each platform, with its addon, the licenses of all that is linked into it and no code;
// `chasquimq`, which has those as optional dependencies; and those that stand in for BullMQ and its paid edition. Each is packed once, and
// the tarballs lie beside a list in the order in which they are to be published.
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeCompanion, writeProCompanion } from './companion.mjs';
import { writeNotices } from './licenses.mjs';
import { forCmd, root, say, Stop } from './step.mjs';

/** The list of what was packed. */
export const LIST = 'packages.json';

const SYSTEMS = { linux: 'Linux', darwin: 'macOS', win32: 'Windows' };
const LIBRARIES = { glibc: ', glibc', musl: ', musl' };

/** What has no meaning where the package is installed. */
const OF_THE_CLONE = ['scripts', 'devDependencies', 'allowScripts', 'overrides'];

const read = (...path) => JSON.parse(readFileSync(join(...path), 'utf8'));
const write = (folder, manifest) =>
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);

/** The platforms of packages, by their folders in npm/. */
export const platforms = () => readdirSync(join(root, 'npm')).sort();

/** Where a version of ours stands, of packages for npm. */
export const manifests = () => ['package.json', ...platforms().map((platform) => `npm/${platform}/package.json`)];

/** Step of a release: `artifacts` has the addons somewhere below it, `folder` is written anew. */
export function packRelease([artifacts, folder]) {
  if (!artifacts || !folder)
    throw new Stop('usage: node .ci/release.mjs pack <folder with addons> <folder for packages>');
  const names = namesOfRepository();
  const addons = addonsIn(artifacts);
  rmSync(folder, { recursive: true, force: true });
  const staged = join(folder, 'staged');
  for (const platform of platforms()) stagePlatform(platform, addons.get(platform), join(staged, platform), names);
  writeNotices([staged]);
  stageMain(join(staged, 'chasquimq'), names);
  writeCompanion(join(staged, 'as-bullmq'), names);
  writeProCompanion(join(staged, 'as-bullmq-pro'), names);

  const packed = pack(
    [...platforms(), 'chasquimq', 'as-bullmq', 'as-bullmq-pro'].map((name) => join(staged, name)),
    folder,
  );
  writeFileSync(join(folder, LIST), `${JSON.stringify(packed, null, 2)}\n`);
  rmSync(staged, { recursive: true });
  for (const { name, version, size } of packed) say(`  ${name} ${version}: ${Math.ceil(size / 1024)} KiB`);
}

/** What the registry asks for beside a statement of provenance: the repository, as the workflow that runs in it knows it. */
function namesOfRepository() {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  if (!GITHUB_SERVER_URL || !GITHUB_REPOSITORY) throw new Stop('this step is for the release workflow');
  const address = `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
  return {
    repository: { type: 'git', url: `git+${address}.git` },
    homepage: `${address}#readme`,
    bugs: `${address}/issues`,
  };
}

/** The file for each platform. */
function addonsIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.node'));
  const found = new Map(files.map((name) => [/chasquimq\.([\w-]+)\.node$/.exec(name)?.[1], join(folder, name)]));
  const missing = platforms().filter((platform) => !found.has(platform));
  if (missing.length > 0) throw new Stop(`${folder} has no addon for ${missing.join(', ')}`);
  return found;
}

function stagePlatform(platform, addon, folder, names) {
  const manifest = read(root, 'npm', platform, 'package.json');
  const { os, cpu, libc = [] } = manifest;
  const title = `${SYSTEMS[os[0]]} (${cpu[0]}${LIBRARIES[libc[0]] ?? ''})`;
  mkdirSync(folder, { recursive: true });
  copyFileSync(addon, join(folder, manifest.main));
  write(folder, { ...manifest, ...names });
  const text = `The native addon of [ChasquiMQ](${names.homepage}) for ${title}.\nInstall \`chasquimq\`: it brings the addon of each platform.\n`;
  writeFileSync(join(folder, 'README.md'), `# ${manifest.name}\n\n${text}`);
}

function stageMain(folder, names) {
  const manifest = read(root, 'package.json');
  mkdirSync(folder);
  for (const name of ['README.md', 'LICENSE', ...manifest.files]) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  const addons = platforms().map((platform) => read(root, 'npm', platform, 'package.json'));
  const optionalDependencies = Object.fromEntries(addons.map(({ name, version }) => [name, version]));
  const entries = Object.entries(manifest).filter(([key]) => !OF_THE_CLONE.includes(key));
  write(folder, { ...Object.fromEntries(entries), ...names, optionalDependencies });
}

function pack(folders, destination) {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', destination, ...folders];
  const windows = process.platform === 'win32';
  const output = execFileSync('npm', windows ? args.map(forCmd) : args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    shell: windows,
  });
  return JSON.parse(output).map(({ name, version, filename, integrity, shasum, size, unpackedSize, files }) => ({
    ...{ name, version, integrity, shasum, size, unpackedSize, files: files.map(({ path }) => path) },
    // npm 8 and 9 tell the file of a package with a scope by another name than it has
    filename: filename.replace('@', '').replace('/', '-'),
  }));
}
