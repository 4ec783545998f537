// What brings the servers of CI (.ci/server.mjs), with a source that is quickly built.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../support/registry.js';

/** No Valkey has them. */
const [VERSION, WRONG, BROKEN] = ['0.0.901', '0.0.902', '0.0.903'];
const folder = mkdtempSync(join(tmpdir(), 'chasquimq-server-'));
const source = join(folder, 'source');
const built = (version: string) => join(ROOT, 'target', 'servers', `valkey-${version}`);

function get(...args: string[]) {
  return spawnSync(process.execPath, ['.ci/server.mjs', ...args], { cwd: ROOT, encoding: 'utf8' });
}

function git(...args: string[]) {
  const who = ['-c', 'user.name=x', '-c', 'user.email=x@example.com'];
  const { status, stderr } = spawnSync('git', [...who, ...args], { cwd: source, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** A server that says its version, and where it was to be installed when it was made. */
function makefile(version: string, end = 'true'): string {
  return [
    'all:',
    `\tprintf '#!/bin/sh\\necho "Valkey server v=${version} sha=0 $(PREFIX)"\\n' > server`,
    `\t${end}`,
    'install:',
    '\tmkdir -p $(PREFIX)/bin',
    '\tinstall server $(PREFIX)/bin/valkey-server',
    '\tln -s valkey-server $(PREFIX)/bin/redis-server',
    '',
  ].join('\n');
}

beforeAll(() => {
  mkdirSync(source);
  git('init', '--quiet');
  for (const [tag, text] of [
    [VERSION, makefile(VERSION)],
    [WRONG, makefile('7.2.4')],
    [BROKEN, makefile(BROKEN, 'echo what broke it; false')],
  ]) {
    writeFileSync(join(source, 'Makefile'), text);
    git('add', '.');
    git('commit', '--quiet', '--message', tag);
    git('tag', tag);
  }
});

afterAll(() => {
  for (const path of [folder, ...[VERSION, WRONG, BROKEN].map(built)]) rmSync(path, { recursive: true, force: true });
});

it('a server is built from the tag of its version, where it will lie, and is there under both names', () => {
  const { status, stdout, stderr } = get('valkey', VERSION, source);
  expect([status, stdout]).toEqual([0, `${join(built(VERSION), 'bin')}\n`]);
  expect(stderr).toContain(`> build valkey ${VERSION}`);
  for (const name of ['redis-server', 'valkey-server']) {
    const said = spawnSync(join(stdout.trim(), name), ['--version'], { encoding: 'utf8' }).stdout;
    expect(said).toBe(`Valkey server v=${VERSION} sha=0 ${built(VERSION)}\n`);
  }
});

it('a second call builds nothing', () => {
  const { status, stderr } = get('valkey', VERSION, join(folder, 'nowhere'));
  expect([status, stderr]).toEqual([0, expect.not.stringContaining('> build')]);
});

it.each([
  ['that is another version', WRONG, 1, `is no valkey ${WRONG}`],
  ['that does not build', BROKEN, 2, 'what broke it'],
  ['that is not there', '0.0.904', 128, '0.0.904'],
])('a source %s fails, and says so', (_, version, code, words) => {
  const { status, stdout, stderr } = get('valkey', version, source);
  expect([status, stdout, stderr]).toEqual([code, '', expect.stringContaining(words)]);
});

it.each([[[]], [['memcached', '1.6.0']], [['redis']], [['redis', '8.2']], [['redis', '--upload-pack=x']]])(
  '%j is refused',
  (args) => expect(get(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining('usage: ') }),
);
