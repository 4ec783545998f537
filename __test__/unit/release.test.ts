// What the release workflow checks before it publishes (.ci/release.mjs).
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../.ci/release.mjs', import.meta.url));

function run(...args: string[]): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8', env: { PATH: process.env.PATH } });
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

it('all packages have the version of the tag', () => {
  expect(run('check', `v${version}`)).toMatchObject({ status: 0 });
});

it.each(['v0.0.0', version, ''])('a tag that is not the version stops the release: %j', (tag) => {
  const { status, stderr } = run('check', tag);
  expect(status).toBe(1);
  expect(stderr).toMatch(/but Cargo.toml has .*, package.json has .*, npm\/darwin-arm64\/package.json has/);
});

it('packages are named after the repository of the workflow alone', () => {
  expect(run('name')).toMatchObject({ status: 1, stderr: expect.stringContaining('release workflow') as unknown });
});
