// Draws the charts of the newest reports below benchmarks/: `npm run bench:charts`.
import { setup } from './setup.mjs';
import { main, run } from './step.mjs';

await main(async (args) => {
  await setup();
  await run('charts', process.execPath, ['--import', 'tsx', 'bench/charts/main.ts', ...args]);
});
