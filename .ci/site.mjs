// The documentation as a site. `npm run docs` shows it while it is written, `npm run docs:build` leaves it in docs/.vitepress/dist, with an
// API reference made from the TSDoc of src/. It is not built while something that is exported says nothing of itself.
import { setup } from './setup.mjs';
import { main, run, Stop } from './step.mjs';

await main(async ([what]) => {
  await setup();
  if (what === 'dev') return run('show the site (vitepress)', 'vitepress', ['dev', 'docs']);
  if (what !== 'build') throw new Stop('npm run docs, or npm run docs:build', 2);
  await run('API reference (typedoc)', 'typedoc', ['--options', 'docs/.vitepress/typedoc.json']);
  await run('build the site (vitepress)', 'vitepress', ['build', 'docs']);
});
