// What lies in benchmarks/: samples are compressed and come back as they were, and no report is kept that nothing needs.
import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isWholeRun } from '../../bench/charts/data.js';
import { UsageError } from '../../bench/ending.js';
import { namesOfSamples, packed, readSamples, unpacked } from '../../bench/samples.js';
import { pages, textOf } from '../support/doc-blocks.js';
import { ROOT } from '../support/registry.js';

describe('samples', () => {
  it('are JSON in one line, compressed', () => {
    const report = { startedAt: '2026-11-28', pairs: [{ base: 1.5, title: 'é' }] };
    expect(gunzipSync(packed(report)).toString()).toBe(`${JSON.stringify(report)}\n`);
    expect(unpacked(packed(report))).toEqual(report);
  });

  it('that are not there are missed', () => {
    expect(() => readSamples('2000-01-01-0000000')).toThrow(UsageError);
  });
});

describe('the folder of reports', () => {
  const files = execFileSync('git', ['ls-files', 'benchmarks'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const reports = files.map((file) => basename(file)).filter((file) => file.endsWith('.md') && file !== 'README.md');

  it('has reports that some page links to', () => {
    const texts = [...pages(), 'benchmarks/README.md'].map(textOf).join('\n');
    expect(reports.length).toBeGreaterThan(5);
    expect(reports.filter((report) => !new RegExp(`[(/]${report}\\)`).test(texts))).toEqual([]);
  });

  it('has samples of whole runs and of depths, each beside its report, and no other JSON than the baseline', () => {
    const names = files.filter((file) => file.endsWith('.json.gz')).map((file) => basename(file, '.json.gz'));
    expect(names.length).toBeGreaterThan(1);
    expect(names.filter((name) => !isWholeRun(name) && !name.startsWith('depth-'))).toEqual([]);
    expect(names.filter((name) => !reports.includes(`${name}.md`))).toEqual([]);
    expect(namesOfSamples()).toEqual(expect.arrayContaining(names));
    expect(files.filter((file) => file.endsWith('.json'))).toEqual(['benchmarks/baseline.json']);
  });
});
