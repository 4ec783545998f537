// Runs the tests against servers of their own. `npm test` runs them all; `npm test -- rust types life` some suites (.ci/suites.mjs);
// `js` is all that vitest runs, `quick` what is quick. What follows one of them goes to its runner: `npm test -- js queue.add`,
// `npm test -- rust -p chasquimq --test lua`.
import { availableParallelism } from 'node:os';
import { withoutBrowser, needBrowser } from './browser.mjs';
import { build } from './build.mjs';
import { checkClients, checkPackage } from './package.mjs';
import { needServer, withServers } from './redis.mjs';
import { setup, setupClients } from './setup.mjs';
import { isEntry, main, run, runLanes, Stop } from './step.mjs';
import { JS } from './suites.mjs';

const OF_JS = Object.keys(JS);
/** The parts that have a name of their own, and the suites they stand for. */
const PARTS = { js: OF_JS, quick: ['rust', 'unit', 'parity'] };
const EVERYTHING = ['rust', 'types', ...OF_JS];

export async function test(args = []) {
  const names = wordsOf(args);
  const suites = names.length > 0 ? [...new Set(names.flatMap((name) => PARTS[name] ?? [name]))] : EVERYTHING;
  const more = args.slice(names.length);
  const isQuick = names.includes('quick');
  const ofJs = suites.filter((name) => name in JS);
  if ((args.length > 0 && names.length === 0) || (more.length > 0 && ofJs.length > 0 && ofJs.length < suites.length)) {
    throw new Stop(`usage: npm test [-- ${[...Object.keys(PARTS), ...EVERYTHING].join('|')} ...]`, 2);
  }
  await setup();
  if (ofJs.length > 0 || suites.includes('types')) await build({ release: false });
  const hasClients = suites.includes('clients') || suites.includes('docs');
  if (hasClients) await setupClients();
  const leftOut = suites.includes('clients') && !(await needBrowser()) ? withoutBrowser : [];
  await needServer();
  const js = [];
  if (suites.includes('types')) js.push(checkPackage);
  if (hasClients) js.push(checkClients);
  if (ofJs.length > 0) js.push(() => testJs(ofJs, [...leftOut, ...more], isQuick));
  // most tests wait most of their time: Rust's run beside the others, and are shown when they have ended
  const rust = suites.includes('rust') ? [() => testRust(more, { isQuick, held: js.length > 0 })] : [];
  await runLanes(rust, js);
}

/** The words at the beginning that name parts. */
function wordsOf(args) {
  const end = args.findIndex((word) => !(word in PARTS) && !EVERYTHING.includes(word));
  return end === -1 ? args : args.slice(0, end);
}

/** Every test is counted, also after a failure. */
function testRust(more, { isQuick, held }) {
  // without the tests that need a server
  const which = isQuick ? ['--lib'] : [];
  const args = ['test', '--workspace', '--no-fail-fast', ...locked(), ...which, ...more];
  return withServers(1, ([url]) => run('rust tests', 'cargo', args, { held, env: { REDIS_URL: url } }));
}

async function testJs(suites, more, isQuick) {
  const projects = suites.length < OF_JS.length ? suites.map((name) => `--project=${name}`) : [];
  await withServers(availableParallelism(), (urls) =>
    run('js tests', 'vitest', ['run', ...projects, ...more], {
      env: {
        REDIS_URL: urls[0],
        REDIS_OF_WORKERS: urls.length > 1 ? urls.join(' ') : '',
        ...(isQuick && { PARITY: 'chasquimq' }),
      },
    }),
  );
}

const locked = () => (process.env.CI ? ['--locked'] : []);

if (isEntry(import.meta.url)) await main(test);
