import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

it.each(['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'benchmarks/README.md', 'docs/internals.md'])(
  '%s links to files that are there',
  (page) => {
    const links = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(
      ([, link]) => link,
    );
    const missing = links.filter((link) => !existsSync(join(ROOT, dirname(page), link)));
    expect(missing).toEqual([]);
  },
);
