// The step that publishes a release (.ci/publish.mjs), against a registry on this machine: what it does where a run has stopped halfway.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Registry, RELEASE } from '../support/registry.js';

const run = promisify(execFile);
const LONG_MS = 60_000;
/** In the order of a release. */
const NAMES = ['@chasquimq/addon-linux-x64-gnu', 'chasquimq'];
const ALL = NAMES.map((name) => `${name}@1.2.3`);

let folder = '';
let registry: Registry;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chasquimq-publish-'));
  mkdirSync(join(folder, 'registry'));
  registry = await Registry.serving(join(folder, 'registry'), []);
});
afterEach(async () => {
  await registry.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Packs packages of a release whose file says `text`; the folder of their tarballs. */
async function packed(text: string): Promise<string> {
  const packages = join(folder, 'packages');
  mkdirSync(packages, { recursive: true });
  const sources = NAMES.map((name) => join(folder, 'source', name));
  for (const [i, source] of sources.entries()) {
    mkdirSync(source, { recursive: true });
    writeFileSync(join(source, 'package.json'), JSON.stringify({ name: NAMES[i], version: '1.2.3' }));
    writeFileSync(join(source, 'index.js'), text);
  }
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', packages, ...sources]);
  const list = JSON.parse(stdout) as { filename: string }[];
  // npm 8 and 9 tell the file of a package with a scope by another name than it has
  const files = list.map((each) => ({ ...each, filename: each.filename.replace('@', '').replace('/', '-') }));
  writeFileSync(join(packages, 'packages.json'), JSON.stringify(files));
  return packages;
}

/** The workflow's step; whether it succeeded, and what it said. */
async function publish(packages: string, token = Registry.token): Promise<{ ok: boolean; said: string }> {
  const { PATH } = process.env;
  const settings = { npm_config_registry: registry.url, npm_config_fetch_retries: '0', npm_config_cache: folder };
  const env = { PATH, HOME: folder, NPM_TOKEN: token, ...settings };
  const ran = run(process.execPath, [RELEASE, 'publish', packages], { env });
  return ran.then(
    ({ stderr }) => ({ ok: true, said: stderr }),
    ({ stderr }: { stderr: string }) => ({ ok: false, said: stderr }),
  );
}

it('a run that stopped halfway goes on where it is started again', { timeout: LONG_MS }, async () => {
  const packages = await packed('one');
  registry.fault = (taken) => (taken === 1 ? 'refuse' : undefined);
  const first = await publish(packages);
  expect([first.ok, registry.published]).toEqual([false, ALL.slice(0, 1)]);
  expect(first.said).toContain('publish chasquimq@1.2.3: failed');

  registry.fault = () => undefined;
  const second = await publish(packages);
  expect(second).toMatchObject({ ok: true, said: expect.stringContaining(`${ALL[0]}: already there`) as unknown });
  expect(registry.published).toEqual(ALL);
});

it('a package whose publication was not answered is there', { timeout: LONG_MS }, async () => {
  registry.fault = (taken) => (taken === 1 ? 'break' : undefined);
  const { ok, said } = await publish(await packed('one'));
  expect([ok, registry.published]).toEqual([true, ALL]);
  expect(said).toContain('chasquimq@1.2.3: it is there');
});

it(
  'another content under a version that is there is a stop, before anything is published',
  { timeout: LONG_MS },
  async () => {
    registry.fault = (taken) => (taken === 1 ? 'refuse' : undefined);
    await publish(await packed('one'));
    registry.fault = () => undefined;
    const { ok, said } = await publish(await packed('another'));
    expect([ok, registry.published]).toEqual([false, ALL.slice(0, 1)]);
    expect(said).toContain(`the registry has ${ALL[0]}, and it is not this one`);
  },
);

it('a tarball that is not the one that was packed is a stop', { timeout: LONG_MS }, async () => {
  const packages = await packed('one');
  const file = join(packages, 'chasquimq-1.2.3.tgz');
  writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.from('more')]));
  const { ok, said } = await publish(packages);
  expect([ok, registry.published]).toEqual([false, []]);
  expect(said).toContain('chasquimq-1.2.3.tgz is not the file that packages.json names');
});

it('who has no right to publish is told so, and nothing is published', { timeout: LONG_MS }, async () => {
  const { ok, said } = await publish(await packed('one'), 'of somebody else');
  expect([ok, registry.published]).toEqual([false, []]);
  expect(said).toMatch(/E401|who are you/);
});
