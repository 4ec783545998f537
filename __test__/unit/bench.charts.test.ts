// The charts show every row, and those beside the reports are of the newest ones.
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { readChartData } from '../../bench/charts/data.js';
import type { ChartData } from '../../bench/charts/data.js';
import { chartsOf, svgOf } from '../../bench/charts/draw.js';
import { pageNames, pageWithTables, readPage } from '../../bench/charts/tables.js';
import { ratioChart, redisCpu, throughput } from '../../bench/charts/ratios.js';
import { palette, themeNames } from '../../bench/charts/theme.js';
import { formatRatio } from '../../bench/report.js';
import { FOLDER } from '../../bench/samples.js';

let data: ChartData;
beforeAll(() => {
  data = readChartData();
});

const textsOf = (svg: string): string[] => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);

describe('bars', () => {
  it.each([
    ['jobsPerSecond', throughput],
    ['redisCpuMicros', redisCpu],
  ] as const)('have each row of %s, with its ratio', async (metric, bars) => {
    const texts = textsOf(await svgOf(ratioChart(data, bars), 'light'));
    const rows = data.run.rows.filter((row) => row.metric === metric);
    expect(rows.length).toBeGreaterThan(5);
    for (const { title, ratio } of rows) {
      if (!ratio) continue;
      expect(texts).toContain(title.replaceAll('&', '&amp;'));
      expect(texts).toContain(formatRatio(ratio.median));
    }
  });

  it('say where BullMQ is better', async () => {
    const [first] = data.run.rows.filter(({ metric }) => metric === 'redisCpuMicros');
    const spread = { median: 1.5, least: 1.4, most: 1.6, quartiles: [1.45, 1.55] as const };
    const lost = { ...data, run: { ...data.run, rows: [{ ...first, ratio: spread }] } };
    const svg = await svgOf(ratioChart(lost, redisCpu), 'dark');
    expect(textsOf(svg)).toContain('BullMQ is better');
    // the bar and its mark in the legend; of the other colour there is the mark alone
    expect(svg.split(palette.worse)).toHaveLength(3);
    expect(svg.split(palette.better)).toHaveLength(2);
  });
});

describe('the files in benchmarks/charts', () => {
  it('are drawn from the newest reports', async () => {
    for (const [name, spec] of Object.entries(chartsOf(data))) {
      for (const theme of themeNames) {
        const drawn = `${await svgOf(spec, theme)}\n`;
        const isSame = readFileSync(`${FOLDER}charts/${name}-${theme}.svg`, 'utf8') === drawn;
        expect(isSame, `${name}-${theme}.svg is old: npm run bench:charts draws it anew`).toBe(true);
      }
    }
  });
});

describe('the tables', () => {
  it.each(pageNames)('of %s are of the newest whole run', async (page) => {
    const isSame = readPage(page) === (await pageWithTables(page, data));
    expect(isSame, `${page} is old: npm run bench:charts makes its tables anew`).toBe(true);
  });
});
