// Which suites a change asks for (.ci/suites.mjs).
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../support/registry.js';

interface Suite {
  at?: string[];
  except?: string[];
  when: string[];
}
interface Table {
  SUITES: Record<string, Suite>;
  suitesFor(paths: string[]): string[];
  faultsOfTable(files: string[], suites?: Record<string, Suite>): string[];
}

// a script without types
const { SUITES, suitesFor, faultsOfTable } = (await import(
  new URL('../../.ci/suites.mjs', import.meta.url).href
)) as Table;
const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
const EVERY_CHANGE = ['unit', 'parity', 'lint', 'rust', 'types', 'counts'];

describe('a change asks for', () => {
  it.each([
    ['README.md', ['docs']],
    ['CONTRIBUTING.md', []],
    ['__test__/parity/queue.add.test.ts', ['bullmq']],
    ['__test__/chaos/faults.ts', ['chaos']],
    ['__test__/life/memory.test.ts', ['memory', 'sentinel', 'cluster']],
    ['src/job/job.ts', ['v5', 'cli', 'life', 'memory', 'differential']],
    ['src/tools/migrate/mover.ts', ['v5', 'cli', 'life', 'migrate']],
    ['crates/chasquimq-migrate/lua/migrate/bull.lua', ['life', 'migrate']],
    ['crates/chasquimq/src/worker/take/answer.rs', ['life', 'memory', 'chaos', 'differential']],
    ['crates/chasquimq/src/redis/call/reply.rs', ['life', 'sentinel', 'cluster', 'chaos', 'scripts']],
    ['bench/main.ts', ['bench']],
    ['CHANGELOG.md', ['release']],
  ])('%s: what every change asks for, and %j', (path, more) => {
    expect(suitesFor([path]).sort()).toEqual([...EVERY_CHANGE, ...more].sort());
  });

  it('what every change asks for, also where no path has changed', () => {
    expect(suitesFor([]).sort()).toEqual([...EVERY_CHANGE].sort());
  });

  it('what each of its paths asks for', () => {
    const both = [...suitesFor(['bench/main.ts']), ...suitesFor(['README.md'])];
    expect(suitesFor(['bench/main.ts', 'README.md']).sort()).toEqual([...new Set(both)].sort());
  });

  it('everything, where the table does not know a path', () => {
    expect(suitesFor(['README.md', 'elsewhere/new.ts'])).toEqual(Object.keys(SUITES));
    expect(suitesFor(['package-lock.json'])).toEqual(expect.arrayContaining(['bullmq', 'clients', 'audit']));
  });

  it('the suite that a test file belongs to', () => {
    const begins = (path: string, beginnings: string[] = []) => beginnings.some((each) => path.startsWith(each));
    const homes = files
      .filter((path) => path.endsWith('.test.ts'))
      .map((path) => [
        path,
        Object.keys(SUITES).find((name) => begins(path, SUITES[name].at) && !begins(path, SUITES[name].except)),
      ]);
    expect(homes.length).toBeGreaterThan(250);
    expect(homes.filter(([path = '', home = 'none']) => !suitesFor([path]).includes(home))).toEqual([]);
  });
});

describe('the table', () => {
  it('is told in CONTRIBUTING.md', () => {
    const [, text = ''] = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').split('## What runs when');
    const told = [...text.matchAll(/^\| (`[^|]*`) +\|/gm)].flatMap(([, names = '']) => names.match(/\w+/g));
    expect(told.sort()).toEqual(Object.keys(SUITES).sort());
  });

  it('fits this tree', () => {
    expect(faultsOfTable(files)).toEqual([]);
  });

  it('knows every file of this tree', () => {
    const all = Object.keys(SUITES).length;
    expect(files.filter((path) => suitesFor([path]).length === all)).toEqual([]);
  });

  it('is refused with a suite that no path asks for, a path that is gone, and a test without a suite', () => {
    const tests = ['__test__/one/a.test.ts', '__test__/other/b.test.ts', 'src/index.ts'];
    const one = { at: ['__test__/one/'], when: ['src/'] };
    expect(faultsOfTable(tests, { one })).toEqual(['__test__/other/b.test.ts is in 0 suites']);
    expect(faultsOfTable(tests, { one, other: { when: [] } })).toContain('no path asks for other');
    expect(faultsOfTable(tests, { one: { ...one, when: ['src/gone/'] } })).toContain(
      'one is asked for by src/gone/, and there is no such path',
    );
    expect(faultsOfTable([...tests, '__test__/one/deep/c.test.ts'], { one })).toContain(
      '__test__/one/deep/c.test.ts is in 0 suites',
    );
    expect(faultsOfTable(tests, { one: { ...one, at: ['__test__/one/a.'] } })).toContain(
      '__test__/one/a.test.ts is in 0 suites',
    );
    expect(faultsOfTable(tests, { one, again: { at: ['__test__/one/a'], when: [] } })).toContain(
      '__test__/one/a.test.ts is in 2 suites',
    );
  });
});
