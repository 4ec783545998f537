/**
 * `npm run bench:charts`: draws what is committed below benchmarks/ anew, and makes the tables of the pages. A whole run of the bench does it by
 * itself.
 */
import { runProgram, UsageError } from '../ending.js';
import { readChartData } from './data.js';
import { drawCharts } from './draw.js';
import { writeTables } from './tables.js';

async function main(argv: readonly string[]): Promise<number> {
  if (argv.length > 0) throw new UsageError('usage: npm run bench:charts');
  const data = readChartData();
  for (const path of [...(await drawCharts(data)), ...(await writeTables(data))]) console.log(path);
  return 0;
}

runProgram(main);
