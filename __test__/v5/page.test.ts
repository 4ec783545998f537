// docs/v5.md tells what the tests beside this file prove.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { IDIOMS, tableOf } from './idioms.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const page = readFileSync(join(HERE, '../../docs/v5.md'), 'utf8');

/** A row without the spaces by which cells are lined up. */
const cellsOf = (row: string) => row.replaceAll(/\s+/g, ' ').replaceAll(/-+/g, '-');

it('each idiom has one test', () => {
  const files = readdirSync(HERE).filter((name) => name.endsWith('.test.ts'));
  const tested = files.flatMap((name) => {
    return [...readFileSync(join(HERE, name), 'utf8').matchAll(/\bidiom\('([\w-]+)'/g)].map(([, id]) => id);
  });
  expect(tested.sort()).toEqual(IDIOMS.map(({ id }): string => id).sort());
});

it('the page has the table that the list makes', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('|'));
  expect(rows.map(cellsOf)).toEqual(tableOf(IDIOMS).map(cellsOf));
});

it('the page tells the number of idioms', () => {
  expect(page).toContain(`${IDIOMS.length} idioms`);
});
