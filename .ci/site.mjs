// The documentation as a site. `npm run docs` shows it while it is written, `npm run docs:build` leaves it in docs/.vitepress/dist, with an
// API reference made from the TSDoc of src/.
import { setup } from './setup.mjs';
import { main, run, Stop } from './step.mjs';

await main(async ([what]) => {
  await setup();
  if (what === 'dev') return run('show the site (vitepress)', 'vitepress', ['dev', 'docs']);
  if (what !== 'build') throw new Stop('npm run docs, or npm run docs:build', 2);
  await run('API reference (typedoc)', 'typedoc', [
    ...['--entryPoints', 'src/index.ts', '--tsconfig', 'tsconfig.build.json', '--out', 'docs/public/api'],
    ...['--name', 'ChasquiMQ', '--readme', 'none', '--excludePrivate', '--excludeInternal', '--excludeExternals'],
    ...['--disableSources', '--hideGenerator', '--logLevel', 'Error'],
  ]);
  await run('build the site (vitepress)', 'vitepress', ['build', 'docs']);
});
