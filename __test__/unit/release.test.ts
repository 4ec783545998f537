// What the release workflow checks before it publishes (.ci/release.mjs).
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { REPOSITORY, type Packed } from '../support/registry.js';

const SCRIPT = fileURLToPath(new URL('../../.ci/release.mjs', import.meta.url));

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return runIn({}, ...args);
}

function runIn(more: NodeJS.ProcessEnv, ...args: string[]) {
  const { PATH, HOME } = process.env;
  return spawnSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8', env: { PATH, HOME, ...more } });
}

interface Manifest {
  name: string;
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;
const { version } = read(fileURLToPath(new URL('../../package.json', import.meta.url)));

it('all packages have the version of the tag', () => {
  expect(run('check', `v${version}`)).toMatchObject({ status: 0 });
});

it.each(['v0.0.0', version, ''])('a tag that is not the version stops the release: %j', (tag) => {
  const { status, stderr } = run('check', tag);
  expect(status).toBe(1);
  expect(stderr).toMatch(/but Cargo.toml has .*, package.json has .*, npm\/darwin-arm64\/package.json has/);
});

it('notes are what the changelog says of the version, which has to be there', () => {
  const { status, stdout } = run('notes', `v${version}`);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^### /m);
  expect(stdout).not.toMatch(/^## /m);
  for (const tag of ['v99.0.0', 'v', '']) expect(run('notes', tag)).toMatchObject({ status: 1, stdout: '' });
});

it('nothing may have changed since the last release', () => {
  expect(run('notes', 'vUnreleased')).toMatchObject({ status: 0 });
});

it('packages are made in a repository that the workflow names, of addons for each platform', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
  const to = join(folder, 'packages');
  const outside = expect.stringContaining('this step is for the release workflow') as unknown;
  expect(run('pack', folder, to)).toMatchObject({ status: 1, stderr: outside });
  writeFileSync(join(folder, 'chasquimq.linux-x64-gnu.node'), 'an addon');
  const { status, stderr } = runIn(REPOSITORY, 'pack', folder, to);
  expect(status).toBe(1);
  expect(stderr).toContain(
    `${folder} has no addon for darwin-arm64, darwin-x64, linux-arm64-gnu, linux-arm64-musl, linux-x64-musl`,
  );
  rmSync(folder, { recursive: true });
});

describe('a release is prepared', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const places = ['package.json', 'package-lock.json', 'Cargo.toml', 'Cargo.lock', 'CHANGELOG.md', 'npm'];
  let folder = '';
  const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
  const changelog = (...parts: string[]): void =>
    writeFileSync(join(folder, 'CHANGELOG.md'), ['# Changelog', '', '## [Unreleased]', '', ...parts, ''].join('\n'));
  const today = new Date().toISOString().slice(0, 10);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
    for (const place of places) cpSync(join(root, place), join(folder, place), { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('in every manifest', () => {
    changelog('### Fixed', '', '- A row.', '', '## [0.1.0] - 2026-12-01', '', 'The first.');
    expect(run('prepare', '9.8.7', folder)).toMatchObject({ status: 0 });
    for (const platform of readdirSync(join(folder, 'npm'))) {
      expect(read(join(folder, 'npm', platform, 'package.json')).version).toBe('9.8.7');
    }
    expect(read(join(folder, 'package.json'))).toEqual({ ...read(join(root, 'package.json')), version: '9.8.7' });
    const lock = JSON.parse(text('package-lock.json')) as { version: string; packages: Record<string, Manifest> };
    expect([lock.version, lock.packages['']?.version]).toEqual(['9.8.7', '9.8.7']);
    expect(text('package-lock.json').match(/"9\.8\.7"/g)).toHaveLength(2);
    expect(text('Cargo.toml')).toContain('[workspace.package]\nversion = "9.8.7"');
    const ours = [...text('Cargo.lock').matchAll(/^name = "chasquimq.*"\nversion = "(.*)"/gm)].map(
      ([, found]) => found,
    );
    expect(ours).toEqual(Array.from({ length: 6 }, () => '9.8.7'));
    expect(text('Cargo.lock').match(/9\.8\.7/g)).toHaveLength(6);
  });

  it('by what is unreleased, which is its section then', () => {
    changelog('### Fixed', '', '- A row.', '', '## [0.1.0] - 2026-12-01', '', 'The first.');
    run('prepare', '9.8.7', folder);
    const sections = [
      '## [Unreleased]',
      `## [9.8.7] - ${today}`,
      '### Fixed\n\n- A row.',
      '## [0.1.0] - 2026-12-01',
      'The first.',
    ];
    expect(text('CHANGELOG.md')).toBe(`# Changelog\n\n${sections.join('\n\n')}\n`);
  });

  it('by a section that is written, which gets its date', () => {
    changelog('## [9.8.7]', '', 'The first.');
    expect(run('prepare', '9.8.7', folder)).toMatchObject({ status: 0 });
    expect(text('CHANGELOG.md')).toBe(`# Changelog\n\n## [Unreleased]\n\n## [9.8.7] - ${today}\n\nThe first.\n`);
  });

  it.each([
    ['9.8.7', ['## [0.1.0]', '', 'x'], /nothing is unreleased/],
    ['9.8.7', ['- A row.', '', '## [9.8.7]', '', 'x'], /move it there/],
    ['9.8.7', ['- A row.', '', '## [9.8.7] - 2026-12-01', '', 'x'], /has released 9\.8\.7 before/],
    ['v9.8.7', ['- A row.'], /usage/],
  ])('unless it cannot be: %s of %j', (asked, parts, why) => {
    changelog(...parts);
    const { status, stderr } = run('prepare', asked, folder);
    expect([status, stderr]).toEqual([1, expect.stringMatching(why)]);
    expect(read(join(folder, 'package.json')).version).toBe(version);
  });
});

it('who asks for a release is told how it is made', () => {
  expect(run()).toMatchObject({ status: 2, stderr: expect.stringContaining('docs/releasing.md') as unknown });
});

it('each release that the changelog has is one whose stored data a test reads', () => {
  const root = new URL('../..', import.meta.url);
  const released = readFileSync(new URL('CHANGELOG.md', root), 'utf8').matchAll(/^## \[(\d[^\]]*)\]/gm);
  const stored = readdirSync(new URL('__test__/life/stored', root)).map((file) => file.replace('.json', ''));
  expect(stored.sort()).toEqual([...released].map(([, name]) => name).sort());
});

describe('what a release publishes', () => {
  let folder = '';
  let list: Packed[] = [];
  const platforms = readdirSync(fileURLToPath(new URL('../../npm', import.meta.url))).sort();
  const inside = (name: string, file: string): string => {
    const tarball = list.find((each) => each.name === name)?.filename ?? '';
    return spawnSync('tar', ['-xzOf', join(folder, 'packages', tarball), `package/${file}`], { encoding: 'utf8' })
      .stdout;
  };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
    for (const platform of platforms) {
      mkdirSync(join(folder, 'artifacts', platform), { recursive: true });
      writeFileSync(join(folder, 'artifacts', platform, `chasquimq.${platform}.node`), `of ${platform}`);
    }
    expect(runIn(REPOSITORY, 'pack', join(folder, 'artifacts'), join(folder, 'packages'))).toMatchObject({ status: 0 });
    list = JSON.parse(readFileSync(join(folder, 'packages/packages.json'), 'utf8')) as Packed[];
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('is listed in the order of publication, and what is new to the registry has a scope', () => {
    const addons = platforms.map((platform) => `@chasquimq/addon-${platform}`);
    expect(list.map(({ name }) => name)).toEqual([
      ...addons,
      'chasquimq',
      '@chasquimq/as-bullmq',
      '@chasquimq/as-bullmq-pro',
    ]);
  });

  it('names the repository, where it is described, and where faults are told', () => {
    for (const { name } of list) {
      expect(JSON.parse(inside(name, 'package.json'))).toMatchObject({
        name,
        license: 'MIT',
        // what has a scope is private otherwise
        publishConfig: { access: 'public' },
        repository: { type: 'git', url: 'git+https://example.com/we/queue.git' },
        homepage: 'https://example.com/we/queue#readme',
        bugs: 'https://example.com/we/queue/issues',
      });
      expect(inside(name, 'LICENSE')).toMatch(/^MIT License/);
    }
  });

  it('has each addon, with the notices of what is linked into it, as an optional dependency', () => {
    for (const platform of platforms) {
      const name = `@chasquimq/addon-${platform}`;
      expect(inside(name, `chasquimq.${platform}.node`)).toBe(`of ${platform}`);
      expect(inside(name, 'THIRD-PARTY-NOTICES.md')).toContain('## tokio ');
    }
    const addons = Object.fromEntries(platforms.map((platform) => [`@chasquimq/addon-${platform}`, version]));
    const main = JSON.parse(inside('chasquimq', 'package.json')) as Manifest;
    expect(main).toMatchObject({ version, optionalDependencies: addons });
    expect(main).not.toHaveProperty('devDependencies');
  });

  it('does not say of itself that it is not there', () => {
    for (const { name } of list)
      expect(inside(name, 'README.md')).not.toMatch(/not (yet )?published|no published release|until there is/i);
  });
});

it('what stands in for bullmq has a version of BullMQ, which counts up with ours', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
  expect(run('companion', folder)).toMatchObject({ status: 0 });
  const { name, version: its, dependencies } = read(join(folder, 'package.json'));
  const [major, minor, patch] = version.split('.').map(Number);
  const bullmq = read(fileURLToPath(new URL('../../package.json', import.meta.url))).devDependencies.bullmq.split('.');
  expect(name).toBe('@chasquimq/as-bullmq');
  expect(its).toBe(`${bullmq[0]}.${bullmq[1]}.${(major * 1000 + minor) * 1000 + patch}`);
  expect(dependencies).toEqual({ chasquimq: version });
  rmSync(folder, { recursive: true });
});

it("what stands in for BullMQ's paid edition has a version of that", () => {
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
  expect(run('companion-pro', folder)).toMatchObject({ status: 0 });
  const { name, version: its, dependencies } = read(join(folder, 'package.json'));
  const [major, minor, patch] = version.split('.').map(Number);
  expect(name).toBe('@chasquimq/as-bullmq-pro');
  expect(its).toBe(`7.46.${(major * 1000 + minor) * 1000 + patch}`);
  expect(dependencies).toEqual({ chasquimq: version });
  rmSync(folder, { recursive: true });
});

it('the notices of a platform tell of each crate that is linked in, its license and the text of it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
  const platform = 'linux-x64-gnu';
  cpSync(fileURLToPath(new URL(`../../npm/${platform}`, import.meta.url)), join(folder, platform), { recursive: true });
  expect(run('licenses', folder, platform)).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('licenses: ') as unknown,
  });
  expect(readdirSync(join(folder, platform)).sort()).toEqual([
    'LICENSE',
    'README.md',
    'THIRD-PARTY-NOTICES.md',
    'package.json',
  ]);
  expect(read(join(folder, platform, 'package.json'))).toMatchObject({
    files: [`chasquimq.${platform}.node`, 'THIRD-PARTY-NOTICES.md'],
  });
  const crates = readFileSync(join(folder, platform, 'THIRD-PARTY-NOTICES.md'), 'utf8')
    .split(/^## (?=.*\n\nLicense: )/m)
    .slice(1);
  const names = crates.map((text) => text.split(' ')[0]);
  expect(names).toEqual(expect.arrayContaining(['The', 'napi', 'redis', 'ring', 'rustls', 'tokio']));
  // macros and build scripts run where it is built, and are not passed on
  expect(names.filter((name) => /^(syn|serde_derive|cc|sha1_smol|chasquimq.*)$/.test(name))).toEqual([]);
  expect(crates.filter((text) => !/^License: \S.*\n\n```text\n[^]{100,}/m.test(text))).toEqual([]);
  rmSync(folder, { recursive: true });
});

it.each([
  ['MIT', true],
  ['MIT/Apache-2.0', true],
  ['GPL-3.0-only OR MIT', true],
  ['MIT AND GPL-3.0-only', false],
  ['(MIT OR GPL-3.0-only) AND ISC', true],
  ['(MIT OR Apache-2.0) AND (GPL-3.0-only OR AGPL-3.0-only)', false],
  ['Apache-2.0 WITH LLVM-exception OR GPL-2.0-only', true],
  ['SSPL-1.0', false],
  ['', false],
])('may be passed on: %j: %s', (license, allowed) => {
  const file = new URL('../../.ci/licenses.mjs', import.meta.url).href;
  const text = `const { isAllowed } = await import('${file}'); console.log(isAllowed(${JSON.stringify(license)}));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], { encoding: 'utf8' });
  expect(stdout.trim()).toBe(String(allowed));
});
