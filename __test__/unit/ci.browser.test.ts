// What is said, and done, where there is no Chromium and none can be installed (.ci/browser.mjs).
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ROOT } from '../support/registry.js';

const FILE = '__test__/clients/bull-board.pages.test.ts';
const NEED = `
  import { needBrowser, withoutBrowser } from './.ci/browser.mjs';
  import { main } from './.ci/step.mjs';
  await main(async () => process.stdout.write(JSON.stringify([(await needBrowser()) ?? null, withoutBrowser])));
`;

/** Without a package manager, nor a browser. */
function need(env: NodeJS.ProcessEnv) {
  const bare = { CHROMIUM: '', PATH: '', ...env };
  return spawnSync(process.execPath, ['--input-type=module', '--eval', NEED], {
    cwd: ROOT,
    env: bare,
    encoding: 'utf8',
  });
}

it('a run without a Chromium says which test it leaves out and how to have it, and leaves out no other', () => {
  const { status, stdout, stderr } = need({});
  const said = stdout + stderr;
  expect(status).toBe(0);
  expect(said).toContain(`LEFT OUT: there is no Chromium, and none could be installed. Left out: ${FILE}.`);
  expect(said).toContain('sudo apt-get install chromium');
  expect(said).toContain(JSON.stringify([null, [`--exclude=${FILE}`]]));
});

it('CI leaves nothing out: it stops', () => {
  const { status, stderr, stdout } = need({ CI: 'true' });
  expect(status).toBe(1);
  expect(stdout + stderr).toContain(FILE);
});
