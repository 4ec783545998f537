// A package registry on this machine, for tests that install: it has what a release of this build would publish, made by the
// steps of the release workflow, and other packages as they lie in node_modules. Nothing is fetched from elsewhere.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The programs of others, and their packages: what no other suite needs. */
const CLIENTS = join(ROOT, '__test__/clients');
export const PACKAGES = join(CLIENTS, 'node_modules');
const RELEASE = join(ROOT, '.ci/release.mjs');

interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  files: string[];
  napi: { targets: string[] };
}

interface Packed {
  name: string;
  version: string;
  filename: string;
  integrity: string;
  shasum: string;
}

const run = promisify(execFile);
const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** The version of ChasquiMQ under test. */
export const { version } = manifestOf(ROOT);

/** The version of an installed package. */
export const versionOf = (name: string): string => manifestOf(installed(name, CLIENTS)).version;

export class Registry {
  readonly #server: Server;
  readonly #folder: string;
  /** By name; of a package of which several versions are installed, all of them. */
  readonly #packages = new Map<string, Record<string, object>>();

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => {
      const answer = this.#answer(decodeURIComponent(request.url ?? ''));
      response.writeHead(answer ? 200 : 404).end(answer ?? '{"error":"not found"}');
    });
  }

  /** Serves ChasquiMQ and `others` with what they depend on. `folder` is for its files. */
  static async start(folder: string, others: string[]): Promise<Registry> {
    const registry = new Registry(folder);
    const sources = [...(await stageRelease(join(folder, 'release'))), ...withDependencies(others)];
    await new Promise<void>((listening) => registry.#server.listen(0, '127.0.0.1', listening));
    for (const packed of await pack(sources, folder)) registry.#publish(packed, sources);
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  #publish({ name, version, filename, integrity, shasum }: Packed, sources: string[]): void {
    const manifest = sources.map(manifestOf).find((each) => each.name === name && each.version === version);
    const dist = { tarball: `${this.url}tarballs/${filename}`, integrity, shasum };
    const versions = this.#packages.get(name) ?? {};
    this.#packages.set(name, { ...versions, [version]: { ...manifest, dist } });
  }

  #answer(path: string): string | Buffer | undefined {
    const tarball = /^\/tarballs\/([^/]+\.tgz)$/.exec(path)?.[1];
    if (tarball) return readFileSync(join(this.#folder, tarball));
    const name = path.slice(1);
    const versions = this.#packages.get(name);
    if (!versions) return undefined;
    const latest = Object.keys(versions).at(-1);
    return JSON.stringify({ name, 'dist-tags': { latest }, versions });
  }
}

/**
 * The folders that the release workflow would publish: the package, the one that stands in for `bullmq`, and one for each
 * platform. Those of other platforms hold a file that is no addon.
 */
async function stageRelease(folder: string): Promise<string[]> {
  const artifacts = join(folder, 'artifacts');
  mkdirSync(artifacts, { recursive: true });
  for (const name of ['package.json', 'README.md', 'LICENSE', 'npm', ...manifestOf(ROOT).files]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  const platforms = readdirSync(join(ROOT, 'npm'));
  const addonOf = (platform: string): string => `chasquimq.${platform}.node`;
  const here = platforms.filter((platform) => existsSync(join(ROOT, addonOf(platform))));
  for (const platform of platforms) {
    const addon = addonOf(platform);
    if (here.includes(platform)) cpSync(join(ROOT, addon), join(artifacts, addon));
    else writeFileSync(join(artifacts, addon), 'of another platform');
  }
  const napi = join(ROOT, 'node_modules/@napi-rs/cli/dist/cli.js');
  await run(process.execPath, [napi, 'artifacts', '--output-dir', 'artifacts', '--npm-dir', 'npm'], { cwd: folder });
  await run(process.execPath, [RELEASE, 'licenses', join(folder, 'npm'), ...here]);
  const only = ['--no-gh-release', '--skip-optional-publish', '--npm-dir', 'npm'];
  await run(process.execPath, [napi, 'pre-publish', ...only], { cwd: folder });
  const companion = join(folder, 'companion');
  await run(process.execPath, [RELEASE, 'companion', companion]);
  return [folder, companion, ...platforms.map((platform) => join(folder, 'npm', platform))];
}

/** The folders of installed packages, and of those they depend on. */
function withDependencies(names: string[]): string[] {
  const found = new Set<string>();
  const visit = (name: string, from: string) => {
    const folder = installed(name, from);
    if (found.has(folder)) return;
    found.add(folder);
    for (const dependency of Object.keys(manifestOf(folder).dependencies ?? {})) visit(dependency, folder);
  };
  for (const name of [...names, ...Object.keys(manifestOf(ROOT).dependencies ?? {})]) visit(name, CLIENTS);
  return [...found];
}

function installed(name: string, from: string): string {
  const folder = join(from, 'node_modules', name);
  if (existsSync(join(folder, 'package.json'))) return folder;
  if (dirname(from) === from) throw new Error(`${name} is not installed`);
  return installed(name, dirname(from));
}

async function pack(folders: string[], destination: string): Promise<Packed[]> {
  const options = ['--json', '--ignore-scripts', '--pack-destination', destination];
  const { stdout } = await run('npm', ['pack', ...options, ...folders], { maxBuffer: 64 * 1024 * 1024 });
  const packed: Packed[] = JSON.parse(stdout);
  // npm 8 and 9 tell the file of a package with a scope by another name than it has
  return packed.map((each) => ({ ...each, filename: each.filename.replace('@', '').replace('/', '-') }));
}
