// Pins that the API reference can be built: all that is exported is documented, and no link or type leads nowhere.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/registry.js';

const TYPEDOC = join(ROOT, 'node_modules/typedoc/bin/typedoc');
/** It compiles the whole facade, once. */
const LIMIT_MS = 300_000;

it('typedoc has nothing to say against what is exported', { timeout: LIMIT_MS }, () => {
  const args = [TYPEDOC, '--options', join(ROOT, 'docs/.vitepress/typedoc.json'), '--emit', 'none'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  expect([stdout + stderr, status]).toEqual(['', 0]);
});
