/** Charts as SVG files, light and dark: benchmarks/charts/<name>-<theme>.svg. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parse, View } from 'vega';
import { compile } from 'vega-lite';
import type { TopLevelSpec } from 'vega-lite';
import { depthChart, historyChart, latencyChart } from './curves.js';
import type { ChartData } from './data.js';
import { nodeCpu, ratioChart, redisCpu, throughput } from './ratios.js';
import { FOLDER } from '../samples.js';
import { configOf, themeNames } from './theme.js';
import type { ThemeName } from './theme.js';

export function chartsOf(data: ChartData): Readonly<Record<string, TopLevelSpec>> {
  return {
    throughput: ratioChart(data, throughput),
    'redis-cpu': ratioChart(data, redisCpu),
    'node-cpu': ratioChart(data, nodeCpu),
    latency: latencyChart(data),
    history: historyChart(data),
    ...(data.depths && { depth: depthChart(data.depths) }),
  };
}

export async function svgOf(spec: TopLevelSpec, theme: ThemeName): Promise<string> {
  const compiled = compile({ ...spec, config: configOf(theme) });
  const view = new View(parse(compiled.spec), { renderer: 'none' });
  const svg = await view.toSVG();
  view.finalize();
  return svg;
}

/** @returns the paths written */
export async function drawCharts(data: ChartData): Promise<string[]> {
  const folder = `${FOLDER}charts/`;
  mkdirSync(folder, { recursive: true });
  const paths: string[] = [];
  for (const [name, spec] of Object.entries(chartsOf(data))) {
    for (const theme of themeNames) {
      const path = `${folder}${name}-${theme}.svg`;
      writeFileSync(path, `${await svgOf(spec, theme)}\n`);
      paths.push(path);
    }
  }
  return paths;
}
