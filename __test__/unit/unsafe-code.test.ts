// Where unsafe code lies is written down, and it lies nowhere else.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/registry.js';

const ADDON = join(ROOT, 'crates/chasquimq-node/src');
const SAFE = [
  'chasquimq/src/lib.rs',
  'chasquimq-build/src/lib.rs',
  'chasquimq-counts/src/main.rs',
  'chasquimq-migrate/src/lib.rs',
  'chasquimq-typed/src/lib.rs',
].map((file) => `crates/${file}`);

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.name.endsWith('.rs')).map((entry) => join(entry.parentPath, entry.name));
}

/** Whether there is unsafe code beside comments and texts. */
function isUnsafe(file: string): boolean {
  const code = readFileSync(file, 'utf8').replace(/\/\/.*|"(?:[^"\\]|\\.)*"/g, '');
  return /\bunsafe\b/.test(code);
}

it('the files with unsafe code are those that docs/internals.md names', () => {
  const [, section] = readFileSync(join(ROOT, 'docs/internals.md'), 'utf8').split('\n## Unsafe code\n');
  const named = [...section.matchAll(/^\| `(.+?\.rs)` \|/gm)].map(([, file]) => file);
  const found = filesIn(ADDON).filter(isUnsafe);
  expect(named.sort()).toEqual(found.map((file) => relative(ADDON, file)).sort());
});

it.each(SAFE)('%s forbids it', (file) => {
  expect(readFileSync(join(ROOT, file), 'utf8')).toMatch(/^#!\[forbid\(unsafe_code\)\]$/m);
});
