// docs/ builds as a site: each page is there, can be found by the search, and stands in the sidebar.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pages } from '../support/doc-blocks.js';
import { ROOT } from '../support/registry.js';

const BUILD_MS = 300_000;
const names = pages()
  .filter((page) => page.startsWith('docs/'))
  .map((page) => page.slice('docs/'.length, -'.md'.length));

let site = '';
beforeAll(async () => {
  mkdirSync(join(ROOT, 'target'), { recursive: true });
  site = mkdtempSync(join(ROOT, 'target/site-'));
  const vitepress = join(ROOT, 'node_modules/vitepress/bin/vitepress.js');
  // it fails on a link to a page that is not there
  await promisify(execFile)(process.execPath, [vitepress, 'build', 'docs', '--outDir', site], { cwd: ROOT });
}, BUILD_MS);
afterAll(() => rmSync(site, { recursive: true, force: true }));

it('has each page', () => {
  expect(names.filter((name) => !existsSync(join(site, `${name}.html`)))).toEqual([]);
});

it('leads to each page from its sidebar', () => {
  const page = readFileSync(join(site, 'quick-start.html'), 'utf8');
  expect(names.filter((name) => name !== 'index' && !page.includes(`href="/${name}.html"`))).toEqual([]);
});

it('finds each page', () => {
  const chunks = join(site, 'assets/chunks');
  const [index = ''] = readdirSync(chunks).filter((name) => name.includes('localSearchIndex'));
  const text = readFileSync(join(chunks, index), 'utf8');
  expect(names.filter((name) => name !== 'index' && !text.includes(`/${name}.html`))).toEqual([]);
});
