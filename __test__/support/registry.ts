// A package registry on this machine, for what installs and what publishes: it has other packages as they lie in node_modules, and
// ours as a release of this build would publish them. It takes what `npm publish` sends, and refuses what a real one refuses.
// Nothing is fetched from elsewhere.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The programs of others, and their packages: what no other suite needs. */
const CLIENTS = join(ROOT, '__test__/clients');
export const PACKAGES = join(CLIENTS, 'node_modules');
export const RELEASE = join(ROOT, '.ci/release.mjs');
/** The repository that packages name, as the release workflow would tell it. */
export const REPOSITORY = { GITHUB_SERVER_URL: 'https://example.com', GITHUB_REPOSITORY: 'we/queue' };

export interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  repository?: { url: string };
  files: string[];
}

/** What `npm pack` tells of a tarball, and `release.mjs pack` writes into its list. */
export interface Packed {
  name: string;
  version: string;
  filename: string;
  integrity: string;
  shasum: string;
  size: number;
  unpackedSize: number;
  files: string[];
}

/** What `npm publish` sends. */
interface Publication {
  name: string;
  access?: string;
  'dist-tags': Record<string, string>;
  versions: Record<string, Manifest & { dist: object }>;
  _attachments: Record<string, { data: string }>;
}

type Answer = readonly [status: number, body: string | Buffer];

const run = promisify(execFile);
const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** The version of ChasquiMQ under test. */
export const { version } = manifestOf(ROOT);

/** The version of an installed package. */
export const versionOf = (name: string): string => manifestOf(installed(name, CLIENTS)).version;

export class Registry {
  /** What whoever publishes has to show. */
  static readonly token = 'a-token-of-this-registry';

  /** What becomes of the publication before which so many were taken: it is refused, or taken without an answer. */
  fault: (taken: number) => 'refuse' | 'break' | undefined = () => undefined;
  /** What was published, in order: names and versions. */
  readonly published: string[] = [];
  readonly #server: Server;
  readonly #folder: string;
  /** By name; of a package of which several versions are installed, all of them. */
  readonly #packages = new Map<string, Record<string, Manifest & { dist: object }>>();

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => {
      const answered = request.method === 'PUT' ? this.#take(request) : Promise.resolve(this.#answer(request));
      void answered.then(([status, body] = [0, '']) => {
        if (status === 0) request.socket.destroy();
        else response.writeHead(status).end(body);
      });
    });
  }

  /** Serves ChasquiMQ and `others` with what they depend on. `folder` is for its files. */
  static async start(folder: string, others: string[]): Promise<Registry> {
    const registry = await Registry.serving(folder, others);
    const release = join(folder, 'release');
    for (const packed of await packRelease(folder, release)) {
      cpSync(join(release, packed.filename), join(folder, packed.filename));
      const { stdout } = await run('tar', ['-xzOf', join(folder, packed.filename), 'package/package.json']);
      registry.#add(JSON.parse(stdout) as Manifest, packed);
    }
    return registry;
  }

  /** Serves `others` with what they depend on, and nothing of ours but what is published into it. */
  static async serving(folder: string, others: string[]): Promise<Registry> {
    const registry = new Registry(folder);
    await new Promise<void>((listening) => registry.#server.listen(0, '127.0.0.1', listening));
    const sources = withDependencies(others);
    for (const packed of await pack(sources, folder)) {
      const of = (each: Manifest) => each.name === packed.name && each.version === packed.version;
      registry.#add(sources.map(manifestOf).find(of) as Manifest, packed);
    }
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** What it has of a version, as those who install are told. */
  manifest(name: string, version: string): Manifest & { dist: { integrity?: string } } {
    return this.#packages.get(name)?.[version] as Manifest & { dist: { integrity?: string } };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  #add(manifest: Manifest, { filename, integrity, shasum }: Pick<Packed, 'filename' | 'integrity' | 'shasum'>): void {
    const dist = { tarball: `${this.url}tarballs/${filename}`, integrity, shasum };
    const versions = this.#packages.get(manifest.name) ?? {};
    this.#packages.set(manifest.name, { ...versions, [manifest.version]: { ...manifest, dist } });
  }

  #answer(request: IncomingMessage): Answer {
    const path = decodeURIComponent(request.url ?? '').split('?', 1)[0] ?? '';
    const tarball = /^\/tarballs\/([^/]+\.tgz)$/.exec(path)?.[1];
    if (tarball) return [200, readFileSync(join(this.#folder, tarball))];
    const name = path.slice(1);
    const versions = this.#packages.get(name);
    if (!versions) return refusal(404, 'not found');
    const latest = Object.keys(versions).at(-1);
    return [200, JSON.stringify({ name, 'dist-tags': { latest }, versions })];
  }

  /** Takes a publication; undefined where it is not answered. */
  async #take(request: IncomingMessage): Promise<Answer | undefined> {
    const {
      name,
      access,
      versions,
      _attachments: files,
    } = JSON.parse((await buffer(request)).toString()) as Publication;
    const [manifest] = Object.values(versions);
    const file = Object.entries(files).find(([file]) => file.endsWith('.tgz'))?.[1];
    if (request.headers.authorization !== `Bearer ${Registry.token}`) return refusal(401, 'who are you?');
    if (name.startsWith('@') && access !== 'public') return refusal(402, 'You must sign up for private packages');
    if (!manifest || !file) return refusal(400, 'no package');
    if (this.#packages.get(name)?.[manifest.version]) {
      return refusal(403, `You cannot publish over the previously published versions: ${manifest.version}.`);
    }
    const fault = this.fault(this.published.length);
    if (fault === 'refuse') return refusal(503, 'not now');
    const filename = `${name.replace('@', '').replace('/', '-')}-${manifest.version}.tgz`;
    const content = Buffer.from(file.data, 'base64');
    const sum = (kind: string, form: 'hex' | 'base64') => createHash(kind).update(content).digest(form);
    writeFileSync(join(this.#folder, filename), content);
    this.#add(manifest, { filename, integrity: `sha512-${sum('sha512', 'base64')}`, shasum: sum('sha1', 'hex') });
    this.published.push(`${name}@${manifest.version}`);
    return fault === 'break' ? undefined : [201, '{"ok":true}'];
  }
}

const refusal = (status: number, error: string): Answer => [status, JSON.stringify({ error })];

/** What the release workflow would publish, in `to`. The addons of other platforms are files that are none. */
async function packRelease(folder: string, to: string): Promise<Packed[]> {
  const artifacts = join(folder, 'artifacts');
  mkdirSync(artifacts, { recursive: true });
  for (const platform of readdirSync(join(ROOT, 'npm'))) {
    const addon = `chasquimq.${platform}.node`;
    if (existsSync(join(ROOT, addon))) cpSync(join(ROOT, addon), join(artifacts, addon));
    else writeFileSync(join(artifacts, addon), 'of another platform');
  }
  await run(process.execPath, [RELEASE, 'pack', artifacts, to], { env: { ...process.env, ...REPOSITORY } });
  return JSON.parse(readFileSync(join(to, 'packages.json'), 'utf8')) as Packed[];
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
