// What the release workflow checks before it publishes (.ci/release.mjs).
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../.ci/release.mjs', import.meta.url));

/** The environment of the workflow. */
const WORKFLOW = { GITHUB_SERVER_URL: 'https://example.com', GITHUB_REPOSITORY: 'we/queue' };

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
  const { status, stdout } = run('notes', 'vUnreleased');
  expect(status).toBe(0);
  expect(stdout).toMatch(/^### /);
  expect(stdout).not.toMatch(/^## /m);
  for (const tag of ['v99.0.0', 'v', '']) expect(run('notes', tag)).toMatchObject({ status: 1, stdout: '' });
});

it('packages are named after the repository of the workflow alone', () => {
  expect(run('name')).toMatchObject({ status: 1, stderr: expect.stringContaining('release workflow') as unknown });
});

it('each package then names the repository, where it is described, and where faults are told', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-release-'));
  const platforms = readdirSync(fileURLToPath(new URL('../../npm', import.meta.url)));
  const folders = [folder, ...platforms.map((platform) => join(folder, 'npm', platform))];
  for (const each of folders) mkdirSync(each, { recursive: true });
  expect(runIn(WORKFLOW, 'name', folder)).toMatchObject({ status: 0 });
  for (const each of folders) {
    expect(read(join(each, 'package.json'))).toMatchObject({
      version,
      license: 'MIT',
      repository: { type: 'git', url: 'git+https://example.com/we/queue.git' },
      homepage: 'https://example.com/we/queue#readme',
      bugs: 'https://example.com/we/queue/issues',
    });
  }
  rmSync(folder, { recursive: true });
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
