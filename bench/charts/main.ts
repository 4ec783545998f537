/** `npm run bench:charts`: draws what is committed below benchmarks/ anew. A whole run of the bench does it by itself. */
import { runProgram, UsageError } from '../ending.js';
import { readChartData } from './data.js';
import { drawCharts } from './draw.js';

async function main(argv: readonly string[]): Promise<number> {
  if (argv.length > 0) throw new UsageError('usage: npm run bench:charts');
  for (const path of await drawCharts(readChartData())) console.log(path);
  return 0;
}

runProgram(main);
