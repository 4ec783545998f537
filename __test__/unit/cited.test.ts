// Who reads a comment that names a document can open it.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/registry.js';

const TEXTS = /\.(?:[cm]?[jt]s|rs|lua|md|yml)$/;
/** Made at a release. */
const MADE = ['THIRD-PARTY-NOTICES.md'];

it('every document that is named is in the repository', () => {
  const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const documents = new Set([...MADE, ...files.filter((name) => name.endsWith('.md')).map((name) => basename(name))]);
  const texts = files.filter((name) => TEXTS.test(name) && existsSync(join(ROOT, name)));
  const missing = texts.flatMap((name) => {
    const cited = readFileSync(join(ROOT, name), 'utf8').match(/[\w$-]+\.md\b/g) ?? [];
    return cited.filter((document) => !documents.has(document)).map((document) => `${name}: ${document}`);
  });
  expect(missing).toEqual([]);
});
